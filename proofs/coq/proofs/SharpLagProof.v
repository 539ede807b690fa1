(** * When Theorem B holds with equality: proofs *)
Require Import List Arith Lia QArith Qminmax Lqa.
From Justitia Require Import Sums OrderFacts ServiceFacts ReferenceFacts AheadFacts.
From Justitia Require Import ClockFacts ActiveFacts FairClockProof.
From Justitia Require Export SharpLag.

Lemma served_ahead_and_others (e : execution) f j b s n : well_formed e -> fair e f ->
  (b <= n)%nat -> V f n <= tag e f j ->
  work_ahead e (tag e f) (predicted e) j b s + others e f j b s
  <= total e n - total e b + handed e f n (tag e f j).
Proof.
  intros form is_fair Hbn Hv.
  apply Qle_trans with (sumq (fun u => received e f u (tag e f j) - received e f u (V f b)) (units e));
    [|apply handed_window; auto].
  unfold work_ahead, others. rewrite <- sumq_plus. apply sumq_le. intros u Hu.
  pose proof (V_mono e f is_fair b n Hbn) as Vb.
  destruct (ahead e (tag e f) j b s u) eqn:A; [|lra].
  apply ahead_true in A as [[A1 _] A3]. apply before_false in A3.
  rewrite (received_full e f form is_fair u (tag e f j)) by auto. rewrite (received_zero e f u (V f b)); [lra|].
  pose proof (base_after_ready e f is_fair u Hu). pose proof (V_mono e f is_fair b (ready e u) A1). lra.
Qed.

Theorem theorem_B_sharp_holds : theorem_B_sharp.
Proof.
  intros r f form valid is_fair order x s b n [Hx Hs HQ (F1 & F2 & _)] j.
  destruct (delivered_ahead r (tag r f) form valid order x s b Hx Hs HQ) as [Hb E].
  pose proof (served_ahead_and_others r f j b s n form is_fair ltac:(unfold j; lia) F2) as R.
  pose proof (work_ahead_predicted r (tag r f) j b s) as U. unfold G. fold j in E. lra.
Qed.

Theorem theorem_B_strict_holds : theorem_B_strict.
Proof.
  intros r f form valid order x s b n C j Hb Hp. pose proof (valid_run_service r valid) as account.
  pose proof (theorem_clock_fair_holds r form account) as is_fair. fold f in is_fair.
  pose proof (theorem_B_sharp_holds r f form valid is_fair order x s b n C) as B. cbv zeta in B. fold j in B.
  enough (0 < others r f j b s) by lra. clear B.
  destruct C as [Hx Hs HQ _]. destruct b as [|t0]; [lia|]. fold j in HQ.
  destruct (delivered_ahead r (tag r f) form valid order x s (S t0) Hx Hs HQ) as [Hr _]. fold j in Hr.
  destruct HQ as (_ & _ & Q3). destruct (Q3 t0 eq_refl) as (z & Hz & Sz & Bz).
  pose proof (no_start_before_ready r valid z t0 Hz Sz) as Rz.
  assert (Hj : In j (units r)) by (apply (unit_known r form); auto).
  (* the level at the beginning of step b is below the tag of j, and that is at most the tag of z *)
  assert (Tz : tag r f j <= tag r f (unit_of r z)).
  { apply before_true in Bz. destruct Bz as [Bz|[Bz _]]; lra. }
  assert (Tj : V f (S t0) < tag r f j).
  { pose proof (base_after_ready r f is_fair j Hj) as L1. pose proof (V_mono r f is_fair _ _ Hr) as L2.
    pose proof (share_positive r f is_fair j Hj) as L3. unfold tag.
    assert (0 < predicted r j / share f j) by (apply Qlt_shift_div_l; auto; lra). lra. }
  assert (Served : exists u, In u (units r) /\ (ready r u < S t0)%nat /\
                   base f u <= V f (S t0) /\ V f (S t0) < tag r f u).
  { apply (served_at r form (delivered r) (delivered_nonneg r account) (unit_of r z));
      [apply (unit_known r form); auto|lia|]. change (clock_reference r (delivered r)) with f. lra. }
  destruct Served as (u & Hu & Ru & B1 & B2).
  assert (Pos : forall y, In y (units r) -> 0 <= received r f y (tag r f j) - received r f y (V f (S t0))).
  { intros y Hy. pose proof (received_mono r f is_fair y (V f (S t0)) (tag r f j) Hy ltac:(lra)). lra. }
  apply Qlt_le_trans with (received r f u (tag r f j) - received r f u (V f (S t0))).
  - pose proof (share_positive r f is_fair u Hu) as Su.
    rewrite !received_min by (auto; apply (predicted_nonneg r form); auto).
    rewrite (Q.min_l (base f u)), (Q.min_l (base f u)) by lra. rewrite (Q.min_r (tag r f u) (V f (S t0))) by lra.
    assert (L : V f (S t0) < Qmin (tag r f u) (tag r f j)) by (apply Q.min_glb_lt; auto).
    apply (Qmult_lt_l _ _ _ Su) in L. lra.
  - assert (N : ahead r (tag r f) j (S t0) s u = false).
    { destruct (ahead r (tag r f) j (S t0) s u) eqn:A; auto. apply ahead_true in A as [[A _] _]. lia. }
    pose proof (sumq_In_le (fun u => if ahead r (tag r f) j (S t0) s u then 0
                  else received r f u (tag r f j) - received r f u (V f (S t0))) (units r) u Hu) as S1.
    cbv beta in S1. rewrite N in S1. apply S1. intros y Hy. destruct (ahead r (tag r f) j (S t0) s y); [lra|auto].
Qed.
