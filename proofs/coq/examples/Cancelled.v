(** * An agent that is cancelled, and what dropping it would do

    One inference at a time. Agent 0 has ten inferences of one step and cost 1, predicted right: 10. Agent 1 has
    one of cost 11 in one step. Both arrive in step 0, with the tags 10 and 11. Agent 0 goes first, and before
    step 4 its user gives up: four inferences have been delivered, six vanish. Agent 1 starts in step 4.

    Settled at 4, agent 0 still gets 2 from the reference, which has given it 2: agent 1 is finished when 15 have
    been delivered, and the bound is an equality, 4 = 15 + 0 - 11. Dropped, agent 0 gets nothing more, agent 1 is
    finished at 13, and the same bound would say 4 <= 2. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums Level KVFacts SettledLagProof CancelLagProof Lag CancelLoop Deciding.
Import ListNotations.

Definition p (x : nat) : nat := if (x =? 10)%nat then 10%nat else 0%nat.
Definition d (_ : nat) : nat := 1%nat.

Definition w : workload := Workload (seq 0 11) [0; 1]%nat [0; 1]%nat
  (fun x => if (x =? 10)%nat then 1%nat else 0%nat)
  (fun u => u) (fun _ => 1%nat)
  (fun x => q (kv_cost (p x) (d x)))
  (fun u => if (u =? 0)%nat then 10 else 11)
  (fun _ => 0%nat) (fun u => u).

(** Nothing else has started in step [k]. *)
Definition one_at_a_time (st : nat -> option nat) (k _ : nat) : bool :=
  forallb (fun y => match st y with Some s => negb (s =? k)%nat | None => true end) (inferences w).

Definition g : engine := kv_engine p d one_at_a_time.
Definition rule : leave_rule :=
  done_or_cancelled w d (fun u => if (u =? 0)%nat then Some 4%nat else None).

Definition T : nat := 8.
Definition r : run := cancel_run w g rule false T.
Definition leave : nat -> option nat := cancel_leave w g rule false T.
Definition tag : nat -> Q := given_tag r leave false.

Theorem form : well_formed w.
Proof. check. Qed.

Theorem valid : valid_engine w g.
Proof. apply kv_engine_valid. intros x _. reflexivity. Qed.

(** Agent 0 leaves before step 4, agent 1 when it is done. *)
Theorem computed :
  map (start r) (inferences r) = [Some 0; Some 1; Some 2; Some 3; None; None; None; None; None; None; Some 4]%nat /\
  map leave [0; 1]%nat = [Some 4; Some 5]%nat /\
  tag 0 == 10 /\ tag 1 == 11 /\ settled_tag r leave false 4 0 == 4 /\ settled_tag r leave false 4 1 == 11.
Proof. compute_values. Qed.

Theorem premises : In 10%nat (inferences r) /\ start r 10 = Some 4%nat /\ quiet r tag 1 0 4 /\
  cancel_G w g rule false T 0 = Some 8 /\ cancel_G w g rule false T 1 = Some 15.
Proof.
  repeat match goal with |- _ /\ _ => split end; try (vm_compute; reflexivity).
  - apply member_In. vm_compute. reflexivity.
  - apply quiet_checked. vm_compute. reflexivity.
Qed.

Theorem bound x s b G : In x (inferences r) -> start r x = Some s ->
  let j := unit_of w x in
  quiet r tag j b s -> cancel_G w g rule false T j = Some G ->
  total r s <= G + inflight r b - cost r x + underestimate r tag j b s.
Proof. apply (theorem_B_cancelled_holds w g rule false form valid T). Qed.

Theorem equality : total r 4 == 15 + inflight r 0 - cost r 10 + underestimate r tag 1 0 4 /\
  total r 4 == 4 /\ inflight r 0 == 0 /\ cost r 10 == 11 /\ underestimate r tag 1 0 4 == 0.
Proof. compute_values. Qed.

(** ** Dropped *)

(** An agent is out at once when it is kept at what the reference has given it, here 2. *)
Definition dropped (u : nat) : Q := if (u =? 0)%nat then 2 else 11.
Definition level_dropped : nat -> Q := settling_level w leave false dropped (delivered r).
Definition tag_dropped : nat -> nat -> Q := tag_in_step w leave false dropped (delivered r).
Definition G_dropped (n : nat) (v : Q) : Q :=
  total r n + fill (table_bag w (map (fun u => (u, tag_dropped n u)) (units w))) (level_dropped n) v.

(** The tags on arrival are the same, so the line is; in step 4 agent 0 is out; agent 1 is finished at 13. *)
Theorem dropped_at_once :
  tag_dropped 3 0 == 10 /\ tag_dropped 4 0 == level_dropped 4 /\ tag_dropped 4 1 == 11 /\
  level_dropped 4 == 2 /\ level_dropped 5 == 11 /\ G_dropped 4 11 == 13.
Proof. compute_values. Qed.

Theorem dropping_breaks_the_bound :
  G_dropped 4 11 + inflight r 0 - cost r 10 + underestimate r tag 1 0 4 < total r 4.
Proof. vm_compute. reflexivity. Qed.
