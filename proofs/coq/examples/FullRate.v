(** * Theorem B.1 with all its hypotheses, in closed loop

    A server of 6 KV tokens whose inferences have 1 prompt and 1 decoded token: 2 tokens for 1 step. Agent 0 has six
    inferences in step 0, agent 1 two in step 1, agent 2 one in step 1. Every step in which something waits
    delivers 6 = M, so that R = M, and D = 1: an inference ends at most one step after the reference has
    finished its agent. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums KVDelayProof Deciding.
Import ListNotations.

Definition w : workload := Workload (seq 0 9) [0; 1; 2]%nat [0; 1; 2]%nat
  (fun x => nth x [0; 0; 0; 0; 0; 0; 1; 1; 2]%nat 0%nat)
  (fun u => u) (fun _ => 1%nat)
  (fun _ => 2)
  (fun u => nth u [12; 4; 2] 0)
  (fun u => nth u [0; 1; 1]%nat 0%nat)
  (fun u => u).

Definition p (_ : nat) : nat := 1.
Definition d (_ : nat) : nat := 1.
Definition r : run := closed_loop w (kv_engine p d (reserve w p d 6)) 10.
Definition f : reference := reference_of r.

Theorem hypotheses : well_formed w /\ never_underestimated w /\ busy r 6.
Proof. check. Qed.

Theorem costs : kv_costs w p d.
Proof. intros x _. reflexivity. Qed.

Theorem starts_computed :
  map (start r) (seq 0 9) = map Some [0; 0; 0; 2; 2; 2; 1; 1; 1]%nat.
Proof. compute_values. Qed.

(** Agents 0 and 2 end when the reference finishes them, at 3 and 2; agent 1 ends 2/3 of a step before it does. *)
Theorem compared : comparison r f 5 2 0 2 /\ comparison r f 8 1 1 1 /\ comparison r f 7 1 1 2.
Proof. check. Qed.

Theorem finish_times : finish_time r f 0 2 == 3 /\ finish_time r f 2 1 == 2 /\ finish_time r f 1 2 == 8 # 3.
Proof. compute_values. Qed.

Theorem bound x s b n : comparison r f x s b n -> q (s + 1) <= finish_time r f (unit_of w x) n + 1.
Proof.
  intros C. destruct hypotheses as (form & exact & full).
  pose proof (theorem_B1_reserve_holds w p d 6%nat 10%nat) as B.
  specialize (B ltac:(apply distinct_NoDup; reflexivity) form costs exact 6 1%nat ltac:(reflexivity) full
                ltac:(intros y _; apply le_n) x s b n C).
  setoid_replace (q 6 / 6 * q (1 - 1)) with 0 in B by reflexivity.
  rewrite Qplus_0_r in B. exact B.
Qed.
