(** * A virtual clock that is driven by the delivered service

    The clock is a program. It keeps the level, the latest tag of each agent and the base of each unit that
    was released. When a unit becomes ready, its base is the larger of the level and the latest tag of its
    agent (packet fair queueing's rule); the new latest tag is the tag of the unit. When a step has
    delivered [s], the level rises by [s] units of service. An agent is active while its latest tag is above
    the level. *)
Require Import List Arith QArith Qminmax.
From Justitia Require Import Sums Level.
From Justitia Require Export Reference.

Record clock := Clock {
  level : Q;
  latest : nat -> Q;       (** of an agent *)
  bases : nat -> Q         (** of a unit *)
}.

Definition clock_start : clock := Clock 0 (fun _ => 0) (fun _ => 0).

Section Clock.
Variable w : workload.

Definition unit_weight (u : nat) : Q := q (weight w (agent_of w u)).

Definition release (c : clock) (u : nat) : clock :=
  let b := Qmax (level c) (latest c (agent_of w u)) in
  Clock (level c)
        (updq (latest c) (agent_of w u) (Qred (b + predicted w u / unit_weight u)))
        (updq (bases c) u b).

(** The units that become ready in step [k]. *)
Definition newly_ready (k : nat) : list nat := filter (fun u => (ready w u =? k)%nat) (units w).

Definition release_all (k : nat) (c : clock) : clock := fold_left release (newly_ready k) c.

(** The latest tag of each agent, once per unit of weight. *)
Definition tagbag (c : clock) : list Q := flat_map (fun i => repeat (latest c i) (weight w i)) (agents w).

Definition serve (s : Q) (c : clock) : clock :=
  Clock (advance (length (tagbag c)) (tagbag c) (level c) s) (latest c) (bases c).

(** The tag of a unit that was released. *)
Definition clock_tag (c : clock) (u : nat) : Q := bases c u + predicted w u / unit_weight u.

(** The clock at the beginning of step [k] when step [i] delivers [s i]: in each step, arrivals come first. *)
Fixpoint clock_at (s : nat -> Q) (k : nat) : clock :=
  match k with
  | O => clock_start
  | S k' => serve (s k') (release_all k' (clock_at s k'))
  end.

(** The reference that the clock describes. *)
Definition clock_reference (s : nat -> Q) : reference :=
  Reference (fun k => level (clock_at s k))
            (fun u => bases (clock_at s (S (ready w u))) u)
            unit_weight.
End Clock.

(** The reference of an execution: the clock is driven by what the execution delivers. *)
Definition reference_of (e : execution) : reference := clock_reference e (delivered e).
