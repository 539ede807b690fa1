(** * The system: clock and scheduler together

    A *system* is a demand, the costs that its agents declare, the rate at which the clock runs, and the
    admission test of the server. The clock turns declared costs into tags; the scheduler starts
    inferences in the order of the tags. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission.

Record system := System {
  demand_of :> demand;
  declared_cost : nat -> Q;       (* of an agent, as known at its arrival *)
  clock_rate : Q;
  admission : admission_test
}.

Definition tag_in (Y : system) : nat -> Q := tag (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y).
Definition virtual_time_in (Y : system) : Q -> Q :=
  virtual_time (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y).

(** The fair reference has finished agent [i] by real time [f]. The earliest such [f] is the T of the
    text; it is computed by [reference_finish]. *)
Definition reference_finished (Y : system) (i : nat) (f : Q) : Prop :=
  q (arrival Y i) <= f /\ tag_in Y i <= virtual_time_in Y f.

(** The scheduler starts inference [x] in step [s], and has done so before step [T]. *)
Definition started (Y : system) (T x s : nat) : Prop := starts Y (tag_in Y) (admission Y) T x = Some s.

(** ** The hypotheses of Theorem A

    [R] is a rate that the server keeps: a refusal means that at least [R] is reserved. The clock
    promises no more than that: an agent's reserved work over its declared cost is at most R over the
    clock's rate. *)
Record keeps_rate (Y : system) (R D : nat) : Prop := {
  demand_well_formed : well_formed Y D;
  rate_positive : (1 <= R)%nat;
  refusals_mean_busy : refuses_only_above Y (admission Y) R;
  clock_runs : 0 < clock_rate Y;
  costs_nonnegative : forall i, 0 <= declared_cost Y i;
  clock_calibrated : forall i, In i (agents Y) ->
    q (agent_work Y i) * clock_rate Y <= q R * declared_cost Y i
}.

(** The bound: an inference of [d] steps and [w] token-steps that starts in step [s], of an agent that
    the reference finishes at [f], ends at s + d <= f + (D - 1) + d - w / R. *)
Definition ends_in_time (W : demand) (R D x s : nat) (f : Q) : Prop :=
  q (s + duration W x) <= f + q (D - 1) + q (duration W x) - q (work W x) / q R.

