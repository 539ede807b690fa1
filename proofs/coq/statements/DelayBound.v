(** * The delay bound, whoever made the schedule

    Any schedule that keeps the order of the tags and keeps the server busy is compared with any fluid
    reference whose order of completion is the order of the tags. Theorem A is the instance with our
    clock and our scheduler. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand Schedule FluidReference.

(** A schedule and a reference that may be compared: [busy t] is reserved in step [t] if something waits,
    and the reference hands out [busy t] in step [t]. *)
Record comparable (W : demand) (D : nat) (tag : nat -> Q) (T : nat) (start busy : nat -> nat)
    (received : nat -> Q -> Q) (capacity : Q -> Q) : Prop := {
  demand_fine : well_formed W D;
  order_kept : keeps_order W start tag T;
  server_busy : saturates W start busy T;
  reference_fluid : fluid_reference W received capacity;
  same_capacity : forall n, capacity (q n) == q (capacity_before busy n)
}.

(** Counted in service: when [x] starts, the reference is behind by at most what it hands out in D - 1
    steps, less the work of [x]. *)
Definition theorem_A_abstract : Prop :=
  forall W D tag T start busy received capacity,
  comparable W D tag T start busy received capacity ->
  forall x f, In x (inferences W) -> (start x <= T)%nat -> through_with W tag received (owner W x) f ->
  exists t0, (t0 <= arrival W (owner W x))%nat /\
    capacity (q (start x)) + q (work W x) <= capacity f + (capacity (q (t0 + (D - 1))) - capacity (q t0)).

(** The clock may run on what the server is measured to reserve, instead of on a constant: with at most
    [M] a step, the lag in service is at most M (D - 1) less the work of [x]. *)
Definition theorem_A_measured : Prop :=
  forall W D tag T start busy received capacity M,
  comparable W D tag T start busy received capacity -> (forall t, (busy t <= M)%nat) ->
  forall x f, In x (inferences W) -> (start x <= T)%nat -> through_with W tag received (owner W x) f ->
  capacity (q (start x)) + q (work W x) <= capacity f + q (M * (D - 1)).

(** At a constant rate [R] the same is a bound in time, multiplied out: start <= f + (D - 1) - work / R. *)
Definition theorem_A_constant_rate : Prop :=
  forall W D tag T start R received,
  comparable W D tag T start (fun _ => R) received (fun t => q R * t) ->
  forall x f, In x (inferences W) -> (start x <= T)%nat -> through_with W tag received (owner W x) f ->
  q R * q (start x) + q (work W x) <= q R * (f + q (D - 1)).

