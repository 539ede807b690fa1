(** * The line

    What waits is in line by tag, and by rank where tags are equal. An engine keeps the order when a start
    never leaves somebody waiting who is further ahead: the line stops at the first that is refused. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Run.

Definition before (w : workload) (tag : nat -> Q) (i j : nat) : bool :=
  qltb (tag i) (tag j) || (Qeq_bool (tag i) (tag j) && (rank w i <? rank w j)%nat).

Definition keeps_order (r : run) (tag : nat -> Q) : Prop :=
  forall x y s, In x (inferences r) -> In y (inferences r) ->
    start r x = Some s -> waiting r y s -> before r tag (unit_of r y) (unit_of r x) = false.
