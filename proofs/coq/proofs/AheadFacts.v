(** * The two sides of the lag

    After [t0] only inferences that are not behind [j] start, and their units became ready after [t0]:
    otherwise they would have started before the one behind. So the engine, from [b] to [s], delivers at most
    [I] plus the work of these units ([work_ahead]), and the reference serves all of their predicted work
    between [S(b)] and [G_j] ([served_ahead]). *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums OrderFacts ServiceFacts ReferenceFacts.
From Justitia Require Export Lag.

Lemma ahead_true w tag j b s u :
  ahead w tag j b s u = true <-> (b <= ready w u <= s)%nat /\ before w tag j u = false.
Proof.
  unfold ahead. rewrite !andb_true_iff, !Nat.leb_le, negb_true_iff. tauto.
Qed.

(** ** The sum over the units ahead *)
Section Workload.
Variable w : workload.
Variable tag : nat -> Q.

Definition work_ahead (cost : nat -> Q) (j b s : nat) : Q :=
  sumq (fun u => if ahead w tag j b s u then cost u else 0) (units w).

Lemma work_ahead_predicted j b s :
  work_ahead (true_cost w) j b s <= work_ahead (predicted w) j b s + underestimate w tag j b s.
Proof.
  unfold work_ahead, underestimate. rewrite <- sumq_plus. apply sumq_le. intros u _.
  destruct (ahead w tag j b s u); [|lra]. pose proof (Q.le_max_r 0 (true_cost w u - predicted w u)). lra.
Qed.

Lemma underestimate_zero j b s : never_underestimated w -> underestimate w tag j b s == 0.
Proof.
  intros H. unfold underestimate. rewrite <- (sumq_0 (units w)). apply sumq_ext. intros u Hu.
  destruct (ahead w tag j b s u); [|lra]. rewrite Q.max_l; [lra|]. specialize (H u Hu). lra.
Qed.

(** Of each inference [rest x] is left from before [b], or its unit is ahead. *)
Lemma work_ahead_covers (amount rest : nat -> Q) p j b s :
  (forall x, In x (inferences w) -> In (unit_of w x) (units w)) ->
  (forall x, In x (inferences w) -> 0 <= cost w x) ->
  In p (inferences w) -> unit_of w p = j -> ahead w tag j b s j = true -> amount p == 0 -> rest p == 0 ->
  (forall x, In x (inferences w) ->
     amount x <= rest x + (if ahead w tag j b s (unit_of w x) then cost w x else 0)) ->
  sumq amount (inferences w) + cost w p <= sumq rest (inferences w) + work_ahead (true_cost w) j b s.
Proof.
  intros Hu Hc Hp Hj Ha Z1 Z2 H.
  pose (mine := fun x => if ahead w tag j b s (unit_of w x) then cost w x else 0).
  apply Qle_trans with (sumq (fun x => rest x + mine x) (inferences w)).
  - assert (E : cost w p == rest p + mine p) by (unfold mine; rewrite Hj, Ha; lra).
    rewrite E. apply (sumq_le_except amount (fun x => rest x + mine x)); auto.
  - rewrite sumq_plus. unfold mine.
    pose proof (sumq_group (cost w) (unit_of w) (ahead w tag j b s) (inferences w) (units w) Hu Hc) as Hg.
    unfold work_ahead, true_cost. lra.
Qed.
End Workload.

(** ** The reference *)
Lemma served_ahead (e : execution) f j b s n v : well_formed e -> fair e f ->
  (b <= n)%nat -> V f n <= v -> tag e f j <= v ->
  work_ahead e (tag e f) (predicted e) j b s <= total e n - total e b + handed e f n v.
Proof.
  intros form is_fair Hbn Hv Hj.
  apply Qle_trans with (sumq (fun u => received e f u v - received e f u (V f b)) (units e));
    [|apply handed_window; auto].
  unfold work_ahead. apply sumq_le. intros u Hu. pose proof (V_mono e f is_fair b n Hbn) as Vb.
  destruct (ahead e (tag e f) j b s u) eqn:A.
  - apply ahead_true in A as [[A1 _] A3]. apply before_false in A3.
    rewrite (received_full e f form is_fair u v) by (auto; lra). rewrite (received_zero e f u (V f b)); [lra|].
    pose proof (base_after_ready e f is_fair u Hu). pose proof (V_mono e f is_fair b (ready e u) A1). lra.
  - pose proof (received_mono e f is_fair u (V f b) v Hu ltac:(lra)). lra.
Qed.

(** ** The engine *)
Section Engine.
Variable r : run.
Variable tag : nat -> Q.
Hypothesis form : well_formed r.
Hypothesis valid : valid_run r.
Hypothesis order : keeps_order r tag.

Lemma got_zero x n : In x (inferences r) -> started_before r x n = false -> got r x n == 0.
Proof.
  intros Hx H. apply upto_zero. intros k Hk. apply (no_service_before_start r valid); auto.
  unfold started_before in *. destruct (start r x) as [s|]; auto. apply Nat.ltb_ge in H. apply Nat.ltb_ge. lia.
Qed.

Lemma started_before_ge x s b : start r x = Some s -> started_before r x b = false <-> (b <= s)%nat.
Proof. intros H. unfold started_before. rewrite H, Nat.ltb_ge. tauto. Qed.

(** What is not behind [j] and did not start by [t0] became ready after [t0]. *)
Lemma ready_after j b s y : In y (inferences r) -> quiet r tag j b s ->
  before r tag j (unit_of r y) = false -> started_before r y b = false -> (b <= ready r (unit_of r y))%nat.
Proof.
  intros Hy (_ & _ & Q3) Hb Hs. destruct b as [|t0]; [lia|].
  destruct (Nat.le_gt_cases (S t0) (ready r (unit_of r y))) as [|L]; auto. exfalso.
  destruct (Q3 t0 eq_refl) as (z & Hz & Sz & Bz).
  pose proof (before_trans r tag _ _ _ Hb Bz) as C.
  rewrite (order z y t0) in C; auto; [discriminate|]. split; [lia|auto].
Qed.

Lemma delivered_ahead x s b : In x (inferences r) -> start r x = Some s -> quiet r tag (unit_of r x) b s ->
  (b <= ready r (unit_of r x))%nat /\
  total r s - total r b + cost r x <= inflight r b + work_ahead r tag (true_cost r) (unit_of r x) b s.
Proof.
  intros Hx Hs HQ. set (j := unit_of r x) in *. pose proof HQ as (Q1 & Q2 & _).
  pose proof (valid_run_service r valid) as account.
  assert (Hxb : started_before r x b = false) by (apply (started_before_ge x s); auto).
  assert (Hxs : started_before r x s = false) by (apply (started_before_ge x s); auto).
  assert (Hr : (b <= ready r j)%nat) by (apply (ready_after j b s x); auto; apply before_irrefl).
  split; auto. rewrite total_window. apply work_ahead_covers; auto.
  - apply (unit_known r form).
  - intros y Hy. apply (cost_nonneg r account y Hy).
  - apply ahead_true. split; [|apply before_irrefl]. split; auto. apply (no_start_before_ready r valid x s); auto.
  - rewrite (got_zero x s), (got_zero x b) by auto. lra.
  - rewrite Hxb. lra.
  - intros y Hy. cbv beta. pose proof (cost_nonneg r account y Hy) as Cy.
    pose proof (service_within_cost r account y s Hy) as Ds.
    destruct (started_before r y b) eqn:Eb; [destruct (ahead r tag j b s (unit_of r y)); lra|].
    rewrite (got_zero y b) by auto.
    destruct (started_before r y s) eqn:Es;
      [|rewrite (got_zero y s) by auto; destruct (ahead r tag j b s (unit_of r y)); lra].
    enough (A : ahead r tag j b s (unit_of r y) = true) by (rewrite A; lra).
    unfold started_before in Es. destruct (start r y) as [sy|] eqn:Sy; [|discriminate].
    apply Nat.ltb_lt in Es. pose proof (proj1 (started_before_ge y sy b Sy) Eb) as Lb.
    assert (By : before r tag j (unit_of r y) = false).
    { destruct (before r tag j (unit_of r y)) eqn:E1; auto. exfalso. apply (Q2 sy); [lia|]. exists y. auto. }
    apply ahead_true. split; auto. split; [apply (ready_after j b s y); auto|].
    pose proof (no_start_before_ready r valid y sy Hy Sy). lia.
Qed.
End Engine.
