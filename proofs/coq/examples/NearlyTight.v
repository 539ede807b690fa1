(** * Theorem A, nearly tight

    The latecomer of [BestConstant] with k = 40 and D = 4, in a memory of 160: every hypothesis of Theorem A holds,
    and the lag is within D / k of the bound. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import TheoremA TheoremAInstances BestConstant AdmissionGuarantees TheoremAProof.
Import ListNotations.

Ltac cases H := repeat (destruct H as [<-|H]; [|]); try destruct H.

Definition Y : system := latecomer_system 40 4.

Theorem hypotheses : keeps_rate Y 160 4.
Proof.
  split.
  - split; [apply seq_NoDup|intros x _|auto|lia]. unfold Y. simpl. destruct (x =? 40); simpl; auto.
  - lia.
  - apply (reserve_peak_keeps (latecomer 40 4) 160 4 4).
    + exists 40%nat. reflexivity.
    + intros x _. exists 1%nat. reflexivity.
    + auto.
  - reflexivity.
  - intros i. unfold Y. simpl. destruct (i =? 0); apply q_nonneg.
  - intros i Hi. simpl in Hi. cases Hi; vm_compute; discriminate.
Qed.

(** Inference 40 starts in step 4, and the reference finishes its agent at 1.2. *)
Theorem start : started Y 12 40 4.
Proof. vm_compute. reflexivity. Qed.
Theorem finish : reference_finished Y 1 (6 # 5).
Proof. split; vm_compute; discriminate. Qed.

(** It ends at 8, a lag of 6.8; the bound, from the theorem, is 6.9. *)
Theorem bound : q 8 <= (6 # 5) + (69 # 10).
Proof.
  pose proof (theorem_A_holds Y 160%nat 4%nat hypotheses 12%nat 40%nat 4%nat (6 # 5)) as B.
  assert (E : (6 # 5) + (69 # 10) == (6 # 5) + q (4 - 1) + q 4 - q 16 / q 160) by (vm_compute; reflexivity).
  rewrite E. apply B; [apply in_seq; lia|exact start|exact finish].
Qed.
