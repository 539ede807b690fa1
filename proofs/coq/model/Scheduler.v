(** * The scheduler

    The waiting inferences stand in one line, ordered by the tag of their agent, and among equal tags by
    arrival. In each step the newly arrived join the line, and then the head is started as long as an
    *admission test* lets it; the first refusal ends the step, so nothing is ever started past the head. An
    inference that has started is never taken back.

    Everything here computes, by [vm_compute]. *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums Windows Demand Schedule.
Import ListNotations.

(** May inference [x] start in step [t], given the starts so far? *)
Definition admission_test := partial_schedule -> nat -> nat -> bool.

Section Scheduler.
Variable W : demand.
Variable tag : nat -> Q.                (* of an agent *)
Variable admits : admission_test.

Definition tag_of (x : nat) : Q := tag (owner W x).

Definition record_start (starts : partial_schedule) (x t : nat) : partial_schedule :=
  fun y => if y =? x then Some t else starts y.

(** Start from the head of the line until the first refusal. *)
Fixpoint start_heads (t : nat) (starts : partial_schedule) (line : list nat) : partial_schedule * list nat :=
  match line with
  | [] => (starts, [])
  | x :: rest => if admits starts t x then start_heads t (record_start starts x t) rest else (starts, line)
  end.

(** Behind everything whose tag is not larger. *)
Fixpoint insert (x : nat) (line : list nat) : list nat :=
  match line with
  | [] => [x]
  | y :: rest => if Qle_bool (tag_of y) (tag_of x) then y :: insert x rest else x :: line
  end.

Definition arriving (t : nat) : list nat := filter (fun x => arrival W (owner W x) =? t) (inferences W).
Definition join (t : nat) (line : list nat) : list nat := fold_left (fun l x => insert x l) (arriving t) line.

(** The state at the beginning of step [t]: the starts so far, and the line. *)
Fixpoint state (t : nat) : partial_schedule * list nat :=
  match t with
  | O => (fun _ => None, [])
  | S t' => let (starts, line) := state t' in start_heads t' starts (join t' line)
  end.
Definition starts (t : nat) : partial_schedule := fst (state t).
Definition line (t : nat) : list nat := snd (state t).

(** The schedule that the first [T] steps make; what has not started by then counts as starting in step
    [T]. *)
Definition schedule_until (T : nat) (x : nat) : nat := match starts T x with Some s => s | None => T end.

End Scheduler.

