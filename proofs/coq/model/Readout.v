(** * What can be read off a run by computation

    The quantities of Theorem B as programs, for tests and examples: the step [b] from which nothing behind a
    unit starts, the step in which the reference finishes a unit, and the slack of the bound. *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums.
From Justitia Require Export Lag ServiceClock.
Import ListNotations.

(** Something behind [j] in line starts in step [k]. *)
Definition overtakes (r : run) (tag : nat -> Q) (j k : nat) : bool :=
  existsb (fun z => match start r z with Some s => (s =? k)%nat | None => false end
                    && before r tag j (unit_of r z)) (inferences r).

Fixpoint quiet_since (r : run) (tag : nat -> Q) (j s : nat) : nat :=
  match s with
  | O => O
  | S s' => if overtakes r tag j s' then s else quiet_since r tag j s'
  end.

Definition check_finish (w : workload) (f : reference) (j n : nat) : bool :=
  (ready w j <=? n)%nat && Qle_bool (V f n) (tag w f j) && Qle_bool (tag w f j) (V f (S n)).

(** The first step before [n] in which the reference finishes unit [j]. *)
Definition finish_step (w : workload) (f : reference) (j n : nat) : option nat :=
  find (check_finish w f j) (seq 0 n).

(** The right side of Theorem B less the left, for inference [x]; [None] when it does not start, or the reference does
    not finish its unit before step [n]. *)
Definition slack (r : run) (f : reference) (x n : nat) : option Q :=
  let j := unit_of r x in
  match start r x, finish_step r f j n with
  | Some s, Some m =>
    let b := quiet_since r (tag r f) j s in
    Some (G r f j m + inflight r b - cost r x + underestimate r (tag r f) j b s - total r s)
  | _, _ => None
  end.

(** The levels of a clock at the beginning of steps [k .. k + n], where it is [c] at that of step [k]. *)
Fixpoint levels (w : workload) (s : nat -> Q) (k : nat) (c : clock) (n : nat) : list Q :=
  level c :: match n with
             | O => []
             | S n' => levels w s (S k) (serve w (s k) (release_all w k c)) n'
             end.

(** The reference of an execution with its first [n] steps tabulated. It gives the same, when all units become ready
    before step [n], and takes a time that is linear and not quadratic in the number of steps. *)
Definition tabulated (e : execution) (n : nat) : reference :=
  let table := levels e (delivered e) 0 clock_start n in
  let c := clock_at e (delivered e) n in
  Reference (fun k => nth k table 0) (bases c) (unit_weight e).
