(** * The clock is a fluid server

    What all agents receive together while the level rises is what filling the tags up to the new level
    takes; so the clock hands out its rate, no more, and less only when everyone who has arrived is
    finished. *)
Require Import List Arith Lia ZArith QArith Qround Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts RateClock RateClockFacts.
Import ListNotations.

Section RateClockService.
Variable agents : list nat.
Variable arrival : nat -> nat.
Variable cost : nat -> Q.
Variable rate : Q.
Hypothesis rate_pos : 0 < rate.
Hypothesis cost_nonneg : forall i, 0 <= cost i.
Local Notation clock := (RateClock.clock agents arrival cost rate).
Local Notation level_at := (RateClock.level_at agents arrival cost rate).
Local Notation tags_before := (RateClock.tags_before agents arrival cost rate).
Local Notation tag := (RateClock.tag agents arrival cost rate).
Local Notation virtual_time := (RateClock.virtual_time agents arrival cost rate).
Local Notation received_at := (RateClock.received_at agents arrival cost rate).
Local Notation received := (RateClock.received agents arrival cost rate).
Local Notation reference_finish := (RateClock.reference_finish agents arrival cost rate).

Local Notation sum_over_tags := (RateClockFacts.sum_over_tags agents arrival cost rate).
Local Notation tag_among_tags := (RateClockFacts.tag_among_tags agents arrival cost rate).
Local Notation virtual_time_q := (RateClockFacts.virtual_time_q agents arrival cost rate).
Local Notation level_at_grows := (RateClockFacts.level_at_grows agents arrival cost rate rate_pos).
Local Notation virtual_time_range := (RateClockFacts.virtual_time_range agents arrival cost rate rate_pos).

Lemma received_at_range i v : 0 <= received_at i v /\ received_at i v <= cost i.
Proof.
  unfold RateClock.received_at. split; [apply Q.le_max_l|]. apply Q.max_lub; auto. apply Q.le_min_l.
Qed.
Lemma received_at_grows i v w : v <= w -> received_at i v <= received_at i w.
Proof.
  intros. unfold RateClock.received_at. apply Q.max_le_compat_l, Q.min_le_compat_l. lra.
Qed.
Lemma received_at_compat i v w : v == w -> received_at i v == received_at i w.
Proof. intros H. apply Qle_antisym; apply received_at_grows; lra. Qed.
Lemma received_at_before i v : v <= level_at (arrival i) -> received_at i v == 0.
Proof.
  intros. unfold RateClock.received_at. rewrite Q.max_l; [lra|].
  pose proof (Q.le_min_r (cost i) (v - level_at (arrival i))). lra.
Qed.
Lemma received_at_after i v : level_at (arrival i) <= v ->
  received_at i v == Qmin (tag i) v - level_at (arrival i).
Proof.
  intros. unfold RateClock.received_at.
  assert (Ht : tag i == level_at (arrival i) + cost i) by apply Qred_correct.
  pose proof (cost_nonneg i).
  destruct (Qlt_le_dec v (tag i)).
  - rewrite (Q.min_r (cost i)) by lra. rewrite (Q.min_r (tag i)) by lra. rewrite Q.max_r; lra.
  - rewrite (Q.min_l (cost i)) by lra. rewrite (Q.min_l (tag i)) by lra. rewrite Q.max_r; lra.
Qed.

(** service handed out from the beginning of step k until the level is w, inside step k. *)
Lemma service_in_step k w : level_at k <= w -> w <= level_at (S k) ->
  sumq (fun i => received_at i w - received_at i (level_at k)) agents
    == fill (tags_before (S k)) (level_at k) w.
Proof.
  intros H1 H2. unfold fill. rewrite (sum_over_tags (fun x => Qmin x w - Qmin x (level_at k))).
  apply sumq_ext. intros i _. destruct (Nat.ltb_spec (arrival i) (S k)) as [L|L].
  - assert (level_at (arrival i) <= level_at k) by (apply level_at_grows; lia).
    rewrite !received_at_after by lra. lra.
  - assert (level_at (S k) <= level_at (arrival i)) by (apply level_at_grows; lia).
    rewrite !received_at_before by lra. lra.
Qed.

Lemma service_over_steps u k : (u <= k)%nat ->
  sumq (fun i => received_at i (level_at k) - received_at i (level_at u)) agents <= rate * (q k - q u).
Proof.
  induction k; intros H.
  - replace u with 0%nat by lia. rewrite sumq_minus. lra.
  - destruct (Nat.eq_dec u (S k)) as [->|]; [rewrite sumq_minus; lra|].
    specialize (IHk ltac:(lia)).
    assert (HS : sumq (fun i => received_at i (level_at (S k)) - received_at i (level_at k)) agents <= rate).
    { rewrite service_in_step; [|apply level_at_grows; lia|lra]. rewrite level_at_S. apply advance_rate.
      lra. }
    rewrite sumq_minus in IHk, HS |- *. rewrite q_S. lra.
Qed.

(** The clock is a fluid server of rate rate (integral form of dV/dt = rate / N_t). *)
Theorem clock_keeps_its_rate : forall u t, q u <= t ->
  sumq (fun i => received i t - received i (q u)) agents <= rate * (t - q u).
Proof.
  intros u t Hut. assert (H0 : 0 <= t) by (pose proof (q_nonneg u); lra).
  destruct (step_of_bounds t H0) as [B1 B2]. destruct (virtual_time_range t H0) as [R1 R2].
  pose proof (step_of_ge u t Hut) as Hk. set (k := step_of t) in *.
  pose proof (service_over_steps u k Hk) as S1.
  pose proof (service_in_step k (virtual_time t) R1 R2) as S2.
  assert (S3 : fill (tags_before (S k)) (level_at k) (virtual_time t) <= rate * (t - q k)).
  { unfold RateClock.virtual_time. fold k. apply advance_rate. apply Qmult_le_0_compat; lra. }
  rewrite sumq_minus in S1, S2 |- *. unfold RateClock.received.
  assert (E : sumq (fun i => received_at i (virtual_time (q u))) agents
    == sumq (fun i => received_at i (level_at u)) agents).
  { apply sumq_ext. intros. apply received_at_compat, virtual_time_q. }
  rewrite E. lra.
Qed.

(** work conservation: in each whole step, the rate is handed out unless every arrived agent is finished. *)
Theorem clock_conserves_work k :
  sumq (fun i => received_at i (level_at (S k)) - received_at i (level_at k)) agents == rate \/
  (forall i, In i agents -> (arrival i <= k)%nat -> tag i <= level_at (S k)).
Proof.
  rewrite service_in_step; [|apply level_at_grows; lia|lra].
  destruct (advance_exact (length (tags_before (S k))) (tags_before (S k)) (level_at k) rate) as [E|E];
    [lra| | |].
  - clear. induction (tags_before (S k)) as [|x l]; simpl; [lia|]. destruct (qltb (level_at k) x); simpl; lia.
  - left. rewrite level_at_S. exact E.
  - right. intros i Hi Ha. rewrite level_at_S. apply E. apply tag_among_tags; auto. lia.
Qed.

Theorem received_monotone : forall i u t, q u <= t -> received i (q u) <= received i t.
Proof.
  intros i u t Hut. assert (H0 : 0 <= t) by (pose proof (q_nonneg u); lra).
  unfold RateClock.received. apply received_at_grows. rewrite virtual_time_q.
  destruct (virtual_time_range t H0) as [R1 _].
  apply Qle_trans with (level_at (step_of t)); auto. apply level_at_grows, step_of_ge. auto.
Qed.

Theorem nothing_received_before : forall i u, (u <= arrival i)%nat -> received i (q u) == 0.
Proof.
  intros i u H. unfold RateClock.received.
  rewrite (received_at_compat i (virtual_time (q u)) (level_at u)) by apply virtual_time_q.
  apply received_at_before. apply level_at_grows. auto.
Qed.

(** Finish: once the level has reached the tag of j, every agent with a smaller tag has its full cost. *)
Theorem clock_finishes_in_order : forall i j t, tag i <= tag j -> tag j <= virtual_time t ->
  cost i <= received i t.
Proof.
  intros i j t H1 H2. unfold RateClock.received, RateClock.received_at.
  assert (Ht : tag i == level_at (arrival i) + cost i) by apply Qred_correct.
  apply Qle_trans with (Qmin (cost i) (virtual_time t - level_at (arrival i))); [|apply Q.le_max_r].
  rewrite Q.min_l; lra.
Qed.

(** reference_finish is a time inside step k at which the level is at least the tag. *)

End RateClockService.

