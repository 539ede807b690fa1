(** * Equality in Theorem B

    One inference at a time. Agent 0 has cost 2 and is ready in step 0, agent 1 has cost 1 and is ready in
    step 1. Both tags are 2 (0 + 2 and 1 + 1), and the earlier goes first, so agent 1 starts in step 2, when 2
    have been delivered. The reference finishes it when 3 have been delivered: 2 = 3 + 0 - 1. *)
Require Import List Arith QArith.
From Justitia Require Import Sums ServiceLagProof FairClockProof Deciding.
Import ListNotations.

Definition cost_of (x : nat) : Q := if (x =? 0)%nat then 2 else 1.

Definition w : workload := Workload [0; 1]%nat [0; 1]%nat [0; 1]%nat
  (fun x => x) (fun u => u) (fun _ => 1%nat) cost_of cost_of (fun u => u) (fun u => u).

Definition r : run := table_run w
  (fun x => if (x =? 0)%nat then [1; 1] else [0; 0; 1])
  (fun x => if (x =? 0)%nat then Some 0%nat else Some 2%nat).

Definition f : reference := reference_of r.

Theorem hypotheses : well_formed r /\ valid_run r /\ keeps_order r (tag r f) /\ never_underestimated r.
Proof. check. Qed.

Theorem compared : comparison r f 1 2 0 2.
Proof. check. Qed.

Theorem values : total r 2 == 2 /\ G r f 1 2 == 3 /\ inflight r 0 == 0 /\ cost r 1 == 1.
Proof. compute_values. Qed.

(** The theorem applies, and holds with equality. *)
Theorem bound : total r 2 <= G r f 1 2 + inflight r 0 - cost r 1.
Proof.
  destruct hypotheses as (form & valid & order & exact).
  apply (theorem_B_holds r f form valid) with (x := 1%nat) (s := 2%nat) (b := 0%nat) (n := 2%nat);
    auto using compared.
  apply theorem_clock_fair_holds; auto. apply (valid_run_service r valid).
Qed.

Theorem equality : total r 2 == G r f 1 2 + inflight r 0 - cost r 1.
Proof. compute_values. Qed.
