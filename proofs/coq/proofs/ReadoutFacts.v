(** * What is read off a run is what the theorems speak of *)
Require Import List Arith Lia QArith Bool.
From Justitia Require Import Sums ClockFacts.
From Justitia Require Export Readout.
Import ListNotations.

(** ** The start and the finish *)
Lemma overtakes_iff r tag j k : overtakes r tag j k = true <-> starts_after r tag j k.
Proof.
  unfold overtakes, starts_after. rewrite existsb_exists. split; intros (z & Hz & H); exists z; split; auto.
  - apply andb_prop in H as [H B]. destruct (start r z); [|discriminate]. apply Nat.eqb_eq in H. subst. auto.
  - destruct H as [H B]. rewrite H, B, Nat.eqb_refl. reflexivity.
Qed.

Lemma finish_checked w f j n : check_finish w f j n = true -> finishes w f j n.
Proof.
  unfold check_finish, finishes. rewrite !andb_true_iff, Nat.leb_le, !Qle_bool_iff. tauto.
Qed.

Lemma quiet_since_quiet r tag j s : quiet r tag j (quiet_since r tag j s) s.
Proof.
  induction s as [|s (H1 & H2 & H3)]; simpl.
  - split; [lia|]. split; [intros; lia|discriminate].
  - destruct (overtakes r tag j s) eqn:E.
    + split; [lia|]. split; [intros; lia|]. intros t0 E0. injection E0 as <-. apply overtakes_iff. auto.
    + split; [lia|]. split; auto. intros k Hk. destruct (Nat.eq_dec k s) as [->|]; [|apply H2; lia].
      rewrite <- overtakes_iff. congruence.
Qed.

Lemma finish_step_finishes w f j n m : finish_step w f j n = Some m -> finishes w f j m.
Proof. intros H. apply find_some in H as [_ H]. apply finish_checked. auto. Qed.

Lemma slack_of_comparison (r : run) f x s n m : start r x = Some s -> finish_step r f (unit_of r x) n = Some m ->
  In x (inferences r) ->
  let j := unit_of r x in let b := quiet_since r (tag r f) j s in
  comparison r f x s b m /\
  slack r f x n
  = Some (G r f j m + inflight r b - cost r x + underestimate r (tag r f) j b s - total r s).
Proof.
  intros Hs Hm Hx j b. split.
  - constructor; auto; [apply quiet_since_quiet|apply finish_step_finishes with n; auto].
  - unfold slack. rewrite Hs. rewrite Hm. reflexivity.
Qed.

(** ** The tabulated reference *)
Lemma levels_nth w s n : forall k i, (i <= n)%nat ->
  nth i (levels w s k (clock_at w s k) n) 0 = level (clock_at w s (k + i)).
Proof.
  induction n; intros k i L; (destruct i as [|i]; [rewrite Nat.add_0_r; reflexivity|]); [lia|].
  cbn [levels nth]. rewrite Nat.add_succ_r. apply (IHn (S k) i). lia.
Qed.

Section Tabulated.
Variable e : execution.
Variable n : nat.
Hypothesis all_ready : forall u, In u (units e) -> (ready e u < n)%nat.
Notation f := (reference_of e).
Notation t := (tabulated e n).

Lemma tabulated_V k : (k <= n)%nat -> V t k = V f k.
Proof. apply (levels_nth e (delivered e) n 0). Qed.

Lemma tabulated_base u : In u (units e) -> base t u = base f u.
Proof. intros H. apply (bases_stay e (delivered e)). auto. Qed.

Lemma tabulated_received u v : In u (units e) -> received e t u v = received e f u v.
Proof. intros H. unfold received. rewrite tabulated_base by auto. reflexivity. Qed.

Lemma tabulated_tag u : In u (units e) -> tag e t u = tag e f u.
Proof. intros H. unfold tag. rewrite tabulated_base by auto. reflexivity. Qed.

Lemma tabulated_finishes j m : In j (units e) -> (m < n)%nat -> finishes e t j m <-> finishes e f j m.
Proof. intros Hj L. unfold finishes. rewrite tabulated_tag, !tabulated_V by (auto; lia). tauto. Qed.

Lemma tabulated_G j m : In j (units e) -> (m < n)%nat -> G e t j m == G e f j m.
Proof.
  intros Hj L. unfold G, handed. rewrite tabulated_tag, tabulated_V by (auto; lia). apply Qplus_comp; [reflexivity|].
  apply sumq_ext. intros u Hu. rewrite !tabulated_received by auto. reflexivity.
Qed.
End Tabulated.
