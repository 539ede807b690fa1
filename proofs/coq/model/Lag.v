(** * What the lag depends on

    Let an inference of unit [j] start in step [s]. Look back to [t0], the last step before [s] in which
    something behind [j] in line started, and let [b = t0 + 1], or [b = 0] when there is no such step. From
    [b] to [s] nothing behind [j] starts. *)
Require Import List Arith QArith Qminmax Bool.
From Justitia Require Import Sums.
From Justitia Require Export Run Order Reference.

Section Lag.
Variable r : run.
Variable tag : nat -> Q.

(** Something behind [j] in line starts in step [k]. *)
Definition starts_after (j k : nat) : Prop :=
  exists z, In z (inferences r) /\ start r z = Some k /\ before r tag j (unit_of r z) = true.

Definition quiet (j b s : nat) : Prop :=
  (b <= s)%nat /\
  (forall k, (b <= k < s)%nat -> ~ starts_after j k) /\
  (forall t0, b = S t0 -> starts_after j t0).
End Lag.

(** [I]: what the inferences in flight at the beginning of step [b] still have to receive. *)
Definition inflight (r : run) (b : nat) : Q :=
  sumq (fun x => if started_before r x b then cost r x - got r x b else 0) (inferences r).

Section Ahead.
Variable w : workload.
Variable tag : nat -> Q.

(** The units that become ready in steps [b .. s] and are not behind [j]; [j] is one of them. *)
Definition ahead (j b s u : nat) : bool :=
  (b <=? ready w u)%nat && (ready w u <=? s)%nat && negb (before w tag j u).

(** By how much these were underestimated. *)
Definition underestimate (j b s : nat) : Q :=
  sumq (fun u => if ahead j b s u then Qmax 0 (true_cost w u - predicted w u) else 0) (units w).
End Ahead.

(** Inference [x] starts in step [s], is overtaken last in the step before [b], and the reference finishes
    its unit in step [n]. *)
Record comparison (r : run) (f : reference) (x s b n : nat) : Prop := {
  compared : In x (inferences r);
  compared_start : start r x = Some s;
  compared_quiet : quiet r (tag r f) (unit_of r x) b s;
  compared_finish : finishes r f (unit_of r x) n
}.
