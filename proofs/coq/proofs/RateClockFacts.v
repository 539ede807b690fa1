(** * The clock: its tags, and virtual time at steps and at real times

    Virtual time never falls, and every agent that has arrived has its tag among the clock's. *)
Require Import List Arith Lia ZArith QArith Qround Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts RateClock.
Import ListNotations.

Section RateClockFacts.
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

Lemma clock_S k : clock (S k) =
  (advance (length (tags_before (S k))) (tags_before (S k)) (level_at k) rate, tags_before (S k)).
Proof. unfold RateClock.tags_before, RateClock.level_at. simpl. destruct (clock k) as [v tags]. reflexivity.
Qed.
Lemma level_at_S k : level_at (S k)
  = advance (length (tags_before (S k))) (tags_before (S k)) (level_at k) rate.
Proof. unfold RateClock.level_at at 1. rewrite clock_S. reflexivity. Qed.
Lemma tags_before_S k : tags_before (S k) =
  map (fun i => Qred (level_at k + cost i)) (filter (fun i => arrival i =? k) agents) ++ tags_before k.
Proof. unfold RateClock.tags_before, RateClock.level_at. simpl. destruct (clock k) as [v tags]. reflexivity.
Qed.

Lemma sum_over_tags (f : Q -> Q) k :
  sumq f (tags_before k) == sumq (fun i => if arrival i <? k then f (tag i) else 0) agents.
Proof.
  induction k.
  - unfold RateClock.tags_before. simpl. symmetry. rewrite <- (Qmult_0_r (q (length agents))), <- sumq_const.
    apply sumq_ext. intros i _. destruct (Nat.ltb_spec (arrival i) 0); [lia|lra].
  - rewrite tags_before_S, sumq_app, sumq_map, sumq_filter, IHk, <- sumq_plus.
    apply sumq_ext. intros i _. unfold RateClock.tag.
    destruct (Nat.eqb_spec (arrival i) k) as [<-|Hne].
    + rewrite Nat.ltb_irrefl. destruct (Nat.ltb_spec (arrival i) (S (arrival i))); [lra|lia].
    + destruct (Nat.ltb_spec (arrival i) k), (Nat.ltb_spec (arrival i) (S k)); try lia; lra.
Qed.

Lemma tag_among_tags i k : In i agents -> (arrival i < k)%nat -> In (tag i) (tags_before k).
Proof.
  intros Hi. induction k; [lia|]. intros Hk. rewrite tags_before_S. apply in_or_app.
  destruct (Nat.eq_dec (arrival i) k) as [E|E]; [left|right; apply IHk; lia].
  apply in_map_iff. exists i. unfold RateClock.tag. rewrite E. split; auto. apply filter_In.
  split; auto. apply Nat.eqb_eq. auto.
Qed.

Lemma level_at_grows a b : (a <= b)%nat -> level_at a <= level_at b.
Proof.
  induction b; intros H.
  - replace a with 0%nat by lia. lra.
  - destruct (Nat.eq_dec a (S b)) as [->|]; [lra|].
    apply Qle_trans with (level_at b); [apply IHb; lia|]. rewrite level_at_S. apply advance_ge. lra.
Qed.

Lemma step_of_q k : step_of (q k) = k.
Proof. unfold RateClock.step_of, q. rewrite Qfloor_Z. apply Nat2Z.id. Qed.
Lemma step_of_bounds t : 0 <= t -> q (step_of t) <= t /\ t - q (step_of t) <= 1.
Proof.
  intros H. assert (0 <= Qfloor t)%Z. { apply (Qfloor_resp_le 0 t) in H. exact H. }
  unfold RateClock.step_of, q. rewrite Z2Nat.id by auto. split; [apply Qfloor_le|].
  pose proof (Qlt_floor t) as L. rewrite inject_Z_plus in L. change (inject_Z 1) with 1 in L. lra.
Qed.
Lemma step_of_ge u t : q u <= t -> (u <= step_of t)%nat.
Proof.
  intros H. apply Qfloor_resp_le in H. unfold q in H. rewrite Qfloor_Z in H. unfold RateClock.step_of. lia.
Qed.

Lemma virtual_time_q k : virtual_time (q k) == level_at k.
Proof. unfold RateClock.virtual_time. rewrite step_of_q. apply advance_zero. lra. Qed.

Lemma virtual_time_compat t t' : 0 <= t -> t == t' -> virtual_time t == virtual_time t'.
Proof.
  intros H0 H. destruct (step_of_bounds t H0) as [B _].
  assert (E : step_of t = step_of t') by (unfold RateClock.step_of; rewrite (Qfloor_comp _ _ H); reflexivity).
  unfold RateClock.virtual_time. rewrite <- E.
  assert (0 <= rate * (t - q (step_of t))) by (apply Qmult_le_0_compat; lra).
  assert (E2 : rate * (t - q (step_of t)) == rate * (t' - q (step_of t))) by (apply Qmult_comp; lra).
  apply Qle_antisym; apply advance_mono_b; lra.
Qed.

Lemma virtual_time_range t : 0 <= t ->
  level_at (step_of t) <= virtual_time t /\ virtual_time t <= level_at (S (step_of t)).
Proof.
  intros H. destruct (step_of_bounds t H) as [H1 H2]. set (k := step_of t) in *.
  assert (0 <= rate * (t - q k)) by (apply Qmult_le_0_compat; lra).
  assert (rate * (t - q k) <= rate).
  { rewrite <- (Qmult_1_r rate) at 2. rewrite (Qmult_comm rate (t - q k)), (Qmult_comm rate 1).
    apply Qmult_le_compat_r; lra. }
  split; [unfold RateClock.virtual_time; fold k; apply advance_ge; auto|].
  rewrite level_at_S. unfold RateClock.virtual_time. fold k. apply advance_mono_b; auto.
Qed.

End RateClockFacts.

