(** * Windows of steps

    Something that starts in step [s] and takes [d] steps runs in steps [s .. s+d-1]. At most [d] of the
    steps [a .. a+n-1] are among them. *)
Require Import List Arith Lia Bool.
From Justitia Require Import Sums.
Import ListNotations.

Definition inwin (s d t : nat) : bool := (s <=? t) && (t <? s + d).

Lemma window_count s d a n :
  sumn (fun t => if inwin s d t then 1 else 0)%nat (seq a n)
  = (Nat.min (a + n) (s + d) - Nat.max a s)%nat.
Proof.
  induction n.
  - simpl. lia.
  - rewrite seq_S, sumn_app, IHn. simpl. unfold inwin.
    destruct (Nat.leb_spec s (a + n)); destruct (Nat.ltb_spec (a + n) (s + d)); simpl; lia.
Qed.

Lemma window_count_le s d a n :
  (sumn (fun t => if inwin s d t then 1 else 0) (seq a n) <= d)%nat.
Proof. rewrite window_count. lia. Qed.
