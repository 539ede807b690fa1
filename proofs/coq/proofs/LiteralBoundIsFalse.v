(** * The literal bound is false

    Fifteen fragments in a memory of 3 end one by one, the last at 15; the reference at rate 3 finishes
    all of them at 10. A lag of 5 is more than 2 * 2 + 2 / 3. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import TheoremAInstances LiteralBound.
Import ListNotations.

Definition fifteen : demand := fragments 15.
Definition one_prompt_token (_ : nat) : nat := 1%nat.
Definition fifteen_system : system :=
  System fifteen (kv_cost fifteen one_prompt_token) (q 3) (reserve_peak fifteen 3).

Lemma fifteen_well_formed : well_formed fifteen 1.
Proof. split; auto. apply seq_NoDup. Qed.

Lemma fifteen_fit : footprints_fit fifteen 3 1 2.
Proof. split; simpl; auto; intros; apply Nat.divide_1_l. Qed.

Lemma last_of_fifteen_starts : started fifteen_system 15 14 14.
Proof. vm_compute. reflexivity. Qed.

Lemma last_of_fifteen_finished : reference_finished fifteen_system 14 10.
Proof. split; vm_compute; discriminate. Qed.

Theorem literal_bound_is_false_holds : literal_bound_is_false.
Proof.
  intros H.
  assert (B : q 15 <= 10 + 2 * 2 + 2 / q 3).
  { refine (H fifteen one_prompt_token 1%nat 3%nat 2%nat fifteen_well_formed _ fifteen_fit 2 2 _ _ 15%nat 14%nat 14%nat 10 _
              last_of_fifteen_starts last_of_fifteen_finished).
    - intros x _. reflexivity.
    - intros x _. vm_compute. discriminate.
    - intros i Hi. simpl in Hi. repeat (destruct Hi as [<-|Hi]; [vm_compute; discriminate|]). destruct Hi.
    - simpl. auto 20. }
  vm_compute in B. auto.
Qed.

