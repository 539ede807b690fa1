(** * Rational arithmetic

    Exact rationals [Q] measure service, costs, tags and times; natural numbers count steps, tokens and
    inferences. [q] embeds the second in the first. *)
Require Import List Arith Lia ZArith QArith Qminmax Lqa Bool.

(** [simpl] must never unfold rational operations: it would leave terms about numerators. *)
Arguments Qred : simpl never.
Arguments Qplus : simpl never.
Arguments Qminus : simpl never.
Arguments Qmult : simpl never.
Arguments Qdiv : simpl never.

(** ** Natural numbers as rationals *)
Definition q (n : nat) : Q := inject_Z (Z.of_nat n).
Arguments q : simpl never.

Lemma q_plus a b : q (a + b) == q a + q b.
Proof. unfold q. rewrite Nat2Z.inj_add, inject_Z_plus. reflexivity. Qed.

Lemma q_mult a b : q (a * b) == q a * q b.
Proof. unfold q. rewrite Nat2Z.inj_mul, inject_Z_mult. reflexivity. Qed.

Lemma q_le a b : (a <= b)%nat -> q a <= q b.
Proof. intros. unfold q. rewrite <- Zle_Qle. lia. Qed.

Lemma q_lt a b : (a < b)%nat -> q a < q b.
Proof. intros. unfold q. rewrite <- Zlt_Qlt. lia. Qed.

Lemma q_0 : q 0 == 0.
Proof. reflexivity. Qed.

Lemma q_1 : q 1 == 1.
Proof. reflexivity. Qed.

Lemma q_S n : q (S n) == q n + 1.
Proof. replace (S n) with (n + 1)%nat by lia. rewrite q_plus. reflexivity. Qed.

Lemma q_nonneg n : 0 <= q n.
Proof. rewrite <- q_0. apply q_le. lia. Qed.

Lemma q_le_inv a b : q a <= q b -> (a <= b)%nat.
Proof. unfold q. rewrite <- Zle_Qle. lia. Qed.

Lemma q_lt_inv a b : q a < q b -> (a < b)%nat.
Proof. unfold q. rewrite <- Zlt_Qlt. lia. Qed.

(** ** Minimum *)
Lemma Qmin_l x y : x <= y -> Qmin x y == x.
Proof. apply Q.min_l. Qed.

Lemma Qmin_r x y : y <= x -> Qmin x y == y.
Proof. apply Q.min_r. Qed.

(** ** Division *)
Lemma div_le n b c : 0 < n -> b <= n * c -> b / n <= c.
Proof. intros. apply Qle_shift_div_r; auto. lra. Qed.

Lemma le_div n b c : 0 < n -> n * c <= b -> c <= b / n.
Proof. intros. apply Qle_shift_div_l; auto. lra. Qed.

Lemma div_nonneg n b : 0 < n -> 0 <= b -> 0 <= b / n.
Proof. intros. apply Qle_shift_div_l; auto. lra. Qed.

Lemma mul_div n b : 0 < n -> n * (b / n) == b.
Proof. intros. apply Qmult_div_r. lra. Qed.

(** ** Strict comparison, as a program *)
Definition qltb (a b : Q) : bool := negb (Qle_bool b a).

Lemma qltb_true a b : qltb a b = true <-> a < b.
Proof.
  unfold qltb. rewrite negb_true_iff. split; intros H.
  - destruct (Qlt_le_dec a b) as [L|L]; auto. apply Qle_bool_iff in L. congruence.
  - destruct (Qle_bool b a) eqn:E; auto. apply Qle_bool_iff in E. lra.
Qed.

Lemma qltb_false a b : qltb a b = false <-> b <= a.
Proof. unfold qltb. rewrite negb_false_iff. apply Qle_bool_iff. Qed.
