(** * One demand on which every instance of Theorem A applies

    A memory of 12. Agent 0 brings inferences (1,3), (0,2) and (2,2) in step 0, agent 1 one (5,1) in step
    1, agent 2 two (0,4) in step 1. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import TheoremA TheoremAInstances AdmissionGuarantees TheoremAProof.
From Justitia Require Import TheoremAInstancesProof.
Import ListNotations.

Ltac cases H := repeat (destruct H as [<-|H]; [|]); try destruct H.

Definition prompt (x : nat) : nat := nth x [1; 0; 2; 5; 0; 0]%nat 0%nat.
Definition decode (x : nat) : nat := nth x [3; 2; 2; 1; 4; 4]%nat 0%nat.
Definition W : demand :=
  {| inferences := seq 0 6; agents := seq 0 3; owner := fun x => nth x [0; 0; 0; 1; 2; 2]%nat 0%nat;
     footprint := fun x => (prompt x + decode x)%nat; duration := decode;
     arrival := fun i => nth i [0; 1; 1]%nat 0%nat |}.

Lemma W_fine : well_formed W 4.
Proof.
  split; [apply seq_NoDup| | |lia]; intros x Hx; simpl in Hx; cases Hx; simpl; auto; lia.
Qed.
Lemma W_fits : footprints_fit W 12 1 6.
Proof.
  split; auto; try (intros; apply Nat.divide_1_l); try apply Nat.divide_1_l; try lia.
  intros x Hx. simpl in Hx. cases Hx; vm_compute; lia.
Qed.
Lemma W_peaks : reserves_peaks W prompt.
Proof. intros x _. reflexivity. Qed.

Theorem reserved :
  bounded (System W (reserved_cost W) (q 7) (reserve_peak W 12)) 7 4.
Proof. exact (theorem_A_reserved_holds W 4%nat 12%nat 1%nat 6%nat W_fine W_fits). Qed.

Theorem kv :
  bounded (System W (kv_cost W prompt) (q 7 / 2) (reserve_peak W 12)) 7 4.
Proof. exact (theorem_A_kv_holds W prompt 4%nat 12%nat 6%nat W_fine W_peaks W_fits). Qed.

Theorem look_ahead :
  bounded (System W (kv_cost W prompt) (q 7 / 2) (Admission.look_ahead W prompt 12)) 7 4.
Proof. exact (proj2 (theorem_A_look_ahead_holds W prompt 4%nat 12%nat 6%nat W_fine W_peaks W_fits)). Qed.

(** Agent 2 declares a third of its cost. *)
Definition wrong (i : nat) : Q := if i =? 2 then reserved_cost W 2 / 3 else reserved_cost W i.
Theorem predicted :
  bounded (System W wrong (q 7 / 3) (reserve_peak W 12)) 7 4.
Proof.
  apply (theorem_A_predicted_holds W 4%nat 12%nat 1%nat 6%nat wrong 3 W_fine W_fits).
  - reflexivity.
  - intros i. unfold wrong. destruct (i =? 2); [vm_compute; discriminate|apply q_nonneg].
  - intros i Hi. simpl in Hi. cases Hi; vm_compute; discriminate.
Qed.

(** At most two at once: R is the smaller of 7 and 2 * 2. *)
Theorem capped :
  bounded (System W (reserved_cost W) (q 4) (reserve_peak_capped W 12 2)) 4 4.
Proof.
  apply (theorem_A_capped_holds W 4%nat 12%nat 1%nat 6%nat 2%nat 2%nat W_fine W_fits); auto.
  intros x Hx. simpl in Hx. cases Hx; vm_compute; lia.
Qed.

(** Every inference does start; the scheduler's choices, with the KV cost. *)
Definition Y : system :=
  System W (kv_cost W prompt) (q 7 / 2) (reserve_peak W 12).
Theorem tags : map (tag_in Y) (agents W) = [19; 19 # 2; 47 # 2].
Proof. vm_compute. reflexivity. Qed.
Theorem starts_computed : map (starts W (tag_in Y) (admission Y) 10) (inferences W) = map Some [0; 0; 0; 2;
  3; 3]%nat.
Proof. vm_compute. reflexivity. Qed.
