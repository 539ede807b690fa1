(** * Proofs of the instances of Theorem A

    Each instance has to say which rate its admission test keeps, and that its clock is calibrated to
    that rate. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule Scheduler Admission System.
From Justitia Require Import TheoremAInstances AdmissionGuarantees TheoremAProof.

Lemma bounded_by_rate Y R D : keeps_rate Y R D -> bounded Y R D.
Proof. intros H T x s f. apply theorem_A_holds. auto. Qed.

Lemma reserved_calibrated W R i : q (agent_work W i) * q R <= q R * reserved_cost W i.
Proof. unfold reserved_cost. rewrite Qmult_comm. apply Qle_refl. Qed.

(** A system whose agents declare their reserved cost, with the clock at the rate [R] that its admission
    test keeps. *)
Lemma reserved_cost_bounded W D R admits : well_formed W D -> (1 <= R)%nat -> refuses_only_above W admits R ->
  bounded (System W (reserved_cost W) (q R) admits) R D.
Proof.
  intros F HR S. apply bounded_by_rate. split; simpl; auto.
  - rewrite <- q_0. apply q_lt. lia.
  - intros i. apply q_nonneg.
  - intros i _. apply reserved_calibrated.
Qed.

(** ** KV token-time is more than half of reserved token-time *)
Lemma kv_tokens_closed W prompt x :
  (2 * kv_tokens W prompt x = 2 * prompt x * duration W x + duration W x * (duration W x + 1))%nat.
Proof.
  unfold kv_tokens. generalize (duration W x). induction n; [simpl; lia|].
  rewrite seq_S, sumn_app, Nat.mul_add_distr_l, IHn. simpl sumn. lia.
Qed.

Lemma reserved_le_twice_kv W prompt i : reserves_peaks W prompt ->
  q (agent_work W i) <= 2 * kv_cost W prompt i.
Proof.
  intros H. unfold kv_cost. change 2 with (q 2). rewrite <- q_mult. apply q_le.
  unfold agent_work, agent_kv_tokens. rewrite Nat.mul_comm, <- sumn_mulr. apply sumn_le. intros y Hy.
  destruct (owner W y =? i); [|lia]. unfold work. rewrite (H y Hy).
  pose proof (kv_tokens_closed W prompt y). nia.
Qed.

(** The same for the KV cost, with the clock at R / 2. *)
Lemma kv_cost_bounded W prompt D R admits : well_formed W D -> reserves_peaks W prompt -> (1 <= R)%nat ->
  refuses_only_above W admits R ->
  bounded (System W (kv_cost W prompt) (q R / 2) admits) R D.
Proof.
  intros F P HR S. apply bounded_by_rate. assert (0 < q R) by (rewrite <- q_0; apply q_lt; lia).
  split; simpl; auto.
  - apply Qlt_shift_div_l; lra.
  - intros i. apply q_nonneg.
  - intros i _. pose proof (reserved_le_twice_kv W prompt i P). set (w := q (agent_work W i)) in *.
    setoid_replace (w * (q R / 2)) with (w * (1 # 2) * q R) by (field; lra).
    rewrite (Qmult_comm (q R)). apply Qmult_le_compat_r; lra.
Qed.

Theorem theorem_A_reserved_holds : theorem_A_reserved.
Proof.
  intros W D M u m_max F [U1 U2 U3 U4 U5] R. apply reserved_cost_bounded; auto; [unfold R; lia|].
  apply reserve_peak_keeps; auto.
Qed.

Theorem theorem_A_kv_holds : theorem_A_kv.
Proof.
  intros W prompt D M m_max F P [U1 U2 U3 U4 U5] R. apply kv_cost_bounded; auto; [unfold R; lia|].
  apply reserve_peak_keeps; auto.
Qed.

Theorem theorem_A_look_ahead_holds : theorem_A_look_ahead.
Proof.
  intros W prompt D M m_max F P [U1 U2 U3 U4 U5] R. assert (1 <= R)%nat by (unfold R; lia).
  pose proof (look_ahead_keeps W prompt M m_max P U4).
  split; [apply reserved_cost_bounded|apply kv_cost_bounded]; auto.
Qed.

Theorem theorem_A_uniform_holds : theorem_A_uniform.
Proof.
  intros W D M u F HM U E. apply reserved_cost_bounded; auto; [lia|].
  replace M with (M + u - u)%nat at 2 by lia. apply reserve_peak_keeps; auto.
  - intros x Hx. rewrite (E x Hx). apply Nat.divide_refl.
  - intros x Hx. rewrite (E x Hx). lia.
Qed.

Theorem theorem_A_predicted_holds : theorem_A_predicted.
Proof.
  intros W D M u m_max predicted lambda F [U1 U2 U3 U4 U5] L Pn P R. apply bounded_by_rate.
  assert (HR : (1 <= R)%nat) by (unfold R; lia).
  assert (0 < q R) by (rewrite <- q_0; apply q_lt; lia). split; simpl; auto.
  - apply reserve_peak_keeps; auto.
  - apply Qlt_shift_div_l; lra.
  - intros i Hi. specialize (P i Hi). unfold reserved_cost in P.
    setoid_replace (q R * predicted i) with (lambda * predicted i * (q R / lambda)) by (field; lra).
    apply Qmult_le_compat_r; auto. apply div_nonneg; lra.
Qed.

Theorem theorem_A_capped_holds : theorem_A_capped.
Proof.
  intros W D M u m_max m_min B F [U1 U2 U3 U4 U5] HB Hm Hmin R. apply reserved_cost_bounded; auto.
  - unfold R. nia.
  - apply capped_keeps; auto.
Qed.

