(** * Proof that the clock is a fair reference *)
Require Import QArith.
From Justitia Require Import Sums LevelFacts RateClock FairRateClock RateClockService RateClockFinish.

Theorem clock_is_fair_holds : clock_is_fair.
Proof.
  intros agents arrival cost rate rate_pos cost_nonneg. repeat split.
  - intros u t. apply clock_keeps_its_rate; auto.
  - intros k. apply clock_conserves_work; auto.
  - intros i j t. apply clock_finishes_in_order.
  - apply reference_finish_reached; auto.
  - apply reference_finish_reached; auto.
  - apply reference_finish_reached; auto.
  - intros t. apply reference_finish_first; auto.
  - intros i K. apply clock_is_finite; auto.
Qed.

