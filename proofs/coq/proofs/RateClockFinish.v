(** * The reference finish

    [reference_finish] is the first moment at which the level reaches an agent's tag, and there is one. *)
Require Import List Arith Lia ZArith QArith Qround Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts RateClock RateClockFacts RateClockService.
Import ListNotations.

Section RateClockFinish.
Variable agents : list nat.
Variable arrival : nat -> nat.
Variable cost : nat -> Q.
Variable rate : Q.
Hypothesis rate_pos : 0 < rate.
Hypothesis cost_nonneg : forall i, 0 <= cost i.
Local Notation level_at := (RateClock.level_at agents arrival cost rate).
Local Notation tags_before := (RateClock.tags_before agents arrival cost rate).
Local Notation tag := (RateClock.tag agents arrival cost rate).
Local Notation virtual_time := (RateClock.virtual_time agents arrival cost rate).
Local Notation received_at := (RateClock.received_at agents arrival cost rate).
Local Notation reference_finish := (RateClock.reference_finish agents arrival cost rate).
Local Notation tag_among_tags := (RateClockFacts.tag_among_tags agents arrival cost rate).
Local Notation virtual_time_q := (RateClockFacts.virtual_time_q agents arrival cost rate).
Local Notation level_at_grows := (RateClockFacts.level_at_grows agents arrival cost rate rate_pos).
Local Notation virtual_time_range := (RateClockFacts.virtual_time_range agents arrival cost rate rate_pos).
Local Notation virtual_time_compat := (RateClockFacts.virtual_time_compat agents arrival cost rate rate_pos).
Local Notation clock_conserves_work :=
  (RateClockService.clock_conserves_work agents arrival cost rate rate_pos cost_nonneg).
Local Notation received_at_range := (RateClockService.received_at_range agents arrival cost rate cost_nonneg).

Theorem reference_finish_reached k i : In i agents -> (arrival i <= k)%nat -> level_at k < tag i ->
  tag i <= level_at (S k) ->
  q k <= reference_finish k i /\ reference_finish k i <= q (S k) /\
    tag i <= virtual_time (reference_finish k i).
Proof.
  intros Hi Ha Hlo Hhi. unfold RateClock.reference_finish.
  set (b := fill (tags_before (S k)) (level_at k) (tag i)).
  assert (Hb0 : 0 <= b).
  { unfold b. rewrite <- (fill_same (tags_before (S k)) (level_at k)). apply fill_mono. lra. }
  assert (HbG : b <= rate).
  { unfold b. apply Qle_trans with (fill (tags_before (S k)) (level_at k) (level_at (S k)));
      [apply fill_mono; auto|].
    rewrite level_at_S. apply advance_rate. lra. }
  assert (D0 : 0 <= b / rate) by (apply div_nonneg; auto).
  assert (D1 : b / rate <= 1) by (apply div_le; auto; lra).
  split; [lra|]. split; [rewrite q_S; lra|].
  assert (0 <= q k) by apply q_nonneg.
  destruct (Qlt_le_dec (q k + b / rate) (q (S k))) as [Hlt|Hge]; rewrite q_S in *.
  2: { rewrite (virtual_time_compat _ (q (S k))); [rewrite virtual_time_q; auto|lra|rewrite q_S; lra]. }
  assert (Hs : step_of (q k + b / rate) = k).
  { pose proof (step_of_ge k (q k + b / rate) ltac:(lra)) as H1.
    destruct (Nat.eq_dec (step_of (q k + b / rate)) k); auto. exfalso.
    destruct (step_of_bounds (q k + b / rate)) as [B _]; [lra|].
    assert (q (S k) <= q (step_of (q k + b / rate))) by (apply q_le; lia). rewrite q_S in H0. lra. }
  unfold RateClock.virtual_time. rewrite Hs. set (b' := rate * (q k + b / rate - q k)).
  assert (Eb : b' == b).
  { unfold b'. setoid_replace (q k + b / rate - q k) with (b / rate) by lra. apply mul_div; auto. }
  set (w := advance (length (tags_before (S k))) (tags_before (S k)) (level_at k) b').
  destruct (Qlt_le_dec w (tag i)) as [L|]; auto. exfalso.
  destruct (advance_exact (length (tags_before (S k))) (tags_before (S k)) (level_at k) b') as [E|E].
  - lra.
  - clear. induction (tags_before (S k)) as [|x l]; simpl; [lia|]. destruct (qltb (level_at k) x); simpl; lia.
  - fold w in E.
    assert (C : fill (tags_before (S k)) (level_at k) (tag i)
                == fill (tags_before (S k)) (level_at k) w + fill (tags_before (S k)) w (tag i))
                  by apply fill_chain.
    assert (P : tag i - w <= fill (tags_before (S k)) w (tag i)).
    { unfold fill. apply Qle_trans with ((fun x => Qmin x (tag i) - Qmin x w) (tag i)).
      - cbv beta. rewrite (Q.min_l (tag i) (tag i)) by lra. rewrite (Q.min_r (tag i) w) by lra. lra.
      - apply (sumq_In_le (fun x => Qmin x (tag i) - Qmin x w)).
        + apply tag_among_tags; auto. lia.
        + intros y _. assert (Qmin y w <= Qmin y (tag i)) by (apply Q.min_le_compat_l; lra). lra. }
    fold b in C. lra.
  - fold w in E. specialize (E (tag i) (tag_among_tags i (S k) Hi ltac:(lia))). lra.
Qed.

(** ... and it is the earliest such time. *)
Theorem reference_finish_first k i t : level_at k < tag i -> tag i <= level_at (S k) -> 0 <= t ->
  tag i <= virtual_time t -> reference_finish k i <= t.
Proof.
  intros Hlo Hhi H0 Ht. destruct (virtual_time_range t H0) as [R1 R2].
  destruct (step_of_bounds t H0) as [B1 B2].
  assert (Hk : (k <= step_of t)%nat).
  { destruct (Nat.le_gt_cases k (step_of t)) as [|L]; auto. exfalso.
    pose proof (level_at_grows (S (step_of t)) k ltac:(lia)). lra. }
  unfold RateClock.reference_finish. set (b := fill (tags_before (S k)) (level_at k) (tag i)).
  destruct (Nat.eq_dec (step_of t) k) as [E|E].
  - assert (b <= rate * (t - q k)).
    { unfold b. apply Qle_trans with (fill (tags_before (S k)) (level_at k) (virtual_time t));
        [apply fill_mono; auto|].
      unfold RateClock.virtual_time. rewrite E. apply advance_rate. rewrite E in B1.
      apply Qmult_le_0_compat; lra. }
    assert (b / rate <= t - q k) by (apply div_le; auto). lra.
  - assert (b <= rate).
    { unfold b. apply Qle_trans with (fill (tags_before (S k)) (level_at k) (level_at (S k)));
        [apply fill_mono; auto|].
      rewrite level_at_S. apply advance_rate. lra. }
    assert (b / rate <= 1) by (apply div_le; auto; lra).
    assert (q (S k) <= q (step_of t)) by (apply q_le; lia). rewrite q_S in *. lra.
Qed.

(** The reference is finite: every agent is finished within (total cost)/rate + 1 steps of its arrival. *)

Theorem clock_is_finite i K : In i agents -> sumq cost agents < rate * q K ->
  tag i <= virtual_time (q (arrival i + K)).
Proof.
  intros Hi HK. rewrite virtual_time_q.
  destruct (Qlt_le_dec (level_at (arrival i + K)) (tag i)) as [L|]; auto. exfalso.
  assert (S : forall n, (n <= K)%nat ->
    sumq (fun a => received_at a (level_at (arrival i + n)) - received_at a (level_at (arrival i))) agents
      == rate * q n).
  { induction n; intros Hn.
    - rewrite Nat.add_0_r, sumq_minus, q_0. lra.
    - specialize (IHn ltac:(lia)).
      destruct (clock_conserves_work (arrival i + n)) as [E|E].
      + rewrite sumq_minus in IHn, E |- *. rewrite q_S.
        replace (arrival i + S n)%nat with (S (arrival i + n)) by lia. lra.
      + exfalso. specialize (E i Hi ltac:(lia)).
        pose proof (level_at_grows (S (arrival i + n)) (arrival i + K) ltac:(lia)). lra. }
  specialize (S K (le_n K)).
  assert (sumq (fun a => received_at a (level_at (arrival i + K)) - received_at a (level_at (arrival i))) agents <= sumq cost agents).
  { apply sumq_le. intros a _. destruct (received_at_range a (level_at (arrival i + K))),
      (received_at_range a (level_at (arrival i))). lra. }
  lra.
Qed.

End RateClockFinish.

