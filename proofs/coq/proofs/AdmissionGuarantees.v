(** * What a refusal means

    The rate that each admission test keeps: reserving the peak keeps M + u - m_max (blocks of u tokens),
    a cap of B running inferences lowers that to B m_min at worst, and looking ahead keeps M + 1 - m_max. *)
Require Import List Arith Lia Bool.
From Justitia Require Import Sums Windows Demand Schedule Scheduler Admission.
Import ListNotations.

Lemma reserve_peak_within W M : stays_within W (reserve_peak W M) M.
Proof. intros starts t x. apply Nat.leb_le. Qed.

Lemma sumn_divide u f l : (forall x, In x l -> Nat.divide u (f x)) -> Nat.divide u (sumn f l).
Proof. induction l; simpl; intros H; [exists 0; reflexivity|]. apply Nat.divide_add_r; auto. Qed.

Lemma reserved_in_blocks W u starts t :
  (forall x, In x (inferences W) -> Nat.divide u (footprint W x)) -> Nat.divide u (reserved W starts t).
Proof.
  intros H. apply sumn_divide. intros x Hx. destruct (starts x) as [s|]; [|exists 0; reflexivity].
  destruct (inwin s (duration W x) t); auto. exists 0. reflexivity.
Qed.

Theorem reserve_peak_keeps W M u m_max :
  Nat.divide u M -> (forall x, In x (inferences W) -> Nat.divide u (footprint W x)) ->
  (forall x, In x (inferences W) -> footprint W x <= m_max) ->
  refuses_only_above W (reserve_peak W M) (M + u - m_max).
Proof.
  intros [b Eb] Hu Hm starts t x Hx _ H. apply Nat.leb_gt in H. specialize (Hm x Hx).
  destruct (Hu x Hx) as [a Ea], (reserved_in_blocks W u starts t Hu) as [c Ec].
  rewrite Ec, Eb, Ea in *. assert (b < c + a) by nia. nia.
Qed.

Theorem capped_keeps W M u m_max m_min B :
  Nat.divide u M -> (forall x, In x (inferences W) -> Nat.divide u (footprint W x)) ->
  (forall x, In x (inferences W) -> m_min <= footprint W x <= m_max) ->
  refuses_only_above W (reserve_peak_capped W M B) (Nat.min (M + u - m_max) (B * m_min)).
Proof.
  intros HM Hu Hm starts t x Hx Hst H. unfold reserve_peak_capped in H. apply andb_false_iff in H as [H|H].
  - apply Nat.le_trans with (M + u - m_max); [lia|].
    apply (reserve_peak_keeps W M u m_max HM Hu) with (x := x); auto. intros y Hy. apply Hm. auto.
  - apply Nat.ltb_ge in H. enough (running_count W starts t * m_min <= reserved W starts t) by nia.
    unfold running_count, reserved. rewrite <- sumn_mulr. apply sumn_le. intros y Hy.
    destruct (starts y) as [s|]; [|lia]. destruct (inwin s (duration W y) t); [|lia]. specialize (Hm y Hy).
    lia.
Qed.

Lemma look_ahead_refuses W prompt M starts t x : look_ahead W prompt M starts t x = false ->
  exists i, i < duration W x /\ M < held W prompt starts (t + i) + (prompt x + (i + 1)).
Proof.
  unfold look_ahead. generalize (duration W x). intros n. induction n as [|n IH]; [discriminate|].
  rewrite seq_S, forallb_app. intros H. apply andb_false_iff in H as [H|H].
  - destruct (IH H) as (i & H1 & H2). exists i. split; auto.
  - simpl in H. rewrite andb_true_r in H. apply Nat.leb_gt in H. exists n. split; auto.
Qed.

Theorem look_ahead_keeps W prompt M m_max : reserves_peaks W prompt ->
  (forall x, In x (inferences W) -> footprint W x <= m_max) ->
  refuses_only_above W (look_ahead W prompt M) (M + 1 - m_max).
Proof.
  intros Hp Hm starts t x Hx Hst H. destruct (look_ahead_refuses W prompt M starts t x H) as (i & Hi & E).
  assert (L : held W prompt starts (t + i) <= reserved W starts t).
  { unfold held, reserved. apply sumn_le. intros y Hy. destruct (starts y) as [s|] eqn:Es; [|lia].
    specialize (Hst y s Es). rewrite (Hp y Hy). unfold inwin.
    destruct (Nat.leb_spec s (t + i)), (Nat.ltb_spec (t + i) (s + duration W y)),
      (Nat.leb_spec s t), (Nat.ltb_spec t (s + duration W y)); simpl; lia. }
  specialize (Hm x Hx). rewrite (Hp x Hx) in Hm. lia.
Qed.

