(** * No smaller constant can be kept

    A reasonable schedule starts all of agent 0 in step 0, so the memory is full until step D, and the
    inference of agent 1 ends at 2 D or later. The reference serves both agents equally from step 1 on
    and finishes agent 1 at 1 + 2 D / k. *)
Require Import List Arith Lia ZArith QArith Qminmax Lqa Bool.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import BestConstant.
From Justitia Require Import RateClockFacts.
Import ListNotations.

(** At most the number of tags times the rise goes into them. *)
Lemma fill_le tags v w : v <= w -> fill tags v w <= q (length tags) * (w - v).
Proof.
  intros H. unfold fill. induction tags as [|x l IH]; simpl; [rewrite q_0; lra|].
  rewrite q_S. assert (Qmin x w - Qmin x v <= w - v).
  { destruct (Qlt_le_dec x v).
    - rewrite !Q.min_l by lra. lra.
    - rewrite (Q.min_r x v) by lra. pose proof (Q.le_min_r x w). lra. }
  lra.
Qed.

Section Latecomer.
Variables k D : nat.
Hypothesis D_two : (2 <= D)%nat.
Hypothesis k_large : (2 * D < k)%nat.
Local Notation W := (latecomer k D).
Local Notation M := (k * D)%nat.

Section Server.
Variable start : nat -> nat.
Hypothesis schedule_reasonable : reasonable W start M.

Definition others (x : nat) : nat := if x =? k then 0%nat else D.
Lemma others_fill_the_memory : sumn others (inferences W) = M.
Proof.
  change (inferences W) with (seq 0 (S k)). unfold others. rewrite seq_S, sumn_app. simpl.
  rewrite Nat.eqb_refl.
  rewrite (sumn_ext _ (fun _ => D)).
  - rewrite sumn_const, seq_length. lia.
  - intros x Hx. apply in_seq in Hx. destruct (Nat.eqb_spec x k); [lia|auto].
Qed.

Lemma late_start : (1 <= start k)%nat.
Proof.
  assert (Hin : In k (inferences W)) by (apply in_seq; lia).
  pose proof (reasonable_arrivals W start M schedule_reasonable k Hin) as A. simpl in A.
  rewrite Nat.eqb_refl in A. exact A.
Qed.

Lemma others_start_at_once y : (y < k)%nat -> start y = 0%nat.
Proof.
  intros Hy. destruct (Nat.eq_dec (start y) 0) as [|Hne]; auto. exfalso. pose proof late_start as Hk.
  assert (Hin : In y (inferences W)) by (apply in_seq; lia).
  assert (Wy : waiting W start y 0).
  { unfold waiting. simpl. destruct (Nat.eqb_spec y k); lia. }
  pose proof (reasonable_work W start M schedule_reasonable y 0%nat Hin Wy) as L.
  assert (E : (load W start 0 + others y <= sumn others (inferences W))%nat).
  { unfold load. apply (sumn_le_except (fun x => if running W start x 0 then footprint W x else 0)%nat others); auto.
    - unfold running, inwin. destruct (Nat.leb_spec (start y) 0); [lia|reflexivity].
    - intros x Hx. unfold others. destruct (Nat.eqb_spec x k) as [->|].
      + unfold running, inwin. destruct (Nat.leb_spec (start k) 0); [lia|simpl; lia].
      + destruct (running W start x 0); simpl; lia. }
  rewrite others_fill_the_memory in E. unfold others in E. destruct (Nat.eqb_spec y k); lia.
Qed.

Lemma server_side : (D <= start k)%nat.
Proof.
  destruct (Nat.le_gt_cases D (start k)) as [|Hlt]; auto. exfalso.
  pose proof (reasonable_memory W start M schedule_reasonable (start k)) as L.
  assert (E : load W start (start k) = (S k * D)%nat); [|rewrite E in L; lia].
  unfold load. rewrite (sumn_ext _ (fun _ => D)).
  - change (inferences W) with (seq 0 (S k)). rewrite sumn_const, seq_length. lia.
  - intros x Hx. apply in_seq in Hx. unfold running, inwin. simpl.
    destruct (Nat.eq_dec x k) as [->|].
    + rewrite Nat.leb_refl. destruct (Nat.ltb_spec (start k) (start k + D)); [reflexivity|lia].
    + rewrite (others_start_at_once x) by lia. destruct (Nat.ltb_spec (start k) (0 + D)); [reflexivity|lia].
Qed.
End Server.

(** ** The reference *)
Lemma k_pos : 0 < q k.
Proof. rewrite <- q_0. apply q_lt. lia. Qed.

Local Notation Y := (latecomer_system k D).
Local Notation clock_tags := (tags_before (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) 2).
Local Notation level_1 := (level_at (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) 1).

Lemma reference_side : reference_finished Y 1 (1 + q (2 * D) / q k).
Proof.
  pose proof k_pos as Hk. set (f := 1 + q (2 * D) / q k).
  assert (Hf1 : 0 <= q (2 * D) / q k) by (apply div_nonneg; auto; apply q_nonneg).
  assert (Hf2 : q (2 * D) / q k < 1).
  { apply Qlt_shift_div_r; auto. rewrite Qmult_1_l. apply q_lt. auto. }
  split; [unfold f; simpl arrival; rewrite q_1; lra|]. unfold tag_in, virtual_time_in.
  assert (Hs : step_of f = 1%nat).
  { pose proof (step_of_ge 1 f ltac:(rewrite q_1; unfold f; lra)) as L.
    destruct (Nat.eq_dec (step_of f) 1); auto. exfalso.
    destruct (step_of_bounds f) as [B _]; [unfold f; lra|].
    assert (q 2 <= q (step_of f)) by (apply q_le; lia). change (q 2) with (2 # 1) in H. unfold f in *. lra. }
  unfold virtual_time. rewrite Hs. set (b := clock_rate Y * (f - q 1)).
  assert (Eb : b == q (2 * D) * q D).
  { unfold b, f. simpl clock_rate. rewrite q_1, (q_mult k D).
    setoid_replace (q k * q D * (1 + q (2 * D) / q k - 1)) with (q (2 * D) * q D) by (field; lra). lra. }
  assert (Hb : 0 <= b) by (rewrite Eb; apply Qmult_le_0_compat; apply q_nonneg).
  set (w := advance (length clock_tags) clock_tags level_1 b).
  set (tag1 := tag (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) 1).
  assert (Ht : tag1 == level_1 + q (D * D)) by apply Qred_correct.
  assert (Hlen : length clock_tags = 2%nat) by reflexivity.
  destruct (Qlt_le_dec w tag1) as [L|]; auto. exfalso.
  destruct (advance_exact (length clock_tags) clock_tags level_1 b Hb) as [E|E].
  - clear. generalize clock_tags level_1. intros l v. induction l as [|x l IH]; simpl; [lia|].
    destruct (qltb v x); simpl; lia.
  - fold w in E. pose proof (fill_le clock_tags level_1 w (advance_ge _ _ _ _ Hb)) as F. rewrite Hlen in F.
    change (q 2) with (2 # 1) in F. rewrite E, Eb in F. rewrite q_mult in F, Ht.
    change (q 2) with (2 # 1) in F. rewrite <- Qmult_assoc in F. lra.
  - fold w in E.
    specialize (E _ (tag_among_tags (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y) 1 2
      ltac:(simpl; auto) ltac:(simpl; lia))). fold tag1 in E. lra.
Qed.
End Latecomer.

Theorem latecomer_lags_holds : latecomer_lags.
Proof.
  intros k D D2 kD start S. exists (1 + q (2 * D) / q k). split; [apply reference_side; auto|].
  pose proof (server_side k D D2 kD start S) as Hs.
  assert (L : q (1 + (2 * D - 1)) <= q (start k + D)) by (apply q_le; lia).
  rewrite q_plus in L at 1. rewrite q_1 in L. lra.
Qed.

Theorem constant_is_optimal_holds : constant_is_optimal.
Proof.
  intros D eps D2 He. set (c := q (2 * D) / eps).
  assert (Hc : 0 <= c) by (apply div_nonneg; auto; apply q_nonneg).
  set (k := (2 * D + (step_of c + 2))%nat). exists k. intros start S.
  destruct (latecomer_lags_holds k D D2 ltac:(unfold k; lia) start S) as (f & Hf & L).
  exists f. split; auto. assert (K : q (2 * D) / q k < eps); [|lra].
  assert (Hk : c < q k).
  { destruct (step_of_bounds c Hc) as [_ B]. unfold k. rewrite !q_plus. change (q 2) with (2 # 1).
    pose proof (q_nonneg (2 * D)). lra. }
  apply Qlt_shift_div_r; [lra|]. assert (E : eps * c == q (2 * D)) by (unfold c; apply mul_div; auto).
  rewrite <- E, !(Qmult_comm eps). apply Qmult_lt_compat_r; auto.
Qed.

