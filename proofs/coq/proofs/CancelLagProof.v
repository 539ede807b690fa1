(** * The closed loop with leaves: proofs *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts OrderFacts ServiceFacts SettlingFacts SettledLagProof CancelLoopFacts.
From Justitia Require Export SettledLag.
Import ListNotations.

Section Cancelled.
Variable w : workload.
Variable g : engine.
Variable rule : leave_rule.
Variable forgets : bool.
Hypothesis form : well_formed w.
Hypothesis valid : valid_engine w g.
Variable T : nat.
Notation r := (cancel_run w g rule forgets T).
Notation leave := (cancel_leave w g rule forgets T).
Notation loop k := (cancel_loop w g rule forgets k).

Lemma cancel_form : well_formed r.
Proof. constructor; apply form. Qed.

Lemma cancel_valid : valid_run r.
Proof.
  constructor; [constructor|..].
  - intros x k Hx. apply cut_nonneg; auto.
  - intros x n Hx. apply cut_within; auto.
  - intros x k Hx. apply cut_unstarted.
  - intros x s Hx H. apply cstarts_spec in H. tauto.
Qed.

Lemma cancel_leave_ready u l : leave u = Some l -> (ready w u <= l)%nat.
Proof. intros E. apply left_spec in E as (_ & I & _). apply going_spec in I. tauto. Qed.

Lemma cancel_leaves : valid_leaves r leave.
Proof.
  constructor.
  - intros u l _. apply cancel_leave_ready.
  - intros x s l _ Hs El. apply cstarts_spec in Hs as (L & _ & _ & G & _).
    destruct (Nat.le_gt_cases l s) as [C|]; auto. apply left_spec in El as (_ & _ & El).
    rewrite (left_keeps w g rule forgets (S l) (S s) _ l) in G by (auto; lia). discriminate.
  - intros x l _ El. cbn [cost with_cost load exec cancel_run]. unfold real_cost. cbn in El. rewrite El. reflexivity.
Qed.

Lemma cancel_order : keeps_order_of_present r leave (given_tag r leave forgets).
Proof.
  intros x y s Hx Hy H [W1 W2] Ly.
  destruct (cstarts_spec w g rule forgets T x s H) as (L & _ & Rx & Gx & _ & H3).
  assert (Ny : c_starts (loop (S s)) y = None).
  { destruct (c_starts (loop (S s)) y) as [s'|] eqn:E; auto. exfalso. unfold started_before in W2. cbn in W2.
    unfold cancel_starts in W2. rewrite (cstarts_keep w g rule forgets (S s) T y s') in W2 by (auto; lia).
    destruct (cstarts_spec w g rule forgets _ _ _ E) as (L' & _). apply Nat.leb_gt in W2. lia. }
  assert (Gone : forall z, marked (c_left (loop (S s))) z = has_left leave z s).
  { intros z. rewrite <- has_left_marked. apply has_left_now. auto. }
  assert (Gy : c_left (loop (S s)) (unit_of w y) = None).
  { pose proof (Gone (unit_of w y)) as E. unfold marked in E. cbn in Ly. rewrite Ly in E.
    destruct (c_left (loop (S s)) (unit_of w y)); [discriminate|auto]. }
  assert (Lx : has_left leave (unit_of w x) s = false).
  { rewrite <- (Gone (unit_of w x)). unfold marked. rewrite Gx. auto. }
  specialize (H3 y Hy W1 Gy Ny). change (before w (given_tag r leave forgets) (unit_of w y) (unit_of w x) = false).
  rewrite <- H3.
  pose proof (unit_known w form x Hx) as Ux. pose proof (unit_known w form y Hy) as Uy.
  pose proof (tag_after r leave forgets (settlement r leave) (delivered r) (fun u l _ => cancel_leave_ready u l)
                (unit_of w x) s Ux Rx (here_remembered r leave forgets _ s Ux Lx)) as Tx.
  pose proof (tag_after r leave forgets (settlement r leave) (delivered r) (fun u l _ => cancel_leave_ready u l)
                (unit_of w y) s Uy W1 (here_remembered r leave forgets _ s Uy Ly)) as Ty.
  cbn in Ly. rewrite Lx in Tx. rewrite Ly in Ty.
  apply before_ext; rewrite (loop_tag w g rule forgets T) by (auto; apply (unit_known w form); auto);
    unfold given_tag, settled_tag; lra.
Qed.

Lemma loop_total k : (k <= T)%nat -> c_total (loop k) == total r k.
Proof.
  induction k; intros L; [reflexivity|]. rewrite total_S, <- IHk by lia.
  cbn [cancel_loop cancel_step c_total]. rewrite Qred_correct.
  rewrite <- (delivered_now w g rule forgets T k) by lia. reflexivity.
Qed.

Lemma loop_through k : (k <= T)%nat -> forall u G, In (u, G) (c_through (loop k)) ->
  exists n v, through r leave forgets u n v /\ G == settled_G r leave forgets n v.
Proof.
  induction k; intros L u G H; [destruct H|].
  set (now := filter (newly_through w (c_table (loop (S k))) (c_through (loop k)) k (c_level (loop (S k)))) (units w)).
  assert (D : c_through (loop (S k)) = map (fun u => (u, Qred (c_total (loop k) +
     fill (table_bag w (c_table (loop (S k)))) (c_level (loop k))
          (Qmax (c_level (loop k)) (tag_of (c_table (loop (S k))) u))))) now ++ c_through (loop k)) by reflexivity.
  rewrite D in H. apply in_app_or in H as [H|H]; [|apply IHk; auto; lia].
  apply in_map_iff in H as (u' & E0 & Hu). pose proof (f_equal fst E0) as Eu. pose proof (f_equal snd E0) as E.
  cbn [fst snd] in Eu, E. subst u'. clear E0 D.
  unfold now in Hu. apply filter_In in Hu as [Hu F].
  unfold newly_through in F. apply andb_prop in F as [F F2]. apply andb_prop in F as [F _].
  apply Nat.leb_le in F. apply Qle_bool_iff in F2.
  rewrite (loop_tag w g rule forgets T) in E, F2 by (auto; lia).
  rewrite <- (loop_level w g rule forgets T) in F2 by lia. rewrite <- (loop_level w g rule forgets T k) in E by lia.
  exists k, (Qmax (settled_level r leave forgets k) (settled_tag r leave forgets k u)). split.
  - split; auto. split; [apply Q.le_max_l|]. split; [|apply Q.le_max_r]. apply Q.max_lub; auto.
    apply level_step. intros n. apply delivered_nonneg. apply (valid_run_service r cancel_valid).
  - rewrite <- E, Qred_correct, loop_total by lia. unfold settled_G.
    rewrite (loop_table w g rule forgets T) by lia. reflexivity.
Qed.
End Cancelled.

Theorem theorem_cancelled_run_holds : theorem_cancelled_run.
Proof.
  intros w g rule forgets form valid T r leave. split; [apply cancel_valid; auto|]. split; [apply cancel_leaves|].
  split; [apply cancel_order; auto|]. intros j G E. apply find_in_some in E.
  apply (loop_through w g rule forgets valid T T) in E; auto.
Qed.

Theorem theorem_B_cancelled_holds : theorem_B_cancelled.
Proof.
  intros w g rule forgets form valid T r leave tag x s b G Hx Hs j HQ EG.
  destruct (theorem_cancelled_run_holds w g rule forgets form valid T) as (V & L & O & Th).
  destruct (Th j G EG) as (n & v & Tv & ->).
  apply (theorem_B_settled_holds r leave forgets (cancel_form w g rule forgets form T) V L O x s b n v); auto.
Qed.
