(** * Stages, weights, a pause, an inversion, and a wrong prediction

    Agent 0: inference 0 (cost 4), from step 0; it pauses in step 2, so that step delivers nothing. Agent 1, of weight
    2: a first stage with inference 1 (cost 1), ready in step 1, and a second one with inference 2 (cost 2, but
    predicted to be 1), ready in step 6. Each unit has one inference, of the same number. *)
Require Import List Arith QArith.
From Justitia Require Import Sums ExecutableLagProof Deciding.
Import ListNotations.

Definition w : workload := Workload [0; 1; 2]%nat [0; 1; 2]%nat [0; 1]%nat
  (fun x => x)
  (fun u => if (u =? 0)%nat then 0%nat else 1%nat)
  (fun i => if (i =? 0)%nat then 1%nat else 2%nat)
  (fun x => nth x [4; 1; 2] 0)
  (fun u => nth u [4; 1; 1] 0)
  (fun u => nth u [0; 1; 6]%nat 0%nat)
  (fun u => u).

Definition r : run := table_run w
  (fun x => nth x [ [1; 1; 0; 1; 1]; [0; 0; 0; 0; 0; 1]; [0; 0; 0; 0; 0; 0; 1; 1] ] [])
  (fun x => nth x [Some 0; Some 5; Some 6]%nat None).

Definition f : reference := reference_of r.

Theorem hypotheses : well_formed r /\ valid_run r /\ keeps_order r (tag r f).
Proof. check. Qed.

Theorem tags : tag r f 0 == 4 /\ tag r f 1 == 3 # 2 /\ tag r f 2 == 9 # 2.
Proof. compute_values. Qed.

(** Inference 1 is overtaken by inference 0 ([t0 = 0], [I = 3]), and starts in step 5: 4 <= 5/2 + 3 - 1. *)
Theorem compared_1 : comparison r f 1 5 1 3.
Proof. check. Qed.

Theorem values_1 : total r 5 == 4 /\ G r f 1 3 == 5 # 2 /\ inflight r 1 == 3 /\
  underestimate r (tag r f) 1 1 5 == 0.
Proof. compute_values. Qed.

(** Inference 2, of the underestimated stage, starts in step 6 and meets the bound with equality: 5 = 6 + 0 - 2 + 1.
    Without the term for its own underestimate the bound would be 4, and false. *)
Theorem compared_2 : comparison r f 2 6 0 6.
Proof. check. Qed.

Theorem values_2 : total r 6 == 5 /\ G r f 2 6 == 6 /\ inflight r 0 == 0 /\
  underestimate r (tag r f) 2 0 6 == 1.
Proof. compute_values. Qed.

Theorem bound x s b n : comparison r f x s b n ->
  total r s <= G r f x n + inflight r b - cost r x + underestimate r (tag r f) x b s.
Proof. destruct hypotheses as (form & valid & order). apply (theorem_B_clock_holds r form valid order). Qed.

Theorem equality_2 :
  total r 6 == G r f 2 6 + inflight r 0 - cost r 2 + underestimate r (tag r f) 2 0 6.
Proof. compute_values. Qed.
