(** * Preemption

    Inference 0 (cost 4) runs in steps 0, 2, 3 and 4; inference 1 (cost 1), ready in step 1, takes step 1 from
    it. For the first start of inference 1 [t0 = 0] and [I = 3]: 1 <= 3 + 3 - 1. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums PreemptionLagProof Deciding.
Import ListNotations.

Definition cost_of (x : nat) : Q := if (x =? 0)%nat then 4 else 1.

Definition w : workload := Workload [0; 1]%nat [0; 1]%nat [0; 1]%nat
  (fun x => x) (fun u => u) (fun _ => 1%nat) cost_of cost_of (fun u => u) (fun u => u).

Definition row (x : nat) : list Q := if (x =? 0)%nat then [1; 0; 1; 1; 1] else [0; 1].

Definition present (x : nat) : list bool :=
  if (x =? 0)%nat then [true; false; true; true; true] else [false; true].

Definition r : preemptive_run := PreemptiveRun
  (Execution w (fun x k => nth k (row x) 0))
  (fun x k => nth k (present x) false).

Definition f : reference := reference_of r.

Theorem hypothesis_form : well_formed r.
Proof. check. Qed.

Lemma inference_of x : In x (inferences r) -> x = 0%nat \/ x = 1%nat.
Proof. intros [<-|[<-|[]]]; auto. Qed.

Lemma running_0 k : running r 0 k = true -> (k <= 4 /\ k <> 1)%nat.
Proof. do 5 (destruct k as [|k]; [try discriminate; lia|]). destruct k; discriminate. Qed.

Lemma running_1 k : running r 1 k = true -> k = 1%nat.
Proof. do 2 (destruct k as [|k]; [try discriminate; lia|]). destruct k; discriminate. Qed.

Theorem hypothesis_valid : valid_preemptive_run r.
Proof.
  constructor; [check|..]; intros x k Hx; destruct (inference_of x Hx) as [->| ->].
  - do 5 (destruct k as [|k]; [try discriminate; reflexivity|]). destruct k; reflexivity.
  - do 2 (destruct k as [|k]; [try discriminate; reflexivity|]). destruct k; reflexivity.
  - intros _. apply Nat.le_0_l.
  - intros H. apply running_1 in H. subst. apply le_n.
Qed.

(** Agent 1 is ahead. Whatever enters after step 1 finds nobody outside who still is to run. *)
Theorem hypothesis_order : enters_in_order r (tag r f).
Proof.
  intros x y k Hx Hy [E1 _] (O1 & O2 & k' & O3 & O4).
  destruct (inference_of x Hx) as [->| ->], (inference_of y Hy) as [->| ->]; try (vm_compute; reflexivity).
  apply running_1 in O4. subst. cbn in O1. lia.
Qed.

Theorem compared : first_comparison r f 1 1 1 2.
Proof.
  constructor; [right; left; reflexivity| | |apply finish_checked; vm_compute; reflexivity].
  - split; [reflexivity|]. intros k Hk. replace k with 0%nat by lia. reflexivity.
  - split; [apply le_n|]. split; [intros; lia|]. intros t0 E. injection E as <-. exists 0%nat.
    split; [left; reflexivity|]. split; [split; reflexivity|vm_compute; reflexivity].
Qed.

Theorem values : total r 1 == 1 /\ G r f 1 2 == 3 /\ in_engine r 1 == 3 /\ cost r 1 == 1.
Proof. compute_values. Qed.

Theorem bound x s b n : first_comparison r f x s b n ->
  total r s <= G r f x n + in_engine r b - cost r x + underestimate r (tag r f) x b s.
Proof. apply (theorem_B_preemption_clock_holds r hypothesis_form hypothesis_valid hypothesis_order). Qed.
