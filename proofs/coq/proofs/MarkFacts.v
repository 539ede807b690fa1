(** * Marks and tables *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums OrderFacts.
From Justitia Require Export Variants.
Import ListNotations.

Lemma mark_all_other k l : forall m x, ~ In x l -> mark_all k l m x = m x.
Proof.
  unfold mark_all. induction l as [|a l IH]; simpl; intros m x H; auto. rewrite IH by tauto. unfold mark.
  destruct (Nat.eqb_spec x a); [subst; tauto|auto].
Qed.

Lemma mark_all_in k l : forall m x, In x l -> mark_all k l m x = Some k.
Proof.
  induction l as [|a l IH]; simpl; intros m x H; [tauto|]. change (mark_all k l (mark k a m) x = Some k).
  destruct (in_dec Nat.eq_dec x l) as [I|I]; auto.
  destruct H as [->|H]; [|tauto]. rewrite mark_all_other by auto. unfold mark. rewrite Nat.eqb_refl. auto.
Qed.

Lemma find_in_some table x g : find_in table x = Some g -> In (x, g) table.
Proof.
  unfold find_in. destruct (find _ _) as [[y g']|] eqn:F; [|discriminate]. intros E. injection E as <-.
  apply find_some in F as [F1 F2]. apply Nat.eqb_eq in F2. cbn in F2. subst y. exact F1.
Qed.

Lemma find_in_none table x : find_in table x = None -> ~ In x (map fst table).
Proof.
  unfold find_in. destruct (find _ _) as [e|] eqn:F; [discriminate|]. intros _ I.
  apply in_map_iff in I as (e & E & He). pose proof (find_none _ _ F e He) as N. cbn in N.
  apply Nat.eqb_neq in N. congruence.
Qed.

Lemma find_in_map (f : nat -> Q) l x : In x l -> find_in (map (fun y => (y, f y)) l) x = Some (f x).
Proof.
  unfold find_in. induction l as [|a l IH]; intros H; [destruct H|]. cbn [map find fst].
  destruct (Nat.eqb_spec a x) as [->|]; auto. destruct H as [|H]; [congruence|auto].
Qed.

(** The order of two units depends on their tags only up to equality of rationals. *)
Lemma before_ext w t1 t2 i j : t1 i == t2 i -> t1 j == t2 j -> before w t1 i j = before w t2 i j.
Proof. intros Ei Ej. apply eq_true_iff_eq. rewrite !before_true, Ei, Ej. reflexivity. Qed.

Lemma sumq_eq {A} (f g : A -> Q) l : (forall x, In x l -> f x = g x) -> sumq f l = sumq g l.
Proof.
  induction l as [|x l IH]; intros H; auto. cbn [sumq].
  rewrite (H x) by (simpl; auto). rewrite IH by (intros; apply H; simpl; auto). reflexivity.
Qed.

Lemma forallb_eq {A} (f g : A -> bool) l : (forall x, f x = g x) -> forallb f l = forallb g l.
Proof. intros H. induction l as [|x l IH]; simpl; auto. rewrite H, IH. reflexivity. Qed.
