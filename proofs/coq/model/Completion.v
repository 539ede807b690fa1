(** * When an inference ends *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Run.

(** Inference [x] has received all of its cost before step [n]. *)
Definition done (e : execution) (x n : nat) : Prop := cost e x <= got e x n.

(** It ends at time [n]: step [n - 1] delivers the last of it. *)
Definition ends (e : execution) (x n : nat) : Prop :=
  done e x n /\ forall m, (m < n)%nat -> ~ done e x m.

(** Every inference ends within [D] steps of its start: no preemption, no pause. *)
Definition ends_within (r : run) (D : nat) : Prop :=
  forall x s, In x (inferences r) -> start r x = Some s -> done r x (s + D).

(** Every step in which something waits for its start delivers at least [R]. *)
Definition busy (r : run) (R : Q) : Prop :=
  forall x s k, In x (inferences r) -> start r x = Some s ->
    (ready r (unit_of r x) <= k < s)%nat -> R <= delivered r k.

(** No step delivers more than [M]. *)
Definition at_most (e : execution) (M : Q) : Prop := forall k, delivered e k <= M.
