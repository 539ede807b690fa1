(** * The scheduler keeps the order of the tags *)
Require Import List Arith Lia QArith Lqa Bool Sorting.Sorted.
From Justitia Require Import Sums Windows Demand Schedule Scheduler LineFacts SchedulerInvariant.
Import ListNotations.

Section SchedulerKeepsOrder.
Variable W : demand.
Variable tag : nat -> Q.
Variable admits : admission_test.
Local Notation inferences := (Demand.inferences W).
Local Notation starts := (Scheduler.starts W tag admits).
Local Notation line := (Scheduler.line W tag admits).

Hypothesis distinct : NoDup inferences.
Variable T : nat.
Local Notation start := (schedule_until W tag admits T).

Lemma start_le x : (start x <= T)%nat.
Proof.
  unfold schedule_until. destruct (starts T x) as [s|] eqn:E; auto.
  destruct (started_arrived _ _ _ _ (invariant_always W tag admits distinct T) _ _ E). lia.
Qed.

Lemma start_Some x t : (t < T)%nat -> start x = t -> starts T x = Some t.
Proof. unfold schedule_until. destruct (starts T x); intros; [congruence|lia]. Qed.

Lemma waiting_in_line y t : In y inferences -> (t < T)%nat -> waiting W start y t -> In y (line (S t)).
Proof.
  intros Hy Ht [W1 W2]. pose proof (invariant_always W tag admits distinct (S t)) as I.
  apply (nobody_lost _ _ _ _ I); auto; [lia|]. destruct (starts (S t) y) as [s|] eqn:E; auto. exfalso.
  destruct (started_arrived _ _ _ _ I _ _ E).
  assert (H2 : starts T y = Some s) by (apply starts_later with (S t); auto; lia).
  unfold schedule_until in W2. rewrite H2 in W2. lia.
Qed.

Theorem scheduler_keeps_order : keeps_order W start tag T.
Proof.
  intros x y t Hx Hy Ht Hs Hw. pose proof (waiting_in_line y t Hy Ht Hw) as Hq.
  apply start_Some in Hs; auto. apply starts_earlier with (t := S t) in Hs; auto.
  pose proof (invariant_always W tag admits distinct t) as I.
  destruct (step_facts W tag admits t) as (now & E & A1 & A2 & _).
  assert (Hn : In x now).
  { destruct (in_dec Nat.eq_dec x now) as [|Hn]; auto. rewrite A2 in Hs by auto.
    destruct (started_arrived _ _ _ _ I _ _ Hs). lia. }
  apply (sorted_head W tag x y now (line (S t))); auto.
  rewrite <- E. apply join_sorted, (line_sorted _ _ _ _ I).
Qed.

End SchedulerKeepsOrder.

