(** * A workload of which one thing is not given but comes out of the run *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Workload.

Section Variants.
Variable w : workload.

(** The steps in which the units become ready. *)
Definition with_ready (rd : nat -> nat) : workload :=
  Workload (inferences w) (units w) (agents w) (unit_of w) (agent_of w) (weight w) (cost w) (predicted w)
           rd (rank w).

(** The costs of the inferences. *)
Definition with_cost (c : nat -> Q) : workload :=
  Workload (inferences w) (units w) (agents w) (unit_of w) (agent_of w) (weight w) c (predicted w)
           (ready w) (rank w).

(** Only some of the inferences. *)
Definition with_inferences (l : list nat) : workload :=
  Workload l (units w) (agents w) (unit_of w) (agent_of w) (weight w) (cost w) (predicted w)
           (ready w) (rank w).
End Variants.

(** ** Marks

    A mark says in which step something happened: a start, a release, a leave. *)
Definition mark (k x : nat) (m : nat -> option nat) : nat -> option nat :=
  fun y => if (y =? x)%nat then Some k else m y.

Definition mark_all (k : nat) (l : list nat) (m : nat -> option nat) : nat -> option nat :=
  fold_left (fun m x => mark k x m) l m.

Definition no_marks : nat -> option nat := fun _ => None.

Definition marked (m : nat -> option nat) (x : nat) : bool :=
  match m x with Some _ => true | None => false end.

(** All inferences of unit [u] have ended before step [k], when [x] runs for [steps x] steps on end. *)
Definition is_done (w : workload) (steps : nat -> nat) (st : nat -> option nat) (k u : nat) : bool :=
  forallb (fun x => if (unit_of w x =? u)%nat
                    then match st x with Some s => (s + steps x <=? k)%nat | None => false end
                    else true) (inferences w).

(** ** Tables *)
Definition find_in (table : list (nat * Q)) (x : nat) : option Q :=
  match find (fun entry => (fst entry =? x)%nat) table with Some entry => Some (snd entry) | None => None end.
