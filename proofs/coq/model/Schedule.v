(** * Schedules

    A *schedule* says in which step each inference starts; an inference that has started runs to its end.
    This file says what it means for a schedule to keep an order, to keep the server busy and to respect
    the memory, whoever made it. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand.

Section Schedule.
Variable W : demand.
Variable start : nat -> nat.

Definition running (x t : nat) : bool := inwin (start x) (duration W x) t.

(** Memory reserved in step [t]. *)
Definition load (t : nat) : nat :=
  sumn (fun x => if running x t then footprint W x else 0)%nat (inferences W).

(** [x] has arrived by step [t] and starts only later. *)
Definition waiting (x t : nat) : Prop := (arrival W (owner W x) <= t < start x)%nat.

(** Before step [T], nothing starts while an inference of a strictly smaller tag is left waiting. *)
Definition keeps_order (tag : nat -> Q) (T : nat) : Prop :=
  forall x y t, In x (inferences W) -> In y (inferences W) -> (t < T)%nat ->
  start x = t -> waiting y t -> tag (owner W x) <= tag (owner W y).

(** Before step [T], whenever something waits in step [t] at least [busy t] is reserved. *)
Definition saturates (busy : nat -> nat) (T : nat) : Prop :=
  forall y t, In y (inferences W) -> (t < T)%nat -> waiting y t -> (busy t <= load t)%nat.

(** Nothing starts before its agent arrives. *)
Definition starts_after_arrival : Prop :=
  forall x, In x (inferences W) -> (arrival W (owner W x) <= start x)%nat.

Definition memory_safe (M : nat) : Prop := forall t, (load t <= M)%nat.

(** Not one token of a capacity [M] is left free while something waits. *)
Definition work_conserving (M : nat) : Prop :=
  forall y t, In y (inferences W) -> waiting y t -> (M <= load t)%nat.

End Schedule.

(** ** Partial schedules

    While a scheduler runs, only some inferences have their start; this is what it has reserved so far
    for step [t]. *)
Definition partial_schedule := nat -> option nat.

Definition reserved (W : demand) (starts : partial_schedule) (t : nat) : nat :=
  sumn (fun x => match starts x with
                 | Some s => if inwin s (duration W x) t then footprint W x else 0
                 | None => 0 end)%nat (inferences W).

Definition running_count (W : demand) (starts : partial_schedule) (t : nat) : nat :=
  sumn (fun x => match starts x with
                 | Some s => if inwin s (duration W x) t then 1 else 0
                 | None => 0 end)%nat (inferences W).

