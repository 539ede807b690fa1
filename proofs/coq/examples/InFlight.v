(** * The term I is needed in full

    An inference of agent 0 (cost 4) runs from step 0, one unit of service a step; agent 1 (cost 1) is ready
    in step 1 and must wait for it until step 4. With weight 1000 its tag is 1 + 1/1000, so the reference serves
    it almost alone, and finishes it when 2 + 1/1000 have been delivered. [I = 3], and
    4 <= (2 + 1/1000) + 3 - 1: the bound is missed by 1/1000, and by as little as one likes with a larger weight.
    The same in time: it starts at 4, and g + (I - c)/R = (2 + 1/1000) + (3 - 1)/1. *)
Require Import List Arith QArith.
From Justitia Require Import Sums ExecutableLagProof DelayInTimeProof FairClockProof SharpLag Deciding.
Import ListNotations.

Definition cost_of (x : nat) : Q := if (x =? 0)%nat then 4 else 1.

Definition w : workload := Workload [0; 1]%nat [0; 1]%nat [0; 1]%nat
  (fun x => x) (fun u => u) (fun i => if (i =? 0)%nat then 1%nat else 1000%nat)
  cost_of cost_of (fun u => u) (fun u => u).

Definition r : run := table_run w
  (fun x => if (x =? 0)%nat then [1; 1; 1; 1] else [0; 0; 0; 0; 1])
  (fun x => if (x =? 0)%nat then Some 0%nat else Some 4%nat).

Definition f : reference := reference_of r.

Theorem hypotheses : well_formed r /\ valid_run r /\ keeps_order r (tag r f) /\ never_underestimated r /\
  busy r 1 /\ ends_within r 4.
Proof. check. Qed.

Theorem compared : comparison r f 1 4 1 2.
Proof. check. Qed.

Theorem values : total r 4 == 4 /\ G r f 1 2 == 2 + (1 # 1000) /\ inflight r 1 == 3 /\ cost r 1 == 1 /\
  finish_time r f 1 2 == 2 + (1 # 1000).
Proof. compute_values. Qed.

Theorem nearly_equal : G r f 1 2 + inflight r 1 - cost r 1 - total r 4 == 1 # 1000.
Proof. compute_values. Qed.

(** The 1/1000 is what agent 0 receives from the reference meanwhile: the sharp form holds with equality. *)
Theorem sharp_equality :
  others r f 1 1 4 == 1 # 1000 /\ total r 4 == G r f 1 2 + inflight r 1 - cost r 1 - others r f 1 1 4.
Proof. compute_values. Qed.

Theorem nearly_equal_in_time : finish_time r f 1 2 + (inflight r 1 - cost r 1) / 1 - q 4 == 1 # 1000.
Proof. compute_values. Qed.

(** What the theorems say of this run. *)
Theorem bound x s b n : comparison r f x s b n -> total r s <= G r f x n + inflight r b - cost r x.
Proof.
  destruct hypotheses as (form & valid & order & exact & _).
  apply (ServiceLagProof.theorem_B_holds r f form valid); auto.
  apply theorem_clock_fair_holds; auto. apply (valid_run_service r valid).
Qed.

Theorem bound_in_time x s b n t : comparison r f x s b n -> ends r x t ->
  q t <= finish_time r f x n + inflight r b / 1 + q 4.
Proof.
  destruct hypotheses as (form & valid & order & exact & full & short).
  apply (theorem_B_time_holds r f form valid); auto; [|reflexivity].
  apply theorem_clock_fair_holds; auto. apply (valid_run_service r valid).
Qed.
