(** * The lag against any reference at all

    Nothing is asked of the reference here but what it has _given_ to each unit before each step: it never takes
    back, gives nothing before a unit is ready, and in a step no more than the engine delivers. The lag then has
    the same bound at every moment at which the reference has given each unit ahead its predicted cost, or what
    it really costs if that is less.

    The order, too, is asked of fewer: only inferences that do start may not be passed over. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums OrderFacts ServiceFacts AheadFacts.
From Justitia Require Export Lag.
Import ListNotations.

(** An inference that starts later was not passed over, while it was ready, by one that is behind it. *)
Definition keeps_order_of_started (r : run) (tag : nat -> Q) : Prop :=
  forall x y s s', In x (inferences r) -> In y (inferences r) -> start r x = Some s -> start r y = Some s' ->
    (ready r (unit_of r y) <= s < s')%nat -> before r tag (unit_of r y) (unit_of r x) = false.

(** From step [b] on nothing behind [j] starts, and whatever else starts became ready since. *)
Definition clean (r : run) (tag : nat -> Q) (j b s : nat) : Prop :=
  (b <= s)%nat /\
  (forall k, (b <= k < s)%nat -> ~ starts_after r tag j k) /\
  (forall y s', In y (inferences r) -> start r y = Some s' -> (b <= s')%nat ->
     before r tag j (unit_of r y) = false -> (b <= ready r (unit_of r y))%nat).

Lemma quiet_clean (r : run) tag j b s : keeps_order_of_started r tag -> quiet r tag j b s -> clean r tag j b s.
Proof.
  intros order (Q1 & Q2 & Q3). split; auto. split; auto. intros y s' Hy Sy L By. destruct b as [|t0]; [lia|].
  destruct (Nat.le_gt_cases (S t0) (ready r (unit_of r y))) as [|C]; auto. exfalso.
  destruct (Q3 t0 eq_refl) as (z & Hz & Sz & Bz).
  pose proof (before_trans r tag _ _ _ By Bz) as E. rewrite (order z y t0 s') in E; auto; [discriminate|lia].
Qed.

(** The engine's side, as [delivered_ahead]. *)
Lemma delivered_ahead_clean (r : run) tag x s b : well_formed r -> valid_run r ->
  In x (inferences r) -> start r x = Some s -> clean r tag (unit_of r x) b s ->
  (b <= ready r (unit_of r x))%nat /\
  total r s - total r b + cost r x <= inflight r b + work_ahead r tag (true_cost r) (unit_of r x) b s.
Proof.
  intros form valid Hx Hs (Q1 & Q2 & Q3). set (j := unit_of r x) in *.
  pose proof (valid_run_service r valid) as account.
  assert (Hr : (b <= ready r j)%nat) by (apply (Q3 x s); auto; apply before_irrefl).
  split; auto. rewrite total_window. apply work_ahead_covers; auto.
  - apply (unit_known r form).
  - intros y Hy. apply (cost_nonneg r account y Hy).
  - apply ahead_true. split; [|apply before_irrefl]. split; auto. apply (no_start_before_ready r valid x s); auto.
  - rewrite (got_zero r valid x s), (got_zero r valid x b) by (auto; apply (started_before_ge r x s); auto). lra.
  - rewrite (proj2 (started_before_ge r x s b Hs)) by auto. lra.
  - intros y Hy. cbv beta. pose proof (cost_nonneg r account y Hy) as Cy.
    pose proof (service_within_cost r account y s Hy) as Ds.
    destruct (started_before r y b) eqn:Eb; [destruct (ahead r tag j b s (unit_of r y)); lra|].
    rewrite (got_zero r valid y b) by auto.
    destruct (started_before r y s) eqn:Es;
      [|rewrite (got_zero r valid y s) by auto; destruct (ahead r tag j b s (unit_of r y)); lra].
    enough (A : ahead r tag j b s (unit_of r y) = true) by (rewrite A; lra).
    unfold started_before in Es. destruct (start r y) as [sy|] eqn:Sy; [|discriminate].
    apply Nat.ltb_lt in Es. pose proof (proj1 (started_before_ge r y sy b Sy) Eb) as Lb.
    assert (By : before r tag j (unit_of r y) = false).
    { destruct (before r tag j (unit_of r y)) eqn:E1; auto. exfalso. apply (Q2 sy); [lia|]. exists y. auto. }
    apply ahead_true. split; auto. split; [apply (Q3 y sy); auto|].
    pose proof (no_start_before_ready r valid y sy Hy Sy). lia.
Qed.

(** ** The bound *)
Section Given.
Variable r : run.
Variable tag : nat -> Q.
Variable given : nat -> nat -> Q.         (* [given u k]: what the reference has given [u] before step [k] *)
Hypothesis form : well_formed r.
Hypothesis valid : valid_run r.
Hypothesis given_step : forall u k, In u (units r) -> given u k <= given u (S k).
Hypothesis given_zero : forall u k, In u (units r) -> (k <= ready r u)%nat -> given u k == 0.
Hypothesis given_rate : forall k, sumq (fun u => given u (S k) - given u k) (units r) <= delivered r k.

Lemma given_mono u a b : In u (units r) -> (a <= b)%nat -> given u a <= given u b.
Proof.
  intros Hu. induction b; intros H; [replace a with 0%nat by lia; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [lra|].
  apply Qle_trans with (given u b); [apply IHb; lia|auto].
Qed.

Lemma given_window a b : (a <= b)%nat ->
  sumq (fun u => given u b - given u a) (units r) <= total r b - total r a.
Proof.
  intros H. induction b; [replace a with 0%nat by lia; rewrite sumq_minus; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [rewrite sumq_minus; lra|].
  specialize (IHb ltac:(lia)). pose proof (given_rate b) as R. rewrite total_S.
  rewrite sumq_minus in R, IHb |- *. lra.
Qed.

(** [by_then u]: what the reference has given [u] by some moment of step [n]. *)
Lemma lag_given x s b n by_then :
  In x (inferences r) -> start r x = Some s -> clean r tag (unit_of r x) b s ->
  (ready r (unit_of r x) <= n)%nat -> (forall u, In u (units r) -> given u n <= by_then u) ->
  (forall u, In u (units r) -> ahead r tag (unit_of r x) b s u = true ->
     Qmin (predicted r u) (true_cost r u) <= by_then u) ->
  total r s <= (total r n + sumq (fun u => by_then u - given u n) (units r)) + inflight r b - cost r x
               + underestimate r tag (unit_of r x) b s.
Proof.
  intros Hx Hs HQ Hr Hn He. set (j := unit_of r x) in *.
  destruct (delivered_ahead_clean r tag x s b form valid Hx Hs HQ) as [Hb E]. fold j in Hb, E.
  assert (R : work_ahead r tag (fun u => Qmin (predicted r u) (true_cost r u)) j b s
              <= total r n - total r b + sumq (fun u => by_then u - given u n) (units r)).
  { pose proof (given_window b n ltac:(lia)) as W.
    apply Qle_trans with (sumq (fun u => by_then u - given u b) (units r)).
    - apply sumq_le. intros u Hu. pose proof (Hn u Hu) as Au. pose proof (given_mono u b n Hu ltac:(lia)) as Bu.
      destruct (ahead r tag j b s u) eqn:A; [|lra]. specialize (He u Hu A).
      apply ahead_true in A as [[A _] _]. rewrite (given_zero u b) by auto. lra.
    - rewrite sumq_minus in W |- *. rewrite sumq_minus. lra. }
  assert (U : work_ahead r tag (true_cost r) j b s
              <= work_ahead r tag (fun u => Qmin (predicted r u) (true_cost r u)) j b s + underestimate r tag j b s).
  { unfold work_ahead, underestimate. rewrite <- sumq_plus. apply sumq_le. intros u _.
    destruct (ahead r tag j b s u); [|lra].
    pose proof (Q.le_max_r 0 (true_cost r u - predicted r u)).
    pose proof (Q.le_max_l 0 (true_cost r u - predicted r u)).
    destruct (Q.min_spec (predicted r u) (true_cost r u)) as [[_ M]|[_ M]]; rewrite M; lra. }
  lra.
Qed.
End Given.
