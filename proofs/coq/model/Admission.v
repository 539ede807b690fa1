(** * Admission tests

    Three tests by which a server may decide whether the head of the line fits, and the one thing that
    Theorem A asks of a test: a refusal must mean that a good part of the memory is in use. *)
Require Import List Arith Bool.
From Justitia Require Import Sums Windows Demand Schedule Scheduler.

(** A refusal implies that at least [R] is reserved. *)
Definition refuses_only_above (W : demand) (admits : admission_test) (R : nat) : Prop :=
  forall starts t x, In x (inferences W) -> (forall y s, starts y = Some s -> s <= t) ->
  admits starts t x = false -> R <= reserved W starts t.

(** What has been admitted fits in a memory of [M] tokens. *)
Definition stays_within (W : demand) (admits : admission_test) (M : nat) : Prop :=
  forall starts t x, admits starts t x = true -> reserved W starts t + footprint W x <= M.

(** Reserve the whole footprint before the start. *)
Definition reserve_peak (W : demand) (M : nat) : admission_test :=
  fun starts t x => reserved W starts t + footprint W x <=? M.

(** The same with at most [B] inferences running. *)
Definition reserve_peak_capped (W : demand) (M B : nat) : admission_test :=
  fun starts t x => (reserved W starts t + footprint W x <=? M) && (running_count W starts t <? B).

(** Look ahead: [x] may start if the tokens really held, p + i in the i-th step of an inference, stay
    within [M] for the whole of its life, given what runs now. *)
Definition held (W : demand) (prompt : nat -> nat) (starts : partial_schedule) (t : nat) : nat :=
  sumn (fun x => match starts x with
                 | Some s => if inwin s (duration W x) t then prompt x + (t - s + 1) else 0
                 | None => 0 end) (inferences W).
Definition look_ahead (W : demand) (prompt : nat -> nat) (M : nat) : admission_test :=
  fun starts t x =>
    forallb (fun i => held W prompt starts (t + i) + (prompt x + (i + 1)) <=? M) (seq 0 (duration W x)).

