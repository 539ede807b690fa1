(** * Proof of Theorem B *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums ReferenceFacts AheadFacts.
From Justitia Require Export ServiceLag.

(** The general form: [v] is any level in step [n] that has reached the tag of [j]. *)
Lemma lag_at_level (r : run) (f : reference) :
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) ->
  forall x s b n v, In x (inferences r) -> start r x = Some s -> quiet r (tag r f) (unit_of r x) b s ->
  (ready r (unit_of r x) <= n)%nat -> V f n <= v -> tag r f (unit_of r x) <= v ->
  total r s <= (total r n + handed r f n v) + inflight r b - cost r x
               + underestimate r (tag r f) (unit_of r x) b s.
Proof.
  intros form valid is_fair order x s b n v Hx Hs HQ Hr Hv Ht.
  destruct (delivered_ahead r (tag r f) form valid order x s b Hx Hs HQ) as [Hb E].
  pose proof (served_ahead r f (unit_of r x) b s n v form is_fair ltac:(lia) Hv Ht) as R.
  pose proof (work_ahead_predicted r (tag r f) (unit_of r x) b s) as U. lra.
Qed.

Theorem theorem_B_predicted_holds : theorem_B_predicted.
Proof.
  intros r f form valid is_fair order x s b n [Hx Hs HQ (F1 & F2 & F3)]. unfold G.
  apply lag_at_level; auto. lra.
Qed.

Theorem theorem_B_holds : theorem_B.
Proof.
  intros r f form valid is_fair order exact x s b n C.
  pose proof (theorem_B_predicted_holds r f form valid is_fair order x s b n C) as T. cbv zeta in T.
  rewrite underestimate_zero in T by auto. lra.
Qed.

Theorem theorem_B_steps_holds : theorem_B_steps.
Proof.
  intros r f form valid is_fair order exact x s b n Hx Hs HQ Hr Ht.
  pose proof (lag_at_level r f form valid is_fair order x s b n (V f n) Hx Hs HQ Hr (Qle_refl _) Ht) as T.
  rewrite underestimate_zero in T by auto. rewrite handed_start in T. lra.
Qed.

Lemma starts_after_dec r tag j k : starts_after r tag j k \/ ~ starts_after r tag j k.
Proof.
  unfold starts_after. induction (inferences r) as [|a l IH].
  - right. intros (z & [] & _).
  - destruct IH as [(z & Hz & H)|N]; [left; exists z; simpl; tauto|].
    assert (D : {start r a = Some k} + {start r a <> Some k}) by (decide equality; apply Nat.eq_dec).
    destruct D as [D|D]; [destruct (before r tag j (unit_of r a)) eqn:B; [left; exists a; simpl; auto|]|];
      right; intros (z & [<-|Hz] & H1 & H2); try congruence; apply N; exists z; auto.
Qed.

Theorem theorem_quiet_exists_holds : theorem_quiet_exists.
Proof.
  intros r tag j s. assert (E : exists b, quiet r tag j b s).
  { induction s as [|s (b & H1 & H2 & H3)].
    - exists 0%nat. split; [lia|]. split; [intros; lia|discriminate].
    - destruct (starts_after_dec r tag j s) as [D|D].
      + exists (S s). split; [lia|]. split; [intros; lia|]. intros t0 E. injection E as <-. auto.
      + exists b. split; [lia|]. split; auto. intros k Hk. destruct (Nat.eq_dec k s) as [->|]; auto.
        apply H2. lia. }
  destruct E as [b HQ]. exists b. split; auto. intros b' HQ'.
  assert (L : forall b1 b2, quiet r tag j b1 s -> quiet r tag j b2 s -> (b1 <= b2)%nat).
  { intros b1 b2 (A1 & A2 & A3) (B1 & B2 & B3). destruct b1 as [|t]; [lia|].
    destruct (Nat.le_gt_cases (S t) b2) as [|C]; auto. exfalso. apply (B2 t); [lia|auto]. }
  apply Nat.le_antisymm; auto.
Qed.

Theorem theorem_reference_finishes_holds : theorem_reference_finishes.
Proof. intros e f form is_fair j n. apply finishes_exists; auto. Qed.

Theorem theorem_G_range_holds : theorem_G_range.
Proof. intros e f is_fair j n. apply G_range; auto. Qed.
