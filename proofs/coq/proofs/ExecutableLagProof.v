(** * Theorem B for programs: proofs *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums ServiceLagProof FairClockProof ClockFacts LoopFacts KVFacts.
From Justitia Require Export ExecutableLag.

Theorem theorem_B_clock_holds : theorem_B_clock.
Proof.
  intros r f form valid order x s b n C. apply theorem_B_predicted_holds; auto.
  apply theorem_clock_fair_holds; auto. apply (valid_run_service r valid).
Qed.

Theorem theorem_closed_loop_valid_holds : theorem_closed_loop_valid.
Proof.
  intros w g form valid T. constructor; [constructor|..]; cbn [inferences load exec closed_loop].
  - intros x k Hx. cbn. unfold service_of. destruct (starts w g T x) as [s|]; [|lra].
    destruct (s <=? k)%nat; [apply (work_nonneg w g valid); auto|lra].
  - intros x n Hx. pose proof (got_of w g (starts w g T) x n) as E. cbn [cost load execution_of] in *. rewrite E.
    destruct (starts w g T x) as [s|]; [apply (work_within_cost w g valid); auto|].
    pose proof (work_within_cost w g valid x 0 Hx) as H. exact H.
  - intros x k Hx. unfold started_before. cbn. unfold service_of.
    destruct (starts w g T x) as [s|]; [|reflexivity]. intros H. rewrite H. reflexivity.
  - intros x s Hx H. apply starts_spec in H. tauto.
Qed.

Theorem theorem_closed_loop_keeps_order_holds : theorem_closed_loop_keeps_order.
Proof.
  intros w g form valid T r x y s Hx Hy H [W1 W2]. unfold r in *. cbn in H, W1, W2 |- *.
  destruct (starts_spec w g T x s H) as (H1 & _ & H2 & _ & _ & H3).
  assert (Ny : starts w g (S s) y = None).
  { destruct (starts w g (S s) y) as [t|] eqn:E; auto. exfalso. unfold started_before in W2. cbn in W2.
    rewrite (starts_keep w g (S s) T y t) in W2 by (auto; lia).
    destruct (starts_spec w g _ _ _ E) as (L & _). apply Nat.leb_gt in W2. lia. }
  specialize (H3 y Hy W1 Ny). unfold before in *.
  rewrite !(deciding_tag w g T s) in H3 by lia. exact H3.
Qed.

Theorem theorem_closed_loop_tags_holds : theorem_closed_loop_tags.
Proof.
  intros w g form T k u L. unfold closed_loop. cbn [exec]. unfold clock_tag, tag, reference_of.
  rewrite (loop_clock w g T) by lia.
  pose proof (bases_stay w (delivered (execution_of w g (starts w g T))) u k ltac:(lia)) as E.
  cbn [load execution_of] in *. rewrite <- E. reflexivity.
Qed.

Theorem theorem_B_closed_loop_holds : theorem_B_closed_loop.
Proof.
  intros w g form valid T r f x s b n C. apply (theorem_B_clock_holds r); auto.
  - apply theorem_closed_loop_valid_holds; auto.
  - apply theorem_closed_loop_keeps_order_holds; auto.
Qed.

Theorem theorem_B_kv_holds : theorem_B_kv.
Proof.
  intros w p d test form costs T. apply theorem_B_closed_loop_holds; auto. apply kv_engine_valid. auto.
Qed.
