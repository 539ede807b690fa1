(** * Theorem B with stages that wait for one another: proofs *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums ServiceFacts ReferenceFacts ClockFacts LoopFacts KVFacts FairClockProof
  ExecutableLagProof ReleaseLoopFacts.
From Justitia Require Export ReleasedLag.
Import ListNotations.

Section Released.
Variable w : workload.
Variable g : engine.
Variable rule : release_rule.
Hypothesis form : well_formed w.
Hypothesis valid : valid_engine w g.
Variable T : nat.
Notation r := (release_run w g rule T).
Notation f := (reference_of r).
Notation loop k := (release_loop w g rule k).

Lemma release_form : well_formed r.
Proof. constructor; apply form. Qed.

Lemma release_valid : valid_run r.
Proof.
  constructor; [constructor|..].
  - intros x k Hx. cbn. unfold service_of. destruct (r_starts (loop T) x) as [s|]; [|lra].
    destruct (s <=? k)%nat; [apply (work_nonneg w g valid); auto|lra].
  - intros x n Hx. pose proof (got_of (with_ready w (released_in w g rule T)) g (r_starts (loop T)) x n) as E.
    cbn [cost load exec release_run execution_of with_ready] in *. rewrite E.
    destruct (r_starts (loop T) x); [apply (work_within_cost w g valid); auto|].
    apply (work_within_cost w g valid x 0 Hx).
  - intros x k Hx. unfold started_before. cbn. unfold service_of.
    destruct (r_starts (loop T) x) as [s|]; [|reflexivity]. intros H. rewrite H. reflexivity.
  - intros x s Hx H. apply rstarts_spec in H as (L & _ & (n & R) & _). cbn [exec release_run load execution_of].
    rewrite (released_ready w g rule T (S s) _ n) by (auto; lia). apply ready_spec in R. lia.
Qed.

Lemma release_order : keeps_order r (tag r f).
Proof.
  intros x y s Hx Hy H [W1 W2]. destruct (rstarts_spec w g rule T x s H) as (L & _ & (n & R) & _ & H3).
  assert (Ny : r_starts (loop (S s)) y = None).
  { destruct (r_starts (loop (S s)) y) as [s'|] eqn:E; auto. exfalso. unfold started_before in W2. cbn in W2.
    rewrite (rstarts_keep w g rule (S s) T y s') in W2 by (auto; lia).
    destruct (rstarts_spec w g rule _ _ _ E) as (L' & _). apply Nat.leb_gt in W2. lia. }
  pose proof (ready_released w g rule T (unit_of w y)) as Ry.
  cbn [load exec release_run execution_of unit_of with_ready] in W1.
  specialize (Ry ltac:(cbn in *; lia)). apply (ready_keeps w g rule _ (S s)) in Ry; [|cbn in *; lia].
  specialize (H3 y _ Hy Ry Ny). unfold before in *.
  rewrite (opened_tag w g rule T s _ _ L R), (opened_tag w g rule T s _ _ L Ry) in H3. exact H3.
Qed.

Lemma served_nonneg k : 0 <= delivered r k.
Proof. apply delivered_nonneg, (valid_run_service r release_valid). Qed.

(** What the reference has finished, and what it has not. *)
Lemma finished_spec k : (k <= T)%nat ->
  (forall u G, In (u, G) (r_finished (loop k)) -> exists n, finishes r f u n /\ G == Reference.G r f u n) /\
  (forall u n, In u (units w) -> r_ready (loop k) u = Some n ->
     find_in (r_finished (loop k)) u = None -> V f k < tag r f u).
Proof.
  induction k; intros L; [split; [intros u G []|discriminate]|].
  destruct (IHk ltac:(lia)) as [I1 I2].
  assert (Lv : level (r_clock (loop (S k))) = V f (S k)) by (rewrite (loop_clock_at w g rule T) by auto; reflexivity).
  assert (Lk : level (clock_opened w g rule k) = V f k).
  { rewrite level_opened, (loop_clock_at w g rule T) by lia. reflexivity. }
  pose proof (finished_S w g rule k) as D. cbv zeta in D.
  set (now := filter _ (units w)) in D. split.
  - intros u G H. rewrite D in H. apply in_app_or in H as [H|H]; [|apply I1; auto].
    apply in_map_iff in H as (u' & E0 & Hu). pose proof (f_equal fst E0) as Eu. pose proof (f_equal snd E0) as EG.
    cbn [fst snd] in Eu, EG. subst u'. clear E0 D. unfold now in Hu. apply filter_In in Hu as [Hu F].
    unfold newly_finished, marked in F. destruct (r_ready (loop (S k)) u) as [n|] eqn:R; [|discriminate].
    cbn [andb] in F. apply andb_prop in F as [F1 F2].
    destruct (find_in (r_finished (loop k)) u) eqn:N; [discriminate|]. apply Qle_bool_iff in F2.
    rewrite (opened_tag w g rule T k u n) in F2, EG by (auto; lia). rewrite Lv in F2. rewrite Lk in EG.
    pose proof (ready_spec _ _ _ _ _ _ R) as (Ln & In_n & _).
    assert (Er : ready r u = n) by (apply (released_ready w g rule T (S k)); auto).
    exists k. assert (Lo : V f k <= tag r f u).
    { destruct (Nat.eq_dec n k) as [->|Ne].
      - rewrite <- Er. apply ready_before_tag; [apply release_form| |exact Hu].
        apply theorem_clock_fair_holds; [apply release_form|apply (valid_run_service r release_valid)].
      - apply Qlt_le_weak, (I2 u n Hu); auto. rewrite (ready_S w g rule) in R.
        destruct (in_dec Nat.eq_dec u (opening w g rule k)) as [I|I].
        + rewrite mark_all_in in R by auto. congruence.
        + rewrite mark_all_other in R by auto. auto. }
    assert (Fin : finishes r f u k) by (split; [lia|split; auto]). split; auto.
    rewrite <- EG, Qred_correct, (rloop_total w g rule T) by lia. unfold Reference.G.
    apply Qplus_comp; [reflexivity|]. symmetry.
    pose proof (handed_fill r (delivered r) release_form served_nonneg k (tag r f u) Lo F2) as HF.
    rewrite <- (loop_clock_at w g rule T (S k)) in HF by lia. exact HF.
  - intros u n Hu R N.
    destruct (find_in (r_finished (loop k)) u) as [G|] eqn:N0.
    { exfalso. apply find_in_none in N. apply N. rewrite D, map_app. apply in_or_app. right.
      apply find_in_some in N0. apply in_map_iff. exists (u, G). auto. }
    rewrite <- Lv. rewrite <- (opened_tag w g rule T k u n) by (auto; lia).
    destruct (Qlt_le_dec (level (r_clock (loop (S k)))) (clock_tag w (clock_opened w g rule k) u)) as [|C]; auto.
    exfalso.
    apply find_in_none in N. apply N. rewrite D, map_app. apply in_or_app. left. rewrite map_map. cbn [fst].
    rewrite map_id.
    apply filter_In. split; auto. unfold newly_finished, marked. rewrite R, N0. apply Qle_bool_iff in C. rewrite C.
    auto.
Qed.
End Released.

Theorem theorem_released_run_holds : theorem_released_run.
Proof.
  intros w g rule form valid T r f. split; [apply release_valid; auto|]. split; [apply release_order; auto|]. split.
  - intros j t E. unfold released_tag, marked in E.
    destruct (r_ready (release_loop w g rule T) j) as [n|] eqn:R; [|discriminate]. injection E as <-.
    apply (loop_tag w g rule T T j n); auto.
  - intros j G E. apply find_in_some in E. apply (finished_spec w g rule form valid T T) in E; auto.
Qed.

Theorem theorem_B_released_holds : theorem_B_released.
Proof.
  intros w g rule form valid T r tg x s b G Hx Hs j HQ EG.
  destruct (theorem_released_run_holds w g rule form valid T) as (Hv & Ho & _ & HG).
  destruct (HG j G EG) as (n & Fin & ->).
  apply (theorem_B_clock_holds r (release_form w g rule form T) Hv Ho). constructor; auto.
Qed.

Theorem theorem_B_stages_kv_holds : theorem_B_stages_kv.
Proof.
  intros w p d test form costs arrival prev rule g T. apply theorem_B_released_holds; auto.
  apply kv_engine_valid. auto.
Qed.

Theorem theorem_stage_after_stage_holds : theorem_stage_after_stage.
Proof.
  intros w g arrival prev steps T. cbv zeta. set (rule := after_stage w arrival prev steps). intros u n E.
  pose proof (ready_spec _ _ _ _ _ _ E) as (L & I & _). apply filter_In in I as [_ I]. unfold opens in I.
  apply andb_prop in I as [_ I]. unfold rule at 1, after_stage in I. apply andb_prop in I as [I1 I2].
  apply Nat.leb_le in I1. split; auto. intros u' Ep. rewrite Ep in I2. apply andb_prop in I2 as [I2 I3]. split.
  - unfold marked in I2. destruct (r_ready (release_loop w g rule n) u') as [n'|] eqn:E'; [|discriminate].
    exists n'. split; [apply (ready_keeps w g rule n); auto; lia|]. apply ready_spec in E'. lia.
  - intros x Hx Hu. unfold is_done in I3. rewrite forallb_forall in I3. specialize (I3 x Hx).
    rewrite Hu, Nat.eqb_refl in I3.
    destruct (r_starts (release_loop w g rule n) x) as [s|] eqn:S1; [|discriminate].
    exists s. split; [apply (rstarts_keep w g rule n); auto; lia|]. apply Nat.leb_le. auto.
Qed.

Theorem theorem_stage_at_once_holds : theorem_stage_at_once.
Proof.
  intros w g arrival prev steps T. cbv zeta. set (rule := after_stage w arrival prev steps). intros u n Hu L A P.
  destruct (r_ready (release_loop w g rule n) u) as [m|] eqn:N.
  { exists m. split; [apply (ready_keeps w g rule n); auto; lia|]. apply ready_spec in N. lia. }
  assert (I : In u (opening w g rule n)).
  { unfold opening. apply filter_In. split; auto. unfold opens, marked. rewrite N. cbn [negb andb].
    unfold rule at 1, after_stage.
    apply andb_true_intro. split; [apply Nat.leb_le; auto|]. destruct (prev u) as [u'|]; auto.
    destruct (P u' eq_refl) as [(n' & E & L') P2]. apply andb_true_intro. split.
    - pose proof (ready_spec _ _ _ _ _ _ E) as (_ & _ & E2). unfold marked.
      rewrite (ready_keeps w g rule (S n') n u' n') by (auto; lia). auto.
    - apply forallb_forall. intros x Hx. destruct (Nat.eqb_spec (unit_of w x) u') as [Ex|]; auto.
      destruct (P2 x Hx Ex) as (s & S1 & L1 & L2).
      pose proof (rstarts_spec _ _ _ _ _ _ S1) as (_ & _ & _ & S2 & _).
      rewrite (rstarts_keep w g rule (S s) n x s) by (auto; lia). apply Nat.leb_le. auto. }
  exists n. split; auto. apply (ready_keeps w g rule (S n)); [lia|]. rewrite ready_S. apply mark_all_in. auto.
Qed.
