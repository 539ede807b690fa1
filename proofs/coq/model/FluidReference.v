(** * Fluid references

    A *fluid reference* divides a capacity among agents as if it were a liquid: at any real time each
    agent may get any share. The delay bound needs only three properties of it; sharing the capacity
    equally is not one of them. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Demand.

(** [received i t]: what agent [i] has received by real time [t]. [capacity t]: what the reference may
    have handed out by then. Intervals begin at a step. *)
Record fluid_reference (W : demand) (received : nat -> Q -> Q) (capacity : Q -> Q) : Prop := {
  received_grows : forall i u t, In i (agents W) -> q u <= t -> received i (q u) <= received i t;
  nothing_before_arrival : forall i u, In i (agents W) -> (u <= arrival W i)%nat -> received i (q u) == 0;
  within_capacity : forall u t, q u <= t ->
    sumq (fun i => received i t - received i (q u)) (agents W) <= capacity t - capacity (q u)
}.

(** At real time [f] the reference is through with [j] and with every agent whose tag is no larger: its
    order of completion is the order of the tags. *)
Definition through_with (W : demand) (tag : nat -> Q) (received : nat -> Q -> Q) (j : nat) (f : Q) : Prop :=
  q (arrival W j) <= f /\
  forall i, In i (agents W) -> tag i <= tag j -> q (agent_work W i) <= received i f.

(** The sum of [rate] over the steps before step [n]. *)
Definition capacity_before (rate : nat -> nat) (n : nat) : nat := sumn rate (seq 0 n).

