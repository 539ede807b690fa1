(** * The line of waiting inferences is ordered and without repetition *)
Require Import List Arith Lia QArith Lqa Bool Sorting.Sorted.
From Justitia Require Import Sums Windows Demand Schedule Scheduler.
Import ListNotations.

Section LineFacts.
Variable W : demand.
Variable tag : nat -> Q.
Variable admits : admission_test.
Local Notation inferences := (Demand.inferences W).
Local Notation owner := (Demand.owner W).
Local Notation arrival := (Demand.arrival W).
Local Notation tag_of := (Scheduler.tag_of W tag).
Local Notation insert := (Scheduler.insert W tag).
Local Notation join := (Scheduler.join W tag).
Local Notation arriving := (Scheduler.arriving W).

Definition tag_le (x y : nat) : Prop := tag_of x <= tag_of y.
Definition sorted : list nat -> Prop := StronglySorted tag_le.

Lemma insert_In x ln y : In y (insert x ln) <-> y = x \/ In y ln.
Proof.
  induction ln as [|z r IH]; simpl; [intuition|].
  destruct (Qle_bool (tag_of z) (tag_of x)); simpl; [rewrite IH|]; intuition.
Qed.
Lemma insert_sorted x ln : sorted ln -> sorted (insert x ln).
Proof.
  unfold sorted. induction ln as [|z r IH]; simpl; intros H.
  - constructor; constructor.
  - inversion H as [|? ? H1 H2]; subst. rewrite Forall_forall in H2.
    destruct (Qle_bool (tag_of z) (tag_of x)) eqn:E.
    + apply Qle_bool_iff in E. constructor; [apply IH; auto|]. apply Forall_forall.
      intros y Hy. apply insert_In in Hy as [->|Hy]; [exact E|apply H2; auto].
    + assert (L : tag_of x < tag_of z).
      { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
      constructor; auto. apply Forall_forall. intros y [<-|Hy]; unfold tag_le; [lra|].
      specialize (H2 y Hy). unfold tag_le in H2. lra.
Qed.
Lemma joined_In l : forall ln y, In y (fold_left (fun w x => insert x w) l ln) <-> In y l \/ In y ln.
Proof.
  induction l as [|a l IH]; simpl; intros ln y; [tauto|]. rewrite IH, insert_In. intuition.
Qed.
Lemma join_In t ln y : In y (join t ln) <-> (In y inferences /\ arrival (owner y) = t) \/ In y ln.
Proof.
  unfold Scheduler.join, Scheduler.arriving. rewrite joined_In, filter_In, Nat.eqb_eq. tauto.
Qed.
Lemma join_sorted t ln : sorted ln -> sorted (join t ln).
Proof.
  unfold Scheduler.join. generalize (arriving t). intros l. revert ln.
  induction l; simpl; auto. intros. apply IHl, insert_sorted. auto.
Qed.
Lemma sorted_app l1 l2 : sorted (l1 ++ l2) ->
  sorted l2 /\ forall x y, In x l1 -> In y l2 -> tag_of x <= tag_of y.
Proof.
  unfold sorted. induction l1 as [|a l1 IH]; simpl; intros H; [split; [auto|tauto]|].
  inversion H as [|? ? H1 H2]; subst. rewrite Forall_forall in H2. destruct (IH H1) as [S1 S2].
  split; auto. intros x y [<-|Hx] Hy; [apply H2, in_or_app; auto|auto].
Qed.

(** *** Admission facts *)

Lemma sorted_head x y l1 l2 : sorted (l1 ++ l2) -> In x l1 -> In y l2 -> tag_of x <= tag_of y.
Proof. intros H. apply sorted_app in H. apply H. Qed.

Lemma insert_NoDup x ln : NoDup ln -> ~ In x ln -> NoDup (insert x ln).
Proof.
  induction ln as [|z r IH]; simpl; intros Hn Hx.
  - constructor; auto.
  - inversion Hn; subst. destruct (Qle_bool (tag_of z) (tag_of x)).
    + constructor; [|apply IH; tauto]. rewrite insert_In. intros [->|C]; tauto.
    + constructor; auto.
Qed.
Lemma joined_NoDup l : forall ln, NoDup l -> NoDup ln -> (forall x, In x l -> ~ In x ln) ->
  NoDup (fold_left (fun w x => insert x w) l ln).
Proof.
  induction l as [|a l IH]; simpl; intros ln Hl Hw Hd; auto. inversion Hl; subst.
  apply IH; auto; [apply insert_NoDup; auto|].
  intros x Hx. rewrite insert_In. intros [->|C]; [tauto|]. apply (Hd x); auto.
Qed.

Lemma join_NoDup t ln : NoDup inferences -> NoDup ln -> (forall x, In x ln -> (arrival (owner x) < t)%nat) ->
  NoDup (join t ln).
Proof.
  intros Nd Nl H. unfold Scheduler.join, Scheduler.arriving.
  apply joined_NoDup; [apply NoDup_filter| |]; auto.
  intros x Hx C. apply filter_In in Hx as [_ Hx]. apply Nat.eqb_eq in Hx. specialize (H x C). lia.
Qed.

End LineFacts.

