(** * Theorem B in time: proofs *)
Require Import List Arith Lia ZArith QArith Qround Lqa Bool.
From Justitia Require Import Sums ServiceFacts ReferenceFacts AheadFacts ServiceLagProof.
From Justitia Require Export DelayInTime.

(** ** The start *)

(** From step [n] to step [n + m] at least [R] a step is delivered. *)
Lemma total_rate (e : execution) R n m :
  (forall k, (n <= k < n + m)%nat -> R <= delivered e k) -> total e n + R * q m <= total e (n + m).
Proof.
  induction m; intros H; [rewrite Nat.add_0_r, q_0; lra|]. specialize (IHm ltac:(intros; apply H; lia)).
  rewrite Nat.add_succ_r, total_S, q_S. specialize (H (n + m)%nat ltac:(lia)). lra.
Qed.

(** Inside the step in which the reference finishes, [d] of it are delivered and [h] of these before it does. *)
Lemma rest_of_step R d h : 0 < R -> R <= d -> 0 <= h <= d -> R * (1 - h / d) <= d - h.
Proof.
  intros HR Hd [H0 H1]. assert (0 <= 1 - h / d).
  { assert (h / d <= 1) by (apply div_le; lra). lra. }
  assert (E : d - h == d * (1 - h / d)).
  { assert (M : d * (h / d) == h) by (apply mul_div; lra). lra. }
  rewrite E. apply Qmult_le_compat_r; auto.
Qed.

(** If [x] still waits at the finish time, the engine delivers at least [R] per step from then to its start. *)
Lemma rate_after_finish (r : run) (f : reference) R : fair r f -> 0 < R -> busy r R ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in let g := finish_time r f j n in
  g < q s -> R * (q s - g) <= total r s - G r f j n.
Proof.
  intros is_fair HR Hbusy x s b n [Hx Hs _ F] j g Hg.
  pose proof F as (F1 & _). apply (handed_range r f is_fair) in F as F'.
  pose proof (finish_time_range r f is_fair j n F) as [T1 _]. fold g in T1.
  assert (L : (n < s)%nat) by (apply q_lt_inv; lra).
  assert (Hn : R <= delivered r n) by (apply (Hbusy x s); auto; lia).
  pose proof (rest_of_step R _ _ HR Hn F') as E.
  pose proof (total_rate r R (S n) (s - S n)) as W. replace (S n + (s - S n))%nat with s in W by lia.
  rewrite total_S in W. specialize (W ltac:(intros k Hk; apply (Hbusy x s); auto; lia)).
  assert (N : q s == q n + 1 + q (s - S n)).
  { rewrite <- q_S, <- q_plus. replace (S n + (s - S n))%nat with s by lia. reflexivity. }
  unfold g, finish_time, G in *. fold j in E. rewrite N in *. lra.
Qed.

Theorem theorem_B_start_time_holds : theorem_B_start_time.
Proof.
  intros r f form valid is_fair order R HR Hbusy x s b n C j g.
  destruct (Qlt_le_dec g (q s)) as [L|L]; [right|left; auto].
  pose proof (rate_after_finish r f R is_fair HR Hbusy x s b n C L) as E. cbv zeta in E. fold j g in E.
  pose proof (theorem_B_predicted_holds r f form valid is_fair order x s b n C) as B. cbv zeta in B. fold j in B.
  assert (q s - g <= (inflight r b - cost r x + underestimate r (tag r f) j b s) / R).
  { apply le_div; auto. lra. }
  lra.
Qed.

(** ** The end *)
Lemma ends_by (r : run) D x s t : ends_within r D -> In x (inferences r) -> start r x = Some s ->
  ends r x t -> (t <= s + D)%nat.
Proof.
  intros HD Hx Hs [_ E]. destruct (Nat.le_gt_cases t (s + D)) as [|L]; auto. exfalso.
  apply (E _ L), HD; auto.
Qed.

Lemma inflight_nonneg (r : run) b : valid_run r -> 0 <= inflight r b.
Proof.
  intros valid. apply sumq_nonneg. intros x Hx. destruct (started_before r x b); [|lra].
  pose proof (service_within_cost r (valid_run_service r valid) x b Hx). lra.
Qed.

Theorem theorem_B_time_holds : theorem_B_time.
Proof.
  intros r f form valid is_fair order exact R D HR Hbusy HD x s b n t C E.
  pose proof C as [Hx Hs _ _]. pose proof (q_le _ _ (ends_by r D x s t HD Hx Hs E)) as L. rewrite q_plus in L.
  pose proof (inflight_nonneg r b valid) as I0. assert (0 <= inflight r b / R) by (apply div_nonneg; auto).
  destruct (theorem_B_start_time_holds r f form valid is_fair order R HR Hbusy x s b n C) as [S1|S1]; [lra|].
  cbv zeta in S1. rewrite underestimate_zero in S1 by auto.
  pose proof (cost_nonneg r (valid_run_service r valid) x Hx) as C0.
  assert ((inflight r b - cost r x + 0) / R <= inflight r b / R).
  { apply div_le; auto. rewrite mul_div by auto. lra. }
  lra.
Qed.

(** ** What is in flight *)
Theorem theorem_inflight_bound_holds : theorem_inflight_bound.
Proof.
  intros r valid M D HM HD b. pose proof (valid_run_service r valid) as account.
  set (e := (b + (D - 1))%nat).
  apply Qle_trans with (total r e - total r b).
  - rewrite total_window. apply sumq_le. intros x Hx.
    pose proof (got_mono r account x b e Hx ltac:(lia)) as Mo.
    unfold started_before. destruct (start r x) as [s|] eqn:Hs; [|lra].
    destruct (Nat.ltb_spec s b) as [L|L]; [|lra].
    pose proof (HD x s Hx Hs) as Dn. unfold done in Dn.
    pose proof (got_mono r account x (s + D) e Hx ltac:(lia)). lra.
  - unfold e. generalize (D - 1)%nat. clear - HM. induction n.
    + rewrite Nat.add_0_r, q_0. lra.
    + rewrite Nat.add_succ_r, total_S, q_S. specialize (HM (b + n)%nat). lra.
Qed.

Theorem theorem_B1_holds : theorem_B1.
Proof.
  intros r f form valid is_fair order exact M R D HR HM Hbusy HD x s b n t C E.
  pose proof (theorem_B_time_holds r f form valid is_fair order exact R D HR Hbusy HD x s b n t C E) as B.
  pose proof (theorem_inflight_bound_holds r valid M D HM HD b) as I.
  assert (inflight r b / R <= M / R * q (D - 1)).
  { apply div_le; auto. assert (Z : R * (M / R) == M) by (apply mul_div; auto).
    setoid_replace (R * (M / R * q (D - 1))) with (R * (M / R) * q (D - 1)) by ring. rewrite Z. exact I. }
  lra.
Qed.

Theorem theorem_B1_full_rate_holds : theorem_B1_full_rate.
Proof.
  intros r f form valid is_fair order exact M D HM Hmost Hbusy HD x s b n t C E.
  pose proof (theorem_B1_holds r f form valid is_fair order exact M M D HM Hmost Hbusy HD x s b n t C E) as B.
  assert (Z : M / M == 1) by (unfold Qdiv; apply Qmult_inv_r; lra). rewrite Z in B. lra.
Qed.

(** ** Existence *)
Lemma done_dec (e : execution) x n : {done e x n} + {~ done e x n}.
Proof. unfold done. destruct (Qlt_le_dec (got e x n) (cost e x)) as [L|L]; [right; lra|left; auto]. Qed.

Theorem theorem_ends_exists_holds : theorem_ends_exists.
Proof.
  intros r D HD x s Hx Hs. specialize (HD x s Hx Hs). revert HD. generalize (s + D)%nat. intros n Hn.
  assert (F : forall m, (exists t, (t <= m)%nat /\ ends r x t) \/ forall t, (t <= m)%nat -> ~ done r x t).
  { induction m as [|m [(t & L & E)|N]].
    - destruct (done_dec r x 0) as [Dn|Dn].
      + left. exists 0%nat. split; auto. split; auto. intros; lia.
      + right. intros t L. replace t with 0%nat by lia. auto.
    - left. exists t. split; auto.
    - destruct (done_dec r x (S m)) as [Dn|Dn].
      + left. exists (S m). split; auto. split; auto. intros t L. apply N. lia.
      + right. intros t L. destruct (Nat.eq_dec t (S m)) as [->|]; auto. apply N. lia. }
  destruct (F n) as [E|N]; auto. exfalso. apply (N n); auto.
Qed.

Theorem theorem_B_all_start_holds : theorem_B_all_start.
Proof.
  intros r valid R HR Hbusy x Hx. destruct (start r x) as [s|] eqn:Hs; [eauto|exfalso].
  pose proof (valid_run_service r valid) as account. set (a := ready r (unit_of r x)).
  set (C := sumq (cost r) (inferences r)). set (m := Z.to_nat (Qfloor (C / R) + 1)).
  assert (W : forall k, (a <= k)%nat -> waiting r x k).
  { intros k Hk. split; auto. unfold started_before. rewrite Hs. reflexivity. }
  pose proof (total_rate r R a m ltac:(intros k Hk; apply (Hbusy x); auto; apply W; lia)) as T.
  assert (U : total r (a + m) <= C).
  { rewrite total_by_inference. apply sumq_le. intros y Hy. apply (service_within_cost r account); auto. }
  pose proof (total_mono r account 0 a ltac:(lia)) as T0.
  assert (Z0 : total r 0 == 0) by reflexivity.
  assert (C0 : 0 <= C / R).
  { apply div_nonneg; auto. apply sumq_nonneg. intros y Hy. apply (cost_nonneg r account); auto. }
  assert (Hm : C / R < q m).
  { unfold q, m. pose proof (Qlt_floor (C / R)) as Fl. pose proof (Qfloor_resp_le 0 (C / R) C0) as F0.
    rewrite Z2Nat.id by (cbn in F0; lia). exact Fl. }
  assert (R * (C / R) < R * q m) by (apply Qmult_lt_l; auto). rewrite mul_div in H by auto. lra.
Qed.
