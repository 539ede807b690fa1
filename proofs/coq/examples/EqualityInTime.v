(** * Equality in Theorem A

    One inference that fills the memory ends at 1 = 1 + 0 + 1 - 1. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import TheoremA TheoremAInstances TheoremAProof TheoremAInstancesProof.
Import ListNotations.

Definition W : demand :=
  {| inferences := [0]%nat; agents := [0]%nat; owner := fun x => x; footprint := fun _ => 3%nat;
     duration := fun _ => 1%nat; arrival := fun _ => 0%nat |}.
Definition Y : system :=
  System W (reserved_cost W) (q 3) (reserve_peak W 3).

Theorem bound : bounded Y 3 1.
Proof.
  apply theorem_A_uniform_holds with (u := 3%nat).
  - split; simpl; auto. constructor; [tauto|constructor].
  - lia.
  - exists 1%nat. reflexivity.
  - auto.
Qed.
Theorem start : started Y 1 0 0.
Proof. vm_compute. reflexivity. Qed.
Theorem finish : reference_finished Y 0 1.
Proof. split; vm_compute; discriminate. Qed.
Theorem equality : q (0 + duration W 0) == 1 + q (1 - 1) + q (duration W 0) - q (work W 0) / q 3.
Proof. vm_compute. reflexivity. Qed.
