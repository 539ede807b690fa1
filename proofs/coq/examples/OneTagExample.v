(** * One tag for a staged agent: a run of four stages

    Agent 0 is a chain of four inferences of cost 1; agent 1 has four of cost 2. Each step runs one of each. The last
    stage of agent 0 starts in step 3, when 9 has been delivered; the reference is through with the agent when it
    has handed out 8, so that the bound is 8 + 0 - 1. [OneTagForStages] makes the excess as large as one likes. *)
Require Import List Arith QArith.
From Justitia Require Import Sums NegativeResults Deciding.
Import ListNotations.

Definition w : workload := Workload (seq 0 8) [0; 1]%nat [0; 1]%nat
  (fun x => (x / 4)%nat) (fun u => u) (fun _ => 1%nat)
  (fun x => if (x <? 4)%nat then 1 else 2)
  (fun u => nth u [4; 8] 0)
  (fun _ => 0%nat) (fun u => u).

Definition r : run := table_run w
  (fun x => repeat 0 (x mod 4) ++ [if (x <? 4)%nat then 1 else 2])
  (fun x => Some (x mod 4)%nat).

Definition f : reference := reference_of r.

Theorem hypotheses : well_formed r /\ valid_run r /\ never_underestimated r.
Proof. check. Qed.

Theorem tags : tag r f 0 == 4 /\ tag r f 1 == 8.
Proof. compute_values. Qed.

Theorem compared : comparison r f 3 3 3 2.
Proof. check. Qed.

Theorem values : total r 3 == 9 /\ G r f 0 2 == 8 /\ inflight r 3 == 0 /\ cost r 3 == 1.
Proof. compute_values. Qed.

(** Stage [k] waits for stage [k - 1], so the order is kept among what is ready; but not among all that has
    arrived, as Theorem B wants it. *)
Theorem excess : G r f 0 2 + inflight r 3 - cost r 3 < total r 3.
Proof. reflexivity. Qed.

Theorem order_not_kept : check_order r (tag r f) = false.
Proof. vm_compute. reflexivity. Qed.
