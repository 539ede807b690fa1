(** * A mouse behind elephants, in closed loop

    A server of 20 KV tokens that reserves peaks. Agent 0 has three inferences of 0 prompt and 10 decoded tokens
    in step 0; agent 1, the mouse, has one of 9 and 2 in step 1. The scheduler starts two of agent 0 at once; the mouse
    has the smaller tag, waits for them, and goes before the third: 110 <= 44 + 108 - 21. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums ExecutableLagProof KVDelayProof Deciding.
Import ListNotations.

Definition p (x : nat) : nat := if (x =? 3)%nat then 9%nat else 0%nat.
Definition d (x : nat) : nat := if (x =? 3)%nat then 2%nat else 10%nat.

Definition w : workload := Workload [0; 1; 2; 3]%nat [0; 1]%nat [0; 1]%nat
  (fun x => if (x =? 3)%nat then 1%nat else 0%nat)
  (fun u => u) (fun _ => 1%nat)
  (fun x => q (kv_cost (p x) (d x)))
  (fun u => if (u =? 0)%nat then 165 else 21)
  (fun u => u) (fun u => u).

Definition r : run := closed_loop w (kv_engine p d (reserve w p d 20)) 30.
Definition f : reference := reference_of r.

Theorem hypotheses : well_formed w /\ never_underestimated w.
Proof. check. Qed.

Theorem costs : kv_costs w p d.
Proof. intros x _. reflexivity. Qed.

Theorem starts_computed : map (start r) [0; 1; 2; 3]%nat = [Some 0; Some 0; Some 12; Some 10]%nat.
Proof. compute_values. Qed.

Theorem compared : comparison r f 3 10 1 6.
Proof. check. Qed.

Theorem values : total r 10 == 110 /\ G r f 1 6 == 44 /\ inflight r 1 == 108 /\ cost r 3 == 21 /\
  underestimate r (tag r f) 1 1 10 == 0.
Proof. compute_values. Qed.

Theorem bound x s b n : comparison r f x s b n ->
  let j := unit_of w x in
  total r s <= G r f j n + inflight r b - cost w x + underestimate w (tag w f) j b s.
Proof. apply theorem_B_kv_holds; [apply hypotheses|apply costs]. Qed.

(** In time. Waiting steps deliver at least 2 (the first one does), no step more than 20, and [D = 10]. The reference
    finishes the mouse at 6 + 1/7; it ends at 12, and the theorem promises 6 + 1/7 + (20 / 2) 9 + 2. *)
Theorem waiting_steps : busy r 2.
Proof. check. Qed.

Theorem finish_time_value : finish_time r f 1 6 == 43 # 7.
Proof. compute_values. Qed.

Theorem bound_in_time x s b n : comparison r f x s b n ->
  q (s + d x) <= finish_time r f (unit_of w x) n + 20 / 2 * q 9 + q (d x).
Proof.
  destruct hypotheses as [form exact]. intros C.
  apply (theorem_B1_reserve_holds w p d 20%nat 30%nat) with (b := b) (D := 10%nat);
    auto using costs, waiting_steps; [apply distinct_NoDup; reflexivity|reflexivity|].
  intros y _. unfold d. destruct (y =? 3)%nat; lia.
Qed.
