(** * Proof of Theorem A

    The clock, with what it hands out scaled by R over its rate, is a fluid reference of rate R; the
    scheduler keeps the order of the clock's tags and keeps R of the server busy. So the abstract delay
    bound applies to the two. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule FluidReference RateClock Scheduler.
From Justitia Require Import Admission System.
From Justitia Require Import DelayBound TheoremA RateClockService RateClockFinish.
From Justitia Require Import SchedulerInvariant SchedulerKeepsOrder SchedulerSaturates DelayBoundProof.

Section TheoremA.
Variable Y : system.
Variables R D : nat.
Hypothesis Y_keeps_rate : keeps_rate Y R D.

Lemma clock_rate_pos : 0 < clock_rate Y.
Proof. exact (clock_runs Y R D Y_keeps_rate). Qed.
Lemma costs_nonneg : forall i, 0 <= declared_cost Y i.
Proof. exact (costs_nonnegative Y R D Y_keeps_rate). Qed.
Lemma fine : well_formed Y D.
Proof. exact (demand_well_formed Y R D Y_keeps_rate). Qed.
Lemma distinct : NoDup (inferences Y).
Proof. exact (inferences_distinct Y D fine). Qed.
#[local] Hint Resolve clock_rate_pos costs_nonneg fine distinct : core.
Local Notation clock_received := (received (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y)).
Local Notation start := (schedule_until Y (tag_in Y) (admission Y)).

Lemma R_pos : 0 < q R.
Proof. rewrite <- q_0. apply q_lt. destruct Y_keeps_rate. lia. Qed.
Lemma scale_nonneg : 0 <= q R / clock_rate Y.
Proof. apply div_nonneg; [exact clock_rate_pos|apply q_nonneg]. Qed.
Lemma scale_le a b : a <= b -> q R / clock_rate Y * a <= q R / clock_rate Y * b.
Proof. intros H. rewrite !(Qmult_comm (q R / clock_rate Y)). apply Qmult_le_compat_r; auto.
apply scale_nonneg. Qed.

(** The clock, scaled. *)
Definition scaled (i : nat) (t : Q) : Q := q R / clock_rate Y * clock_received i t.

Lemma scaled_is_fluid : fluid_reference Y scaled (fun t => q R * t).
Proof.
  split; unfold scaled.
  - intros i u t _ H. apply scale_le, received_monotone; auto.
  - intros i u _ H. rewrite (nothing_received_before (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y)) by auto. lra.
  - intros u t H.
    rewrite <- (sumq_ext (fun i => q R / clock_rate Y * (clock_received i t - clock_received i (q u))))
      by (intros; lra).
    rewrite sumq_scale. setoid_replace (q R * t - q R * q u) with (q R / clock_rate Y * (clock_rate Y * (t - q u)))
      by (field; pose proof clock_rate_pos; lra).
    apply scale_le, clock_keeps_its_rate; auto.
Qed.

Lemma scaled_through i f : reference_finished Y i f -> through_with Y (tag_in Y) scaled i f.
Proof.
  intros [Ha Hf]. split; auto. intros k Hk Hp. unfold scaled.
  apply Qle_trans with (q R / clock_rate Y * declared_cost Y k).
  - setoid_replace (q R / clock_rate Y * declared_cost Y k) with (q R * declared_cost Y k / clock_rate Y)
      by (field; pose proof clock_rate_pos; lra).
    apply Qle_shift_div_l; auto. apply (clock_calibrated Y R D); auto.
  - apply scale_le. apply clock_finishes_in_order with (j := i); auto.
Qed.

Lemma system_comparable T : comparable Y D (tag_in Y) T (start T) (fun _ => R) scaled (fun t => q R * t).
Proof.
  split.
  - exact fine.
  - apply scheduler_keeps_order. exact distinct.
  - apply scheduler_saturates; [exact distinct|]. apply (refusals_mean_busy Y R D); auto.
  - apply scaled_is_fluid.
  - intros n. unfold capacity_before. rewrite sumn_const, seq_length, q_mult. reflexivity.
Qed.

Lemma start_in_time T x f : In x (inferences Y) -> reference_finished Y (owner Y x) f ->
  q (start T x) <= f + q (D - 1) - q (work Y x) / q R.
Proof.
  intros Hx Hf. pose proof R_pos.
  pose proof (theorem_A_constant_rate_holds Y D (tag_in Y) T (start T) R scaled (system_comparable T) x f Hx
    (start_le Y (tag_in Y) (admission Y) distinct T x) (scaled_through _ f Hf)) as B.
  assert (q (work Y x) / q R <= f + q (D - 1) - q (start T x)) by (apply div_le; auto; lra). lra.
Qed.
End TheoremA.

Theorem theorem_A_holds : theorem_A.
Proof.
  intros Y R D H T x s f Hx Hs Hf. pose proof (start_in_time Y R D H T x f Hx Hf) as B.
  unfold schedule_until in B. unfold started in Hs. rewrite Hs in B. unfold ends_in_time. rewrite q_plus. lra.
Qed.

Theorem theorem_A_simple_holds : theorem_A_simple.
Proof.
  intros Y R D H T x s f Hx Hs Hf. pose proof (theorem_A_holds Y R D H T x s f Hx Hs Hf) as B.
  unfold ends_in_time in B.
  pose proof (demand_well_formed Y R D H) as F.
  assert (0 <= q (work Y x) / q R) by (apply div_nonneg; [apply (R_pos Y R D H)|apply q_nonneg]).
  assert (q (duration Y x) <= q D) by (apply q_le, (durations_bounded Y D F); auto).
  pose proof (some_duration Y D F). replace (2 * D - 1)%nat with (D - 1 + D)%nat by lia.
  rewrite (q_plus (D - 1) D). lra.
Qed.

Theorem theorem_A_no_starvation_holds : theorem_A_no_starvation.
Proof.
  intros Y R D H T x f Hx Hf HT. pose proof (start_in_time Y R D H T x f Hx Hf) as B. unfold started.
  unfold schedule_until in B. destruct (starts Y (tag_in Y) (admission Y) T x) as [s|]; [eauto|]. exfalso.
  lra.
Qed.

Theorem theorem_A_eventually_started_holds : theorem_A_eventually_started.
Proof.
  intros Y R D H x K Hx HK. pose proof (demand_well_formed Y R D H) as F. pose proof (some_duration Y D F).
  apply (theorem_A_no_starvation_holds Y R D H _ x (q (arrival Y (owner Y x) + K)) Hx).
  - split; [apply q_le; lia|]. unfold tag_in, virtual_time_in.
    apply (clock_is_finite (agents Y) (arrival Y) (declared_cost Y) (clock_rate Y)).
    + exact (clock_runs Y R D H).
    + exact (costs_nonnegative Y R D H).
    + apply (owners_known Y D F). exact Hx.
    + exact HK.
  - assert (0 <= q (work Y x) / q R) by (apply div_nonneg; [apply (R_pos Y R D H)|apply q_nonneg]).
    rewrite (q_plus _ D). assert (q (D - 1) < q D) by (apply q_lt; lia). lra.
Qed.

