(** * A run with preemption

    An inference may leave the engine before it has ended, and come back to its place in line. What it
    computes again is not service. *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums.
From Justitia Require Export Order Lag.

Record preemptive_run := PreemptiveRun {
  preemptive_exec :> execution;
  running : nat -> nat -> bool      (** [running x k]: inference [x] is in the engine in step [k] *)
}.

Section Preemption.
Variable r : preemptive_run.
Variable tag : nat -> Q.

Definition ran_just_before (x k : nat) : bool :=
  match k with O => false | S k' => running r x k' end.

(** Inference [x] enters the engine in step [k]: it starts or restarts. *)
Definition enters (x k : nat) : Prop := running r x k = true /\ ran_just_before x k = false.

Definition first_start (x s : nat) : Prop :=
  running r x s = true /\ forall k, (k < s)%nat -> running r x k = false.

(** Ready and outside in step [k], and in the engine in some later step: waiting or preempted. *)
Definition outside (y k : nat) : Prop :=
  (ready r (unit_of r y) <= k)%nat /\ running r y k = false /\ exists k', (k < k')%nat /\ running r y k' = true.

Record valid_preemptive_run : Prop := {
  preemptive_service : valid_service r;
  no_service_outside : forall x k, In x (inferences r) -> running r x k = false -> service r x k == 0;
  no_running_before_ready : forall x k, In x (inferences r) ->
    running r x k = true -> (ready r (unit_of r x) <= k)%nat
}.

(** Whatever enters leaves nobody outside who is ahead of it. *)
Definition enters_in_order : Prop :=
  forall x y k, In x (inferences r) -> In y (inferences r) ->
    enters x k -> outside y k -> before r tag (unit_of r y) (unit_of r x) = false.

(** As [quiet]; but [t0] is the last step before [s] in which something behind [j] started or restarted. *)
Definition enters_after (j k : nat) : Prop :=
  exists z, In z (inferences r) /\ enters z k /\ before r tag j (unit_of r z) = true.

Definition calm (j b s : nat) : Prop :=
  (b <= s)%nat /\
  (forall k, (b <= k < s)%nat -> ~ enters_after j k) /\
  (forall t0, b = S t0 -> enters_after j t0).

(** [I]: what the inferences that run in step [t0] still have to receive after it. *)
Definition in_engine (b : nat) : Q :=
  sumq (fun x => if ran_just_before x b then cost r x - got r x b else 0) (inferences r).
End Preemption.

(** As [comparison], for the first start of [x]. *)
Record first_comparison (r : preemptive_run) (f : reference) (x s b n : nat) : Prop := {
  first_compared : In x (inferences r);
  first_compared_start : first_start r x s;
  first_compared_calm : calm r (tag r f) (unit_of r x) b s;
  first_compared_finish : finishes r f (unit_of r x) n
}.
