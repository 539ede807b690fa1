(** * The line is a strict order *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums.
From Justitia Require Export Order.

Section Before.
Variable w : workload.
Variable tag : nat -> Q.
Notation before := (before w tag).

Lemma before_true i j :
  before i j = true <-> tag i < tag j \/ (tag i == tag j /\ (rank w i < rank w j)%nat).
Proof.
  unfold Order.before. rewrite orb_true_iff, andb_true_iff, qltb_true, Qeq_bool_iff, Nat.ltb_lt. tauto.
Qed.

Lemma before_false i j : before i j = false -> tag j <= tag i.
Proof.
  unfold Order.before. intros H. apply orb_false_iff in H as [H _]. apply qltb_false. auto.
Qed.

Lemma before_irrefl j : before j j = false.
Proof.
  destruct (before j j) eqn:E; auto. apply before_true in E as [E|[_ E]]; [lra|lia].
Qed.

Lemma before_asym i j : before i j = true -> before j i = false.
Proof.
  intros H. destruct (before j i) eqn:E; auto. exfalso. apply before_true in H. apply before_true in E.
  destruct H as [H|[H H']], E as [E|[E E']]; try lra. lia.
Qed.

(** [j] is not before [i], and before [k]: then [i] is before [k]. *)
Lemma before_trans i j k : before j i = false -> before j k = true -> before i k = true.
Proof.
  intros H1 H2. apply before_true. apply before_true in H2.
  destruct (Qlt_le_dec (tag i) (tag k)) as [|L]; auto. right.
  pose proof (before_false _ _ H1) as L1. assert (tag i == tag k /\ tag j == tag k) as [E1 E2]
    by (destruct H2 as [H2|[H2 _]]; split; lra).
  split; auto. destruct H2 as [H2|[_ H2]]; [lra|].
  destruct (Nat.lt_ge_cases (rank w j) (rank w i)) as [L2|L2]; [|lia]. exfalso.
  assert (before j i = true) by (apply before_true; right; split; [lra|auto]). congruence.
Qed.
End Before.
