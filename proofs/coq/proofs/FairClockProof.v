(** * The clock is a fair reference: proofs *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums ServiceFacts ClockFacts.
From Justitia Require Export FairClock.

Theorem theorem_clock_fair_holds : theorem_clock_fair.
Proof.
  intros e form valid. pose proof (delivered_nonneg e valid) as Hs. constructor.
  - intros u. apply (unit_weight_pos e form).
  - intros u. apply (clock_base_ok e (delivered e) form).
  - intros k. apply (clock_level_step e (delivered e) Hs).
  - intros k. apply (handed_at_most e (delivered e) form Hs).
Qed.

Theorem theorem_clock_work_conserving_holds : theorem_clock_work_conserving.
Proof. intros e form valid k. apply (handed_all e (delivered e) form (delivered_nonneg e valid)). Qed.

Theorem theorem_base_first_holds : theorem_base_first.
Proof.
  intros e form valid f u Hu H. unfold f, reference_of, clock_reference. cbn [base V clock_at].
  unfold serve, release_all. cbn [bases].
  destruct (release_one e u (newly_ready e (ready e u))) with (c := clock_at e (delivered e) (ready e u)) as [E _].
  - apply newly_ready_distinct; auto.
  - apply newly_ready_In; auto.
  - intros z Hz Ea. apply newly_ready_In in Hz as [Hz Er]. apply H; auto. lia.
  - rewrite E. rewrite (latest_stays e (delivered e) (agent_of e u) 0 (ready e u)) by
      (try lia; intros z Hz Ez C; assert (z = u) by (apply H; auto; lia); subst; lia).
    apply Q.max_l. apply (clock_level_mono e (delivered e) (delivered_nonneg e valid) 0 (ready e u)). lia.
Qed.

Theorem theorem_base_next_holds : theorem_base_next.
Proof.
  intros e form valid f u u' Hu Hu' Ea L H. set (c := clock_at e (delivered e)).
  assert (One : forall v, v = u \/ v = u' -> In v (units e) -> forall z, In z (newly_ready e (ready e v)) ->
                agent_of e z = agent_of e v -> z = v).
  { intros v Hv _ z Hz Ez. apply newly_ready_In in Hz as [Hz Er].
    destruct (H z Hz) as [->| ->]; destruct Hv as [->| ->]; auto; lia || congruence. }
  unfold f, reference_of, clock_reference. cbn [base V clock_at].
  unfold serve, release_all. cbn [bases]. fold c.
  destruct (release_one e u (newly_ready e (ready e u))) with (c := c (ready e u)) as [E _];
    [apply newly_ready_distinct; auto|apply newly_ready_In; auto|apply One; auto|].
  rewrite E. unfold c.
  rewrite (latest_stays e (delivered e) (agent_of e u) (S (ready e u')) (ready e u)) by
    (try lia; intros z Hz Ez C; destruct (H z Hz Ez ltac:(lia)) as [->| ->]; lia).
  fold c. destruct (release_one e u' (newly_ready e (ready e u'))) with (c := c (ready e u')) as [E1 E2];
    [apply newly_ready_distinct; auto|apply newly_ready_In; auto|apply One; auto|].
  assert (E3 : latest (c (S (ready e u'))) (agent_of e u)
               = Qred (Qmax (level (c (ready e u'))) (latest (c (ready e u')) (agent_of e u'))
                       + predicted e u' / unit_weight e u')).
  { rewrite <- Ea, <- E2. reflexivity. }
  rewrite E3, Qred_correct. unfold tag. cbn [base share clock_at].
  unfold serve, release_all. cbn [bases]. fold c. rewrite E1. reflexivity.
Qed.
