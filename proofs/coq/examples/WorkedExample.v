(** * The paper's worked example

    A memory of 100. Agent A (0) arrives in step 0 with ten inferences of cost 20, agents B (1, cost 30)
    and C (2, cost 40) in step 1, when the virtual time is 100. Tags 200, 130 and 140: once A's running
    inferences end, B and C come first, then the rest of A. The reference finishes B at 1.9, C at 2.1,
    and A at 2.7. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Demand RateClock Scheduler Admission System.
Import ListNotations.

(** Inferences 0 .. 9 are A's, 10 is B's, 11 is C's. Each runs one step, so that its footprint is its
    cost. *)
Definition paper : demand :=
  {| inferences := seq 0 12; agents := [0; 1; 2]%nat;
     owner := fun x => if x <? 10 then 0%nat else if x =? 10 then 1%nat else 2%nat;
     footprint := fun x => if x <? 10 then 20%nat else if x =? 10 then 30%nat else 40%nat;
     duration := fun _ => 1%nat;
     arrival := fun i => if i =? 0 then 0%nat else 1%nat |}.

Definition paper_system : system :=
  System paper (fun i => q (agent_work paper i)) 100 (reserve_peak paper 100).

Definition finish_in_paper (i : nat) : Q :=
  let cost := declared_cost paper_system in
  let step := finish_step (agents paper) (arrival paper) cost 100 10 0 i in
  Qred (reference_finish (agents paper) (arrival paper) cost 100 step i).

Theorem paper_costs : map (declared_cost paper_system) [0; 1; 2]%nat = [200; 30; 40].
Proof. vm_compute. reflexivity. Qed.

Theorem paper_virtual_time : virtual_time_in paper_system 1 == 100.
Proof. vm_compute. reflexivity. Qed.

Theorem paper_tags : map (tag_in paper_system) [0; 1; 2]%nat = [200; 130; 140].
Proof. vm_compute. reflexivity. Qed.

Theorem paper_reference_finishes : map finish_in_paper [0; 1; 2]%nat = [27 # 10; 19 # 10; 21 # 10].
Proof. vm_compute. reflexivity. Qed.

(** Five of A's run in step 0. In step 1 the line is B, C, then A; what is left of A starts in steps 1
    and 2. *)
Theorem paper_line :
  join paper (tag_in paper_system) 1 (line paper (tag_in paper_system) (admission paper_system) 1)
  = [10; 11; 5; 6; 7; 8; 9]%nat.
Proof. vm_compute. reflexivity. Qed.

Theorem paper_starts : map (starts paper (tag_in paper_system) (admission paper_system) 3) (inferences paper)
  = map Some [0; 0; 0; 0; 0; 1; 2; 2; 2; 2; 1; 1]%nat.
Proof. vm_compute. reflexivity. Qed.

