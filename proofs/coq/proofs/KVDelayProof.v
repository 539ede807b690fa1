(** * Theorem B in time for KV token-steps: proofs *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums Windows AheadFacts LoopFacts KVFacts MemoryFacts.
From Justitia Require Import ExecutableLagProof FairClockProof DelayInTimeProof.
From Justitia Require Export KVDelay.

Theorem theorem_kv_delivers_held_holds : theorem_kv_delivers_held.
Proof.
  intros w p d test T k r. unfold delivered, held. rewrite <- sumq_q. apply sumq_ext. intros x _.
  cbn. unfold service_of. destruct (starts w (kv_engine p d test) T x) as [s|]; [|reflexivity].
  cbn [work kv_engine]. unfold kv, inwin.
  destruct (Nat.leb_spec s k), (Nat.ltb_spec (k - s) (d x)), (Nat.ltb_spec k (s + d x)); cbn [andb]; try lia;
    reflexivity.
Qed.

Lemma kv_got w p d test T x s n : let r := closed_loop w (kv_engine p d test) T in
  start r x = Some s -> got r x n == q (kv_cost (p x) (Nat.min (n - s) (d x))).
Proof.
  intros r Hs. pose proof (got_of w (kv_engine p d test) (starts w (kv_engine p d test) T) x n) as E.
  cbn in Hs. rewrite Hs in E. cbn [work kv_engine] in E. rewrite kv_upto in E. exact E.
Qed.

Lemma kv_done w p d test T x s n : kv_costs w p d -> let r := closed_loop w (kv_engine p d test) T in
  In x (inferences w) -> start r x = Some s -> (s + d x <= n)%nat -> done r x n.
Proof.
  intros costs r Hx Hs L. unfold done. unfold r. rewrite (kv_got w p d test T x s n Hs).
  cbn [cost load exec closed_loop execution_of]. rewrite (costs x Hx). apply q_le, kv_cost_mono. lia.
Qed.

Theorem theorem_kv_ends_holds : theorem_kv_ends.
Proof.
  intros w p d test T costs r x s Hx Hd Hs. split; [apply (kv_done w p d test T x s); auto|].
  intros m L D. unfold done, r in D. rewrite (kv_got w p d test T x s m Hs) in D.
  cbn [cost load exec closed_loop execution_of] in D. rewrite (costs x Hx) in D. apply q_le_inv in D.
  pose proof (kv_cost_strict (p x) (Nat.min (m - s) (d x)) (d x) ltac:(lia)). lia.
Qed.

Section Delay.
Variable w : workload.
Variables p d : nat -> nat.
Variable test : (nat -> option nat) -> nat -> nat -> bool.
Variable T : nat.
Hypothesis form : well_formed w.
Hypothesis costs : kv_costs w p d.
Hypothesis exact : never_underestimated w.
Let r := closed_loop w (kv_engine p d test) T.
Let f := reference_of r.

Lemma kv_valid : valid_run r.
Proof. apply theorem_closed_loop_valid_holds; auto. apply kv_engine_valid; auto. Qed.

Lemma kv_time R : 0 < R -> busy r R -> forall x s b n, comparison r f x s b n ->
  q (s + d x) <= finish_time r f (unit_of w x) n + inflight r b / R + q (d x).
Proof.
  intros HR Hbusy x s b n C. rewrite q_plus.
  pose proof (theorem_B_start_time_holds r f form kv_valid) as S1.
  specialize (S1 (theorem_clock_fair_holds r form (valid_run_service r kv_valid))
                 (theorem_closed_loop_keeps_order_holds w _ form (kv_engine_valid w p d test costs) T)
                 R HR Hbusy x s b n C).
  cbv zeta in S1. pose proof (inflight_nonneg r b kv_valid) as I0.
  assert (0 <= inflight r b / R) by (apply div_nonneg; auto).
  destruct S1 as [S1|S1]; [cbn [unit_of load exec] in S1; unfold r in *; cbn in *; lra|].
  rewrite underestimate_zero in S1 by auto.
  destruct C as [Hx _ _ _]. pose proof (ServiceFacts.cost_nonneg r (valid_run_service r kv_valid) x Hx) as C0.
  assert ((inflight r b - cost r x + 0) / R <= inflight r b / R).
  { apply div_le; auto. rewrite mul_div by auto. lra. }
  change (unit_of r x) with (unit_of w x) in S1. lra.
Qed.
End Delay.

Theorem theorem_B_kv_time_holds : theorem_B_kv_time.
Proof. intros w p d test T form costs exact r f R. apply kv_time; auto. Qed.

Theorem theorem_B1_kv_holds : theorem_B1_kv.
Proof.
  intros w p d test T form costs exact r f M R D HR Hbusy HD HM x s b n C.
  pose proof (kv_time w p d test T form costs exact R HR Hbusy x s b n C) as B. fold r in B. fold f in B.
  pose proof (theorem_inflight_bound_holds r (kv_valid w p d test T form costs) (q M) D) as I.
  assert (I' : inflight r b <= q M * q (D - 1)).
  { apply I.
    - intros k. unfold r. rewrite (theorem_kv_delivers_held_holds w p d test T k). apply q_le, HM.
    - intros y t Hy Hs. apply (kv_done w p d test T y t); auto. specialize (HD y Hy). lia. }
  assert (inflight r b / R <= q M / R * q (D - 1)).
  { apply div_le; auto. assert (Z : R * (q M / R) == q M) by (apply mul_div; auto).
    setoid_replace (R * (q M / R * q (D - 1))) with (R * (q M / R) * q (D - 1)) by ring. rewrite Z. exact I'. }
  lra.
Qed.

Theorem theorem_reserve_within_capacity_holds : theorem_reserve_within_capacity.
Proof.
  intros w p d M T distinct r k. split; [apply held_reserved|]. apply reserved_within; auto.
Qed.

Theorem theorem_B1_reserve_holds : theorem_B1_reserve.
Proof.
  intros w p d M T distinct form costs exact r f R D HR Hbusy HD. apply theorem_B1_kv_holds; auto.
  intros k. destruct (theorem_reserve_within_capacity_holds w p d M T distinct k).
  apply Nat.le_trans with (reserved w p d (start (closed_loop w (kv_engine p d (reserve w p d M)) T)) k); auto.
Qed.
