(** * An agent dropped when it ends: six agents and a mouse

    One inference of cost 1 in each step. Six agents with ten inferences each arrive in step 0 and run one after the
    other; a mouse of one inference arrives in step 39, in the middle of the fourth. The level is then 39/6, and the
    mouse's tag 15/2; the clock that has dropped three of the six stands at 55/6 and gives the mouse 61/6, after
    all others. It starts in step 60, when 60 has been delivered, where the reference is through with it at 46. *)
Require Import List Arith QArith.
From Justitia Require Import Sums NegativeResults Deciding.
Import ListNotations.

Definition w : workload := Workload (seq 0 61) (seq 0 7) (seq 0 7)
  (fun x => (x / 10)%nat) (fun u => u) (fun _ => 1%nat)
  (fun _ => 1)
  (fun u => if (u =? 6)%nat then 1 else 10)
  (fun u => if (u =? 6)%nat then 39%nat else 0%nat) (fun u => u).

Definition r : run := table_run w (fun x => repeat 0 x ++ [1]) (fun x => Some x).

Definition f : reference := reference_of r.

(** The faulty tags, computed once. *)
Definition faulty (u : nat) : Q := nth u [10; 10; 10; 10; 10; 10; 61 # 6] 0.

Theorem faulty_tags : map (fun u => Qred (dropping_tag r u)) (units r) = map faulty (units r).
Proof. vm_compute. reflexivity. Qed.

Theorem true_tags : map (fun u => Qred (tag r f u)) (units r) = [10; 10; 10; 10; 10; 10; 15 # 2].
Proof. vm_compute. reflexivity. Qed.

Theorem hypotheses : well_formed r /\ valid_run r /\ never_underestimated r /\ keeps_order r faulty.
Proof. check. Qed.

Theorem mouse : start r 60 = Some 60%nat /\ quiet r faulty 6 0 60 /\ finishes r f 6 45.
Proof.
  split; [reflexivity|]. split; [apply quiet_checked|apply finish_checked]; vm_compute; reflexivity.
Qed.

Theorem values : total r 60 == 60 /\ G r f 6 45 == 46 /\ inflight r 0 == 0 /\ cost r 60 == 1.
Proof. compute_values. Qed.

(** The excess is 15. *)
Theorem excess : G r f 6 45 + inflight r 0 - cost r 60 + 15 == total r 60.
Proof. compute_values. Qed.
