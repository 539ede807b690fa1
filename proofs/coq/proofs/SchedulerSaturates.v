(** * The scheduler keeps the server busy

    If something waits, the head of the line has been refused; so if a refusal means that at least [R] is
    reserved, then at least [R] is reserved whenever something waits. *)
Require Import List Arith Lia QArith Lqa Bool Sorting.Sorted.
From Justitia Require Import Sums Windows Demand Schedule Scheduler Admission LineFacts SchedulerInvariant.
From Justitia Require Import SchedulerKeepsOrder.
Import ListNotations.

Section SchedulerSaturates.
Variable W : demand.
Variable tag : nat -> Q.
Variable admits : admission_test.
Local Notation inferences := (Demand.inferences W).
Local Notation reserved := (Schedule.reserved W).
Local Notation starts := (Scheduler.starts W tag admits).
Local Notation line := (Scheduler.line W tag admits).

Hypothesis distinct : NoDup inferences.
Variable T : nat.
Local Notation start := (schedule_until W tag admits T).

Lemma reserved_load t : (t < T)%nat -> reserved (starts (S t)) t = load W start t.
Proof.
  intros Ht. unfold Schedule.reserved, Schedule.load. apply sumn_ext. intros x Hx.
  unfold Schedule.running, schedule_until, inwin.
  destruct (starts (S t) x) as [s|] eqn:E.
  - rewrite (starts_later W tag admits distinct (S t) T x s) by (auto; lia). reflexivity.
  - destruct (starts T x) as [s|] eqn:E2.
    + destruct (Nat.leb_spec s t) as [L|L]; simpl; auto.
      rewrite (starts_earlier W tag admits distinct (S t) T x s) in E by (auto; lia). discriminate.
    + destruct (Nat.leb_spec T t); simpl; auto. lia.
Qed.


Theorem scheduler_saturates R : refuses_only_above W admits R -> saturates W start (fun _ => R) T.
Proof.
  intros refusals y t Hy Ht Hw. pose proof (waiting_in_line W tag admits distinct T y t Hy Ht Hw) as Hq.
  pose proof (invariant_always W tag admits distinct (S t)) as I.
  destruct (step_facts W tag admits t) as (now & _ & _ & _ & A4).
  destruct (line (S t)) as [|h r] eqn:E; [destruct Hq|]. specialize (A4 h r eq_refl).
  assert (Hh : In h inferences) by (apply (line_arrived _ _ _ _ I); rewrite E; simpl; auto).
  rewrite <- reserved_load by auto. apply (refusals _ _ h); auto.
  intros z s Hz. destruct (started_arrived _ _ _ _ I z s Hz). lia.
Qed.

End SchedulerSaturates.

