(** * What the engine delivers

    Time is counted in steps 0, 1, 2, ... An execution says how much service each inference receives in each
    step. Nothing is said about why: memory, packing, batch limits, prefill, or the length of a step in
    seconds. A step may deliver nothing. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Workload.

Record execution := Execution {
  load :> workload;
  service : nat -> nat -> Q      (** [service x k]: what inference [x] receives in step [k] *)
}.

Section Sums.
Variable e : execution.

(** [s_k], what step [k] delivers to all. *)
Definition delivered (k : nat) : Q := sumq (fun x => service e x k) (inferences e).

(** [S(n) = s_0 + ... + s_(n-1)], what was delivered before step [n]. *)
Definition total (n : nat) : Q := upto delivered n.

(** What inference [x] has received before step [n]. *)
Definition got (x n : nat) : Q := upto (service e x) n.
End Sums.

(** Service is never taken back, and no inference receives more than its cost. *)
Record valid_service (e : execution) : Prop := {
  service_nonneg : forall x k, In x (inferences e) -> 0 <= service e x k;
  service_within_cost : forall x n, In x (inferences e) -> got e x n <= cost e x
}.
