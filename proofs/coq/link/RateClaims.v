(** * Claims about Theorem A's programs: the clock of constant rate and the scheduler *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler.
From Justitia Require Export Admission System TheoremAInstances.
From Justitia Require Export Claims.
Import ListNotations.

(** Inferences, by number: agent, footprint, duration. Agents, by number and in order of arrival. *)
Definition demanded (owners footprints durations arrivals : list nat) : demand :=
  Build_demand (seq 0 (length owners)) (seq 0 (length arrivals)) (of owners 0%nat) (of footprints 0%nat)
               (of durations 0%nat) (of arrivals 0%nat).

(** The starts of [T] steps; the tags; virtual time at the beginning of steps 0, 1, ...; and the times at which
    the reference finishes the agents. *)
Definition rate_agrees (Y : system) (T : nat) (steps : list (option nat)) (tags levels finishes : list Q) : bool :=
  let level := level_at (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) in
  let finish i := reference_finish (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y)
    (finish_step (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) (length levels) 0 i) i in
  same_steps (map (starts Y (tag_in Y) (admission Y) T) (inferences Y)) steps
  && same_numbers (map (tag_in Y) (agents Y)) tags
  && same_numbers (map level (seq 0 (length levels))) levels
  && same_numbers (map finish (agents Y)) finishes.
