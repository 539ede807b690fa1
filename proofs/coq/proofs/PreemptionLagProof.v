(** * Theorem B with preemption: proof

    The reference's side is as without preemption; the engine's side counts restarts among the starts. *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums OrderFacts ServiceFacts AheadFacts FairClockProof.
From Justitia Require Export PreemptionLag.

Section Engine.
Variable r : preemptive_run.
Variable tag : nat -> Q.
Hypothesis form : well_formed r.
Hypothesis valid : valid_preemptive_run r.
Hypothesis order : enters_in_order r tag.

(** Outside the engine nothing is received. *)
Lemma got_flat x b n : In x (inferences r) -> (b <= n)%nat ->
  (forall k, (b <= k < n)%nat -> running r x k = false) -> got r x n == got r x b.
Proof.
  intros Hx. induction n; intros L H; [replace b with 0%nat by lia; reflexivity|].
  destruct (Nat.eq_dec b (S n)) as [->|]; [reflexivity|].
  rewrite got_S, IHn by (try lia; intros; apply H; lia).
  rewrite (no_service_outside r valid) by (auto; apply H; lia). lra.
Qed.

Lemma first_running x b n : (forall k, (b <= k < n)%nat -> running r x k = false) \/
  exists k, (b <= k < n)%nat /\ running r x k = true /\ forall k', (b <= k' < k)%nat -> running r x k' = false.
Proof.
  induction n; [left; intros; lia|]. destruct IHn as [H|(k & H1 & H2 & H3)].
  - destruct (le_lt_dec b n) as [L|L]; [|left; intros; lia]. destruct (running r x n) eqn:E.
    + right. exists n. split; [lia|auto].
    + left. intros k Hk. destruct (Nat.eq_dec k n) as [->|]; auto. apply H. lia.
  - right. exists k. split; [lia|auto].
Qed.

(** What enters after [t0] without being behind [j] belongs to a unit that became ready after [t0]. *)
Lemma calm_ready_after j b s y k : In y (inferences r) -> calm r tag j b s ->
  before r tag j (unit_of r y) = false -> ran_just_before r y b = false -> (b <= k)%nat -> running r y k = true ->
  (b <= ready r (unit_of r y))%nat.
Proof.
  intros Hy (_ & _ & Q3) By Hb Hk Hr. destruct b as [|t0]; [lia|].
  destruct (Nat.le_gt_cases (S t0) (ready r (unit_of r y))) as [|L]; auto. exfalso.
  destruct (Q3 t0 eq_refl) as (z & Hz & Ez & Bz).
  pose proof (before_trans r tag _ _ _ By Bz) as C.
  rewrite (order z y t0) in C; auto; [discriminate|]. split; [lia|]. split; [exact Hb|]. exists k. split; [lia|auto].
Qed.

Lemma delivered_ahead_preempting x s b :
  In x (inferences r) -> first_start r x s -> calm r tag (unit_of r x) b s ->
  (b <= ready r (unit_of r x))%nat /\
  total r s - total r b + cost r x <= in_engine r b + work_ahead r tag (true_cost r) (unit_of r x) b s.
Proof.
  intros Hx [Hs1 Hs2] HQ. set (j := unit_of r x) in *. pose proof HQ as (Q1 & Q2 & _).
  pose proof (preemptive_service r valid) as account.
  assert (Xb : ran_just_before r x b = false).
  { destruct b as [|t0]; [reflexivity|]. apply Hs2. lia. }
  assert (Hr : (b <= ready r j)%nat) by (apply (calm_ready_after j b s x s); auto; apply before_irrefl).
  split; auto. rewrite total_window. apply work_ahead_covers; auto.
  - apply (unit_known r form).
  - intros y Hy. apply (cost_nonneg r account y Hy).
  - apply ahead_true. split; [|apply before_irrefl]. split; auto. apply (no_running_before_ready r valid x s); auto.
  - rewrite (got_flat x b s) by (auto; intros; apply Hs2; lia). lra.
  - rewrite Xb. lra.
  - intros y Hy. cbv beta. pose proof (cost_nonneg r account y Hy) as Cy.
    pose proof (service_within_cost r account y s Hy) as Ds.
    destruct (ran_just_before r y b) eqn:Eb; [destruct (ahead r tag j b s (unit_of r y)); lra|].
    destruct (first_running y b s) as [F|(k & F1 & F2 & F3)].
    + rewrite (got_flat y b s) by auto. destruct (ahead r tag j b s (unit_of r y)); lra.
    + assert (En : enters r y k).
      { split; auto. destruct (Nat.eq_dec k b) as [->|]; auto. destruct k as [|k']; [reflexivity|]. apply F3. lia. }
      assert (By : before r tag j (unit_of r y) = false).
      { destruct (before r tag j (unit_of r y)) eqn:E1; auto. exfalso. apply (Q2 k); [lia|]. exists y. auto. }
      assert (Ay : (b <= ready r (unit_of r y))%nat) by (apply (calm_ready_after j b s y k); auto; lia).
      assert (A : ahead r tag j b s (unit_of r y) = true).
      { apply ahead_true. split; auto. pose proof (no_running_before_ready r valid y k Hy F2). lia. }
      rewrite A. pose proof (got_nonneg r account y b Hy). lra.
Qed.
End Engine.

Theorem theorem_B_preemption_holds : theorem_B_preemption.
Proof.
  intros r f form valid is_fair order x s b n [Hx Hs HQ (F1 & F2 & _)] j.
  destruct (delivered_ahead_preempting r (tag r f) form valid order x s b Hx Hs HQ) as [Hb E].
  pose proof (served_ahead r f j b s n (tag r f j) form is_fair ltac:(unfold j; lia) F2 (Qle_refl _)) as R.
  pose proof (work_ahead_predicted r (tag r f) j b s) as U. unfold G. fold j in E. lra.
Qed.

Theorem theorem_B_preemption_clock_holds : theorem_B_preemption_clock.
Proof.
  intros r f form valid order x s b n. apply theorem_B_preemption_holds; auto.
  apply theorem_clock_fair_holds; auto. apply (preemptive_service r valid).
Qed.
