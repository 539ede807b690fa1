(** * The virtual clock

    The clock is a fair (GPS) reference that can be computed exactly. It knows the agents, the step in which
    each arrives and the cost that each declares; it does not know what the server does. The *virtual time*
    rises at [rate / N], N being the number of agents whose tag lies above it, and an agent that arrives at
    virtual time V with cost C gets the *tag* V + C: the virtual time at which the reference will have
    served it.

    Everything here computes, by [vm_compute], in exact fractions. *)
Require Import List Arith ZArith QArith Qround Qminmax.
From Justitia Require Import Sums Level.
Import ListNotations.

Section Clock.
Variable agents : list nat.
Variable arrival : nat -> nat.
Variable cost : nat -> Q.
Variable rate : Q.

(** Virtual time at the beginning of step [k], and the tags of all agents that arrived before step [k].
    In a step the agents that arrive in it get their tags first; then the level rises by [rate] worth of
    service. *)
Fixpoint clock (k : nat) : Q * list Q :=
  match k with
  | O => (0, [])
  | S k' =>
    let (v, tags) := clock k' in
    let tags' := map (fun i => Qred (v + cost i)) (filter (fun i => arrival i =? k') agents) ++ tags in
    (advance (length tags') tags' v rate, tags')
  end.
Definition level_at (k : nat) : Q := fst (clock k).
Definition tags_before (k : nat) : list Q := snd (clock k).

Definition tag (i : nat) : Q := Qred (level_at (arrival i) + cost i).

(** Virtual time at a real time [t], inside step [step_of t]. *)
Definition step_of (t : Q) : nat := Z.to_nat (Qfloor t).
Definition virtual_time (t : Q) : Q :=
  let k := step_of t in
  advance (length (tags_before (S k))) (tags_before (S k)) (level_at k) (rate * (t - q k)).

(** What the reference has given agent [i] when the level is [v], and at real time [t]. *)
Definition received_at (i : nat) (v : Q) : Q := Qmax 0 (Qmin (cost i) (v - level_at (arrival i))).
Definition received (i : nat) (t : Q) : Q := received_at i (virtual_time t).

(** ** The reference finish

    [finish_step fuel k i]: the first step from [k] on at whose end the level has reached the tag of [i]
    (searching [fuel] steps). [reference_finish k i]: the real time at which it does so, if it does so in
    step [k]. *)
Fixpoint finish_step (fuel k i : nat) : nat :=
  match fuel with
  | O => k
  | S fuel' => if Qle_bool (tag i) (level_at (S k)) then k else finish_step fuel' (S k) i
  end.
Definition reference_finish (k i : nat) : Q :=
  q k + fill (tags_before (S k)) (level_at k) (tag i) / rate.

End Clock.

