(** * Finite sums

    [sumn f l] and [sumq f l] add [f x] for the [x] of the list [l], in [nat] and in [Q]; [upto f n] is
    [f 0 + ... + f (n-1)]. *)
Require Import List Arith Lia ZArith QArith Lqa Bool.
From Justitia Require Export Rationals.
Import ListNotations.

Fixpoint sumn (f : nat -> nat) (l : list nat) : nat :=
  match l with [] => 0 | x :: l' => f x + sumn f l' end.

Fixpoint sumq {A : Type} (f : A -> Q) (l : list A) : Q :=
  match l with [] => 0 | x :: l' => f x + sumq f l' end.

Definition upto (f : nat -> Q) (n : nat) : Q := sumq f (seq 0 n).

(** ** Sums of natural numbers *)
Lemma sumn_app f l1 l2 : sumn f (l1 ++ l2) = (sumn f l1 + sumn f l2)%nat.
Proof. induction l1; simpl; lia. Qed.

Lemma sumn_le f g l : (forall x, In x l -> (f x <= g x)%nat) -> (sumn f l <= sumn g l)%nat.
Proof.
  induction l; simpl; intros H; [lia|].
  assert (f a <= g a)%nat by auto. assert (sumn f l <= sumn g l)%nat by auto. lia.
Qed.

Lemma sumn_ext f g l : (forall x, In x l -> f x = g x) -> sumn f l = sumn g l.
Proof.
  induction l; simpl; intros H; [lia|]. rewrite (H a) by auto. rewrite IHl; auto.
Qed.

Lemma sumn_zero f l : (forall x, In x l -> f x = 0%nat) -> sumn f l = 0%nat.
Proof.
  induction l; simpl; intros H; [lia|]. rewrite (H a) by auto. rewrite IHl; auto.
Qed.

Lemma sumn_const c l : sumn (fun _ => c) l = (c * length l)%nat.
Proof. induction l; simpl; [lia|]. rewrite IHl. lia. Qed.

Lemma sumn_plus f g l : sumn (fun x => (f x + g x)%nat) l = (sumn f l + sumn g l)%nat.
Proof. induction l; simpl; lia. Qed.

Lemma sumn_mulr f c l : sumn (fun x => (f x * c)%nat) l = (sumn f l * c)%nat.
Proof. induction l; simpl; lia. Qed.

Lemma sumn_swap (h : nat -> nat -> nat) l1 l2 :
  sumn (fun t => sumn (fun x => h t x) l2) l1 = sumn (fun x => sumn (fun t => h t x) l1) l2.
Proof.
  induction l1; simpl.
  - rewrite sumn_const. lia.
  - rewrite IHl1, <- sumn_plus. reflexivity.
Qed.

(** One summand of [g] may be dropped if the matching summand of [f] is 0. *)
Lemma sumn_le_except f g l x :
  In x l -> f x = 0%nat -> (forall y, In y l -> (f y <= g y)%nat) ->
  (sumn f l + g x <= sumn g l)%nat.
Proof.
  induction l; simpl; [tauto|]. intros [->|Hin] H0 H.
  - rewrite H0. assert (sumn f l <= sumn g l)%nat by (apply sumn_le; auto). lia.
  - assert (f a <= g a)%nat by auto.
    assert (sumn f l + g x <= sumn g l)%nat by auto. lia.
Qed.

Lemma sumn_In_le f l x : In x l -> (f x <= sumn f l)%nat.
Proof. induction l; simpl; [tauto|]. intros [->|H]; [lia|]. specialize (IHl H). lia. Qed.

(** ** Sums of rationals *)
Lemma sumq_le {A} (f g : A -> Q) l : (forall x, In x l -> f x <= g x) -> sumq f l <= sumq g l.
Proof.
  induction l; simpl; intros H; [lra|].
  assert (f a <= g a) by auto. assert (sumq f l <= sumq g l) by auto. lra.
Qed.

Lemma sumq_plus {A} (f g : A -> Q) l : sumq (fun x => f x + g x) l == sumq f l + sumq g l.
Proof. induction l; simpl; [lra|]. rewrite IHl. lra. Qed.

Lemma sumq_scale {A} (f : A -> Q) c l : sumq (fun x => c * f x) l == c * sumq f l.
Proof. induction l; simpl; [lra|]. rewrite IHl. lra. Qed.

Lemma sumq_ext {A} (f g : A -> Q) l : (forall x, In x l -> f x == g x) -> sumq f l == sumq g l.
Proof. induction l; simpl; intros H; [lra|]. rewrite (H a) by auto. rewrite IHl; auto. lra. Qed.

Lemma sumq_q (f : nat -> nat) l : sumq (fun x => q (f x)) l == q (sumn f l).
Proof. induction l; simpl; [reflexivity|]. rewrite IHl, q_plus. reflexivity. Qed.

Lemma sumq_app {A} (f : A -> Q) l1 l2 : sumq f (l1 ++ l2) == sumq f l1 + sumq f l2.
Proof. induction l1; simpl; [lra|]. rewrite IHl1. lra. Qed.

Lemma sumq_map {A B} (f : B -> Q) (h : A -> B) l : sumq f (map h l) == sumq (fun x => f (h x)) l.
Proof. induction l; simpl; [lra|]. rewrite IHl. lra. Qed.

Lemma sumq_filter {A} (f : A -> Q) (p : A -> bool) l :
  sumq f (filter p l) == sumq (fun x => if p x then f x else 0) l.
Proof. induction l; simpl; [lra|]. destruct (p a); simpl; rewrite IHl; lra. Qed.

Lemma sumq_const {A} c (l : list A) : sumq (fun _ => c) l == q (length l) * c.
Proof. induction l; simpl length; simpl sumq; [rewrite q_0; lra|]. rewrite IHl, q_S. lra. Qed.

Lemma sumq_minus {A} (f g : A -> Q) l : sumq (fun x => f x - g x) l == sumq f l - sumq g l.
Proof. induction l; simpl; [lra|]. rewrite IHl. lra. Qed.

Lemma sumq_nonneg {A} (f : A -> Q) l : (forall x, In x l -> 0 <= f x) -> 0 <= sumq f l.
Proof.
  induction l; simpl; intros H; [lra|].
  assert (0 <= f a) by auto. assert (0 <= sumq f l) by auto. lra.
Qed.

Lemma sumq_In_le {A} (f : A -> Q) l x : In x l -> (forall y, In y l -> 0 <= f y) -> f x <= sumq f l.
Proof.
  induction l; simpl; [tauto|]. intros [->|H] H0.
  - assert (0 <= sumq f l) by (apply sumq_nonneg; auto). lra.
  - assert (0 <= f a) by auto. assert (f x <= sumq f l) by auto. lra.
Qed.

Lemma sumq_repeat (g : Q -> Q) x n : sumq g (repeat x n) == q n * g x.
Proof. induction n; cbn [repeat sumq]; [rewrite q_0; lra|]. rewrite IHn, q_S. lra. Qed.

Lemma sumq_0 {A} (l : list A) : sumq (fun _ => 0) l == 0.
Proof. rewrite sumq_const. lra. Qed.

Lemma sumq_swap {A B} (h : A -> B -> Q) l1 l2 :
  sumq (fun t => sumq (fun x => h t x) l2) l1 == sumq (fun x => sumq (fun t => h t x) l1) l2.
Proof.
  induction l1; simpl; [rewrite sumq_0; lra|]. rewrite IHl1, <- sumq_plus. reflexivity.
Qed.

(** One summand of [g] may be dropped if the matching summand of [f] is 0. *)
Lemma sumq_le_except {A} (f g : A -> Q) l x :
  In x l -> f x == 0 -> (forall y, In y l -> f y <= g y) -> sumq f l + g x <= sumq g l.
Proof.
  induction l; simpl; [tauto|]. intros [->|Hin] H0 H.
  - assert (sumq f l <= sumq g l) by (apply sumq_le; auto). lra.
  - assert (f a <= g a) by auto. assert (sumq f l + g x <= sumq g l) by auto. lra.
Qed.

(** Regrouping by owner. *)
Lemma sumq_group (f : nat -> Q) (owner : nat -> nat) (P : nat -> bool) inferences units :
  (forall x, In x inferences -> In (owner x) units) -> (forall x, In x inferences -> 0 <= f x) ->
  sumq (fun x => if P (owner x) then f x else 0) inferences
  <= sumq (fun u => if P u then sumq (fun x => if (owner x =? u)%nat then f x else 0) inferences else 0) units.
Proof.
  intros Ho Hf.
  apply Qle_trans with
    (sumq (fun u => sumq (fun x => if P u then (if (owner x =? u)%nat then f x else 0) else 0) inferences) units).
  - rewrite sumq_swap. apply sumq_le. intros x Hx.
    pose proof (sumq_In_le (fun u => if P u then (if (owner x =? u)%nat then f x else 0) else 0)
                  units (owner x) (Ho x Hx)) as L.
    cbv beta in L. rewrite Nat.eqb_refl in L. apply L.
    intros u _. specialize (Hf x Hx). destruct (P u), (owner x =? u)%nat; lra.
  - apply sumq_le. intros u _. destruct (P u); [lra|]. rewrite sumq_0. lra.
Qed.

(** A function changed at one point. *)
Definition updq (f : nat -> Q) i x : nat -> Q := fun y => if (y =? i)%nat then x else f y.

Lemma sumq_updq (g : Q -> Q) (wt : nat -> Q) f a x agents : NoDup agents -> In a agents ->
  sumq (fun i => wt i * g (updq f a x i)) agents
  == sumq (fun i => wt i * g (f i)) agents + wt a * (g x - g (f a)).
Proof.
  induction agents as [|b l IH]; [intros _ []|]. intros Nd Hin. inversion Nd; subst. cbn [sumq].
  destruct (Nat.eq_dec b a) as [->|Hne].
  - unfold updq at 1. rewrite Nat.eqb_refl.
    rewrite (sumq_ext (fun i => wt i * g (updq f a x i)) (fun i => wt i * g (f i)) l); [lra|].
    intros i Hi. unfold updq. destruct (Nat.eqb_spec i a); [subst; tauto|reflexivity].
  - destruct Hin as [|Hin]; [congruence|]. rewrite IH by auto.
    unfold updq at 1. destruct (Nat.eqb_spec b a); [congruence|]. lra.
Qed.

(** ** Sums over the steps before a step *)
Lemma upto_S f n : upto f (S n) == upto f n + f n.
Proof. unfold upto. rewrite seq_S, sumq_app. simpl. lra. Qed.

Lemma upto_mono f a b : (forall k, 0 <= f k) -> (a <= b)%nat -> upto f a <= upto f b.
Proof.
  intros Hf H. induction b; [replace a with 0%nat by lia; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [lra|]. rewrite upto_S. specialize (IHb ltac:(lia)).
  specialize (Hf b). lra.
Qed.

Lemma upto_zero f n : (forall k, (k < n)%nat -> f k == 0) -> upto f n == 0.
Proof.
  induction n; intros H; [reflexivity|]. rewrite upto_S, IHn by auto. rewrite H by lia. lra.
Qed.

Lemma upto_nonneg f n : (forall k, 0 <= f k) -> 0 <= upto f n.
Proof. intros H. apply sumq_nonneg. auto. Qed.
