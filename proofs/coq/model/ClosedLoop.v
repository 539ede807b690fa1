(** * The scheduler with its clock, as a program

    An engine is a rule of service, [work x n] for the [n]-th step of inference [x] after its start, and an
    admission test, which may be any function at all of the starts so far, the step and the inference. In
    each step the units that become ready get their tags; inferences start in the order of the line, the
    first that is refused stops it; and the clock is served what the step delivers. *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums.
From Justitia Require Export Run Order ServiceClock.
Import ListNotations.

Record engine := Engine {
  work : nat -> nat -> Q;
  fits : (nat -> option nat) -> nat -> nat -> bool
}.

(** No inference is worked on beyond its cost. *)
Record valid_engine (w : workload) (g : engine) : Prop := {
  work_nonneg : forall x n, In x (inferences w) -> 0 <= work g x n;
  work_within_cost : forall x n, In x (inferences w) -> upto (work g x) n <= cost w x
}.

Section Loop.
Variable w : workload.
Variable g : engine.

(** What the starts [st] entail. *)
Definition service_of (st : nat -> option nat) (x k : nat) : Q :=
  match st x with Some s => if (s <=? k)%nat then work g x (k - s) else 0 | None => 0 end.

Definition execution_of (st : nat -> option nat) : execution := Execution w (service_of st).

(** Inference [x] is ready in step [k] and has not started. *)
Definition in_line (st : nat -> option nat) (k x : nat) : bool :=
  (ready w (unit_of w x) <=? k)%nat && match st x with None => true | Some _ => false end.

(** The head of the line; of several inferences of one unit, the first in the list. *)
Fixpoint head (ahead_of : nat -> nat -> bool) (line : list nat) : option nat :=
  match line with
  | [] => None
  | x :: rest =>
    match head ahead_of rest with
    | None => Some x
    | Some y => if ahead_of (unit_of w y) (unit_of w x) then Some y else Some x
    end
  end.

Definition start_in (k x : nat) (st : nat -> option nat) : nat -> option nat :=
  fun y => if (y =? x)%nat then Some k else st y.

(** Start the head of the line while it fits; at most [fuel] times. *)
Fixpoint admit (fuel k : nat) (ahead_of : nat -> nat -> bool) (st : nat -> option nat) : nat -> option nat :=
  match fuel with
  | O => st
  | S fuel' =>
    match head ahead_of (filter (in_line st k) (inferences w)) with
    | None => st
    | Some x => if fits g st k x then admit fuel' k ahead_of (start_in k x st) else st
    end
  end.

(** One step of clock and starts together. *)
Definition loop_step (k : nat) (state : clock * (nat -> option nat)) : clock * (nat -> option nat) :=
  let (c, st) := state in
  let c' := release_all w k c in
  let st' := admit (length (inferences w)) k (before w (clock_tag w c')) st in
  (serve w (delivered (execution_of st') k) c', st').

Fixpoint loop (k : nat) : clock * (nat -> option nat) :=
  match k with
  | O => (clock_start, fun _ => None)
  | S k' => loop_step k' (loop k')
  end.

(** The starts that are decided before step [k]. *)
Definition starts (k : nat) : nat -> option nat := snd (loop k).
End Loop.

(** The run of the first [T] steps; what has started is then left to end. *)
Definition closed_loop (w : workload) (g : engine) (T : nat) : run :=
  let st := starts w g T in Run (execution_of w g st) st.
