(** * What a fair reference hands out *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums ServiceFacts.
From Justitia Require Export Reference.

(** What a unit receives before its base: nothing. *)
Lemma received_zero e f u v : v <= base f u -> received e f u v == 0.
Proof.
  intros H. unfold received. rewrite Q.max_l; [lra|].
  pose proof (Q.le_min_r (predicted e u / share f u) (v - base f u)). lra.
Qed.

(** The same as a difference of two truncations. *)
Lemma received_min e f u v : 0 < share f u -> 0 <= predicted e u ->
  received e f u v == share f u * (Qmin (tag e f u) v - Qmin (base f u) v).
Proof.
  intros Hw Hp. unfold received, tag. apply Qmult_comp; [reflexivity|].
  set (l := predicted e u / share f u). set (b := base f u).
  assert (H0 : 0 <= l) by (apply div_nonneg; auto).
  destruct (Qlt_le_dec v b) as [L|L].
  - rewrite (Q.min_r (b + l)), (Q.min_r b), (Q.min_r l) by lra. rewrite Q.max_l by lra. lra.
  - rewrite (Q.min_l b) by lra. destruct (Qlt_le_dec v (b + l)) as [M|M].
    + rewrite (Q.min_r (b + l)), (Q.min_r l) by lra. rewrite Q.max_r by lra. lra.
    + rewrite (Q.min_l (b + l)), (Q.min_l l) by lra. rewrite Q.max_r by lra. lra.
Qed.

Section Reference.
Variable e : execution.
Variable f : reference.
Hypothesis form : well_formed e.
Hypothesis is_fair : fair e f.

Lemma V_mono a b : (a <= b)%nat -> V f a <= V f b.
Proof.
  induction b; intros H; [replace a with 0%nat by lia; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [lra|].
  apply Qle_trans with (V f b); [apply IHb; lia|apply (level_rises e f is_fair)].
Qed.

Lemma received_mono u v v' : In u (units e) -> v <= v' -> received e f u v <= received e f u v'.
Proof.
  intros Hu H. unfold received. rewrite !(Qmult_comm (share f u)). apply Qmult_le_compat_r.
  - apply Q.max_le_compat_l, Q.min_le_compat_l. lra.
  - pose proof (share_positive e f is_fair u Hu). lra.
Qed.

Lemma received_full u v : In u (units e) -> tag e f u <= v -> received e f u v == predicted e u.
Proof.
  intros Hu H. unfold tag in H. unfold received. pose proof (share_positive e f is_fair u Hu).
  pose proof (predicted_nonneg e form u Hu).
  rewrite Q.min_l by lra. rewrite Q.max_r by (apply div_nonneg; auto). apply mul_div. auto.
Qed.

Lemma handed_mono n v v' : v <= v' -> handed e f n v <= handed e f n v'.
Proof.
  intros L. unfold handed. apply sumq_le. intros u Hu. pose proof (received_mono u v v' Hu L). lra.
Qed.

Lemma handed_start n : handed e f n (V f n) == 0.
Proof. unfold handed. rewrite sumq_minus. lra. Qed.

(** From the beginning of step [b] until the level is [v], inside step [n] or later. *)
Lemma handed_window b n v : (b <= n)%nat ->
  sumq (fun u => received e f u v - received e f u (V f b)) (units e)
  <= total e n - total e b + handed e f n v.
Proof.
  intros H. unfold handed.
  assert (W : sumq (fun u => received e f u (V f n) - received e f u (V f b)) (units e)
              <= total e n - total e b).
  { induction n; [replace b with 0%nat by lia; rewrite sumq_minus; lra|].
    destruct (Nat.eq_dec b (S n)) as [->|]; [rewrite sumq_minus; lra|].
    specialize (IHn ltac:(lia)). pose proof (hands_out_delivered e f is_fair n) as R. unfold handed in R.
    rewrite total_S. rewrite sumq_minus in R, IHn |- *. lra. }
  rewrite sumq_minus in W |- *. rewrite sumq_minus. lra.
Qed.

Lemma ready_before_tag j : In j (units e) -> V f (ready e j) <= tag e f j.
Proof.
  intros Hj. unfold tag. pose proof (base_after_ready e f is_fair j Hj).
  assert (0 <= predicted e j / share f j).
  { apply div_nonneg; [apply (share_positive e f is_fair)|apply (predicted_nonneg e form)]; auto. }
  lra.
Qed.

(** As soon as the level has reached the tag of [j], there is a step in which the reference finishes it. *)
Lemma finishes_exists j n : In j (units e) -> (ready e j <= n)%nat -> tag e f j <= V f n ->
  exists m, (m <= n)%nat /\ finishes e f j m.
Proof.
  intros Hj. pose proof (ready_before_tag j Hj) as L. pose proof (level_rises e f is_fair) as V_step.
  induction n; intros Ha Ht; unfold finishes in *.
  - exists 0%nat. replace (ready e j) with 0%nat in L by lia. specialize (V_step 0%nat).
    split; [lia|]. split; [lia|]. split; lra.
  - destruct (Nat.eq_dec (ready e j) (S n)) as [E|E].
    + exists (S n). rewrite E in L. specialize (V_step (S n)). split; [lia|]. split; [lia|]. split; lra.
    + destruct (Qlt_le_dec (V f n) (tag e f j)) as [C|C].
      * exists n. split; [lia|]. split; [lia|]. split; lra.
      * destruct (IHn ltac:(lia) C) as (m & H1 & H2). exists m. split; auto.
Qed.

(** Inside its step the reference hands out part of what the step delivers. *)
Lemma handed_range j n : finishes e f j n -> 0 <= handed e f n (tag e f j) <= delivered e n.
Proof.
  intros (_ & H2 & H3). pose proof (handed_mono n _ _ H2) as M1. pose proof (handed_mono n _ _ H3) as M2.
  rewrite handed_start in M1. pose proof (hands_out_delivered e f is_fair n). split; lra.
Qed.

Lemma G_range j n : finishes e f j n -> total e n <= G e f j n /\ G e f j n <= total e (S n).
Proof. intros F. apply handed_range in F. unfold G. rewrite total_S. lra. Qed.

Lemma finish_time_range j n : finishes e f j n -> q n <= finish_time e f j n <= q n + 1.
Proof.
  intros F. apply handed_range in F as [F1 F2]. unfold finish_time.
  destruct (Qlt_le_dec 0 (delivered e n)) as [L|L].
  - assert (0 <= handed e f n (tag e f j) / delivered e n) by (apply div_nonneg; auto).
    assert (handed e f n (tag e f j) / delivered e n <= 1) by (apply div_le; auto; lra). lra.
  - assert (Z : handed e f n (tag e f j) == 0) by lra.
    rewrite Z. unfold Qdiv. rewrite Qmult_0_l. lra.
Qed.
End Reference.
