(** * Raising the level hands out exactly the service that there is

    [advance_rate]: never more than [b] is handed out. [advance_exact]: all of [b] is, unless nobody is left
    above the level. [advance_ge], [advance_mono_b]: the level never falls, and rises with [b]. *)
Require Import List Arith Lia ZArith QArith Qminmax Lqa Bool.
From Justitia Require Import Sums.
From Justitia Require Export Level.
Import ListNotations.

Lemma qmin_spec : forall l a, (forall x, In x (a :: l) -> qmin a l <= x) /\ In (qmin a l) (a :: l).
Proof.
  induction l as [|y l IH]; intros a; simpl.
  - split; [intros x [<-|[]]; lra | auto].
  - destruct (Qle_bool a y) eqn:E.
    + apply Qle_bool_iff in E. destruct (IH a) as [H1 H2]. split.
      * intros x [<-|[<-|H]]; [apply H1; simpl; auto| |apply H1; simpl; auto].
        apply Qle_trans with a; auto. apply H1. simpl. auto.
      * simpl in H2. tauto.
    + assert (y < a). { destruct (Qlt_le_dec y a) as [L|L]; auto. apply Qle_bool_iff in L. congruence. }
      destruct (IH y) as [H1 H2]. split.
      * intros x [<-|[<-|H0]]; [|apply H1; simpl; auto|apply H1; simpl; auto].
        apply Qle_trans with y; [apply H1; simpl; auto|lra].
      * simpl in H2. tauto.
Qed.

(** ** Filling *)
Lemma fill_same tags v : fill tags v v == 0.
Proof. unfold fill. induction tags; simpl; [lra|]. rewrite IHtags. lra. Qed.

Lemma fill_chain tags u v w : fill tags u w == fill tags u v + fill tags v w.
Proof. unfold fill. rewrite <- sumq_plus. apply sumq_ext. intros. lra. Qed.

Lemma fill_mono tags v w w' : w <= w' -> fill tags v w <= fill tags v w'.
Proof.
  intros H. unfold fill. apply sumq_le. intros x _.
  assert (Qmin x w <= Qmin x w') by (apply Q.min_le_compat_l; auto). lra.
Qed.

Lemma fill_step tags v w : v <= w -> (forall x, In x tags -> v < x -> w <= x) ->
  fill tags v w == q (length (filter (qltb v) tags)) * (w - v).
Proof.
  intros Hvw. unfold fill. induction tags as [|x l IH]; intros H; simpl.
  - rewrite q_0. lra.
  - rewrite IH by (intros; apply H; simpl; auto). destruct (qltb v x) eqn:E.
    + apply qltb_true in E. assert (w <= x) by (apply H; simpl; auto).
      simpl length. rewrite q_S, !Qmin_r by lra. lra.
    + apply qltb_false in E. rewrite !Qmin_l by lra. lra.
Qed.

(** ** One unfolding of [advance] *)
Lemma active_pos (a : Q) l : 0 < q (length (a :: l)).
Proof. simpl. rewrite q_S. assert (0 <= q (length l)) by apply q_nonneg. lra. Qed.

Lemma active_facts v tags a l : filter (qltb v) tags = a :: l ->
  v < qmin a l /\ In (qmin a l) tags /\ (forall x, In x tags -> v < x -> qmin a l <= x).
Proof.
  intros E. destruct (qmin_spec l a) as [H1 H2]. rewrite <- E in H1, H2.
  apply filter_In in H2 as [H2 H3]. apply qltb_true in H3. repeat split; auto.
  intros x Hx Hv. apply H1. apply filter_In. split; auto. apply qltb_true. auto.
Qed.

Lemma advance_ge : forall fuel tags v b, 0 <= b -> v <= advance fuel tags v b.
Proof.
  induction fuel; intros tags v b Hb; simpl; [lra|].
  destruct (filter (qltb v) tags) as [|a l] eqn:E; [lra|].
  destruct (active_facts v tags a l E) as (H1 & _ & _). pose proof (active_pos a l) as Hn.
  cbn [length] in *. destruct (Qle_bool b (q (S (length l)) * (qmin a l - v))) eqn:Eb.
  - rewrite Qred_correct. assert (0 <= b / q (S (length l))) by (apply div_nonneg; auto). lra.
  - assert (q (S (length l)) * (qmin a l - v) < b).
    { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
    apply Qle_trans with (qmin a l); [lra|]. apply IHfuel. rewrite Qred_correct. lra.
Qed.

Lemma advance_rate : forall fuel tags v b, 0 <= b -> fill tags v (advance fuel tags v b) <= b.
Proof.
  induction fuel; intros tags v b Hb; simpl; [rewrite fill_same; lra|].
  destruct (filter (qltb v) tags) as [|a l] eqn:E; [rewrite fill_same; lra|].
  destruct (active_facts v tags a l E) as (H1 & _ & H3). pose proof (active_pos a l) as Hn.
  cbn [length] in *. destruct (Qle_bool b (q (S (length l)) * (qmin a l - v))) eqn:Eb.
  - apply Qle_bool_iff in Eb. set (w := Qred (v + b / q (S (length l)))).
    assert (Hw : w == v + b / q (S (length l))) by apply Qred_correct.
    assert (0 <= b / q (S (length l))) by (apply div_nonneg; auto).
    assert (b / q (S (length l)) <= qmin a l - v) by (apply div_le; auto).
    rewrite fill_step.
    + rewrite E. cbn [length]. rewrite Hw.
      setoid_replace (v + b / q (S (length l)) - v) with (b / q (S (length l))) by lra.
      rewrite mul_div by auto. lra.
    + rewrite Hw. lra.
    + intros x Hx Hv. rewrite Hw. specialize (H3 x Hx Hv). lra.
  - assert (q (S (length l)) * (qmin a l - v) < b).
    { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
    rewrite (fill_chain tags v (qmin a l)).
    rewrite (fill_step tags v (qmin a l)) by (auto; lra). rewrite E. cbn [length].
    set (b' := Qred (b - q (S (length l)) * (qmin a l - v))).
    assert (Hb' : b' == b - q (S (length l)) * (qmin a l - v)) by apply Qred_correct.
    assert (0 <= b') by (rewrite Hb'; lra).
    specialize (IHfuel tags (qmin a l) b' H0). rewrite Hb' in IHfuel at 2. lra.
Qed.

(** ** Nothing is lost: all of [b] is used, or nothing is left above the level *)
Lemma filter_shrink v w (tags : list Q) : v < w -> In w tags ->
  (length (filter (qltb w) tags) < length (filter (qltb v) tags))%nat.
Proof.
  intros Hvw. induction tags as [|x l IH]; simpl; [tauto|].
  assert (Hle : forall l', (length (filter (qltb w) l') <= length (filter (qltb v) l'))%nat).
  { induction l' as [|z l' IH']; simpl; [lia|].
    destruct (qltb w z) eqn:E1, (qltb v z) eqn:E2; simpl; try lia.
    apply qltb_true in E1. apply qltb_false in E2. lra. }
  intros [->|Hin].
  - specialize (Hle l). destruct (qltb w w) eqn:E1; [apply qltb_true in E1; lra|].
    destruct (qltb v w) eqn:E2; [simpl; lia|]. apply qltb_false in E2. lra.
  - specialize (IH Hin). destruct (qltb w x) eqn:E1, (qltb v x) eqn:E2; simpl; try lia.
    apply qltb_true in E1. apply qltb_false in E2. lra.
Qed.

Lemma advance_exact : forall fuel tags v b, 0 <= b ->
  (length (filter (qltb v) tags) <= fuel)%nat ->
  fill tags v (advance fuel tags v b) == b \/
  (forall x, In x tags -> x <= advance fuel tags v b).
Proof.
  assert (Hnil : forall v tags, filter (qltb v) tags = [] -> forall x, In x tags -> x <= v).
  { intros v tags E x Hx. destruct (qltb v x) eqn:Ex; [|apply qltb_false; auto].
    assert (In x []) as []. rewrite <- E. apply filter_In. auto. }
  induction fuel; intros tags v b Hb Hf; simpl.
  - right. apply Hnil. destruct (filter (qltb v) tags); auto. simpl in Hf. lia.
  - destruct (filter (qltb v) tags) as [|a l] eqn:E; [right; apply Hnil; auto|].
    destruct (active_facts v tags a l E) as (H1 & H2 & H3). pose proof (active_pos a l) as Hn.
    cbn [length] in *. destruct (Qle_bool b (q (S (length l)) * (qmin a l - v))) eqn:Eb.
    + left. apply Qle_bool_iff in Eb. set (w := Qred (v + b / q (S (length l)))).
      assert (Hw : w == v + b / q (S (length l))) by apply Qred_correct.
      assert (0 <= b / q (S (length l))) by (apply div_nonneg; auto).
      assert (b / q (S (length l)) <= qmin a l - v) by (apply div_le; auto).
      rewrite fill_step.
      * rewrite E. cbn [length]. rewrite Hw.
        setoid_replace (v + b / q (S (length l)) - v) with (b / q (S (length l))) by lra.
        apply mul_div; auto.
      * rewrite Hw. lra.
      * intros x Hx Hv. rewrite Hw. specialize (H3 x Hx Hv). lra.
    + assert (q (S (length l)) * (qmin a l - v) < b).
      { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
      set (b' := Qred (b - q (S (length l)) * (qmin a l - v))).
      assert (Hb' : b' == b - q (S (length l)) * (qmin a l - v)) by apply Qred_correct.
      destruct (IHfuel tags (qmin a l) b') as [IH|IH]; [rewrite Hb'; lra| |left|right; auto].
      * pose proof (filter_shrink v (qmin a l) tags H1 H2) as Hs. rewrite E in Hs. cbn [length] in Hs. lia.
      * rewrite (fill_chain tags v (qmin a l)).
        rewrite (fill_step tags v (qmin a l)) by (auto; lra). rewrite E. cbn [length].
        rewrite IH, Hb'. lra.
Qed.

Lemma advance_mono_b : forall fuel tags v b1 b2, 0 <= b1 -> b1 <= b2 ->
  advance fuel tags v b1 <= advance fuel tags v b2.
Proof.
  induction fuel; intros tags v b1 b2 H0 H12; simpl; [lra|].
  destruct (filter (qltb v) tags) as [|a l] eqn:E; [lra|].
  destruct (active_facts v tags a l E) as (H1 & _ & _). pose proof (active_pos a l) as Hn.
  cbn [length] in *. set (n := q (S (length l))) in *. set (nx := qmin a l) in *.
  destruct (Qle_bool b1 (n * (nx - v))) eqn:E1, (Qle_bool b2 (n * (nx - v))) eqn:E2.
  - rewrite !Qred_correct. assert (b1 / n <= b2 / n).
    { apply div_le; auto. rewrite mul_div; auto. } lra.
  - rewrite Qred_correct. apply Qle_bool_iff in E1. assert (b1 / n <= nx - v) by (apply div_le; auto).
    assert (n * (nx - v) < b2).
    { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
    apply Qle_trans with nx; [lra|]. apply advance_ge. rewrite Qred_correct. lra.
  - apply Qle_bool_iff in E2. assert (C : b1 <= n * (nx - v)) by lra.
    apply Qle_bool_iff in C. congruence.
  - assert (n * (nx - v) < b1).
    { apply Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence. }
    apply IHfuel; rewrite !Qred_correct; lra.
Qed.

Lemma advance_zero : forall fuel tags v b, b == 0 -> advance fuel tags v b == v.
Proof.
  destruct fuel; intros tags v b Hb; simpl; [lra|].
  destruct (filter (qltb v) tags) as [|a l] eqn:E; [lra|].
  destruct (active_facts v tags a l E) as (H1 & _ & _). pose proof (active_pos a l) as Hn.
  cbn [length] in *. set (n := q (S (length l))) in *. set (nx := qmin a l) in *.
  assert (C : b <= n * (nx - v)).
  { rewrite Hb. apply Qmult_le_0_compat; lra. }
  apply Qle_bool_iff in C. rewrite C, Qred_correct, Hb. unfold Qdiv. lra.
Qed.
