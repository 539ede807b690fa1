(** * Memory held in prefill, counted as service: the smallest run

    One agent, one inference at a time: first (1,1), then (0,1). The first holds its prompt token in step 0, where
    it produces nothing, and two tokens in step 1. Costs 2 and 1. The second starts in step 2, when 3 has been "delivered";
    the reference is through with the agent at 3, and the bound is 3 + 0 - 1. Without a prompt token, or with one
    inference, nothing can be held that is not service or nothing starts late: no smaller run exceeds. *)
Require Import List Arith QArith.
From Justitia Require Import Sums NegativeResults Deciding.
Import ListNotations.

Definition p (x : nat) : nat := if (x =? 0)%nat then 1%nat else 0%nat.
Definition d (_ : nat) : nat := 1%nat.

Definition w : workload := Workload [0; 1]%nat [0]%nat [0]%nat
  (fun _ => 0%nat) (fun u => u) (fun _ => 1%nat)
  (fun x => q (kv_cost (p x) (d x)))
  (fun _ => 3) (fun _ => 0%nat) (fun u => u).

Definition r : run := table_run w
  (fun x => if (x =? 0)%nat then [1; 2] else [0; 0; 1])
  (fun x => if (x =? 0)%nat then Some 0%nat else Some 2%nat).

Definition f : reference := reference_of r.

Theorem hypotheses : well_formed r /\ never_underestimated r /\ keeps_order r (tag r f) /\ comparison r f 1 2 0 1.
Proof. check. Qed.

(** The first receives more than its cost: this is the hypothesis of Theorem B that fails. *)
Theorem more_than_its_cost : got r 0 2 == 3 /\ cost r 0 == 2.
Proof. compute_values. Qed.

Theorem values : total r 2 == 3 /\ G r f 0 1 == 3 /\ inflight r 0 == 0 /\ cost r 1 == 1.
Proof. compute_values. Qed.

Theorem excess : G r f 0 1 + inflight r 0 - cost r 1 < total r 2.
Proof. reflexivity. Qed.
