(** * The clock between two steps *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ReferenceFacts.
From Justitia Require Export ReleaseFacts.
Import ListNotations.

Section Clock.
Variable w : workload.
Variable s : nat -> Q.
Hypothesis form : well_formed w.
Hypothesis s_nonneg : forall k, 0 <= s k.
Notation at_step := (clock_at w s).
Notation f := (clock_reference w s).
Notation agent := (agent_of w).

Lemma newly_ready_In k u : In u (newly_ready w k) <-> In u (units w) /\ ready w u = k.
Proof. unfold newly_ready. rewrite filter_In, Nat.eqb_eq. tauto. Qed.

Lemma newly_ready_distinct k : NoDup (newly_ready w k).
Proof. apply NoDup_filter, (units_distinct w form). Qed.

Lemma clock_level_S k : level (at_step (S k)) =
  advance (length (tagbag w (at_step (S k)))) (tagbag w (at_step (S k))) (level (at_step k)) (s k).
Proof. simpl. unfold serve, release_all. cbn [level latest bases]. rewrite release_level. reflexivity. Qed.

Lemma tagbag_serve c x : tagbag w (serve w x c) = tagbag w c.
Proof. reflexivity. Qed.

Lemma clock_level_step k : level (at_step k) <= level (at_step (S k)).
Proof. rewrite clock_level_S. apply advance_ge. auto. Qed.

Lemma clock_level_mono a b : (a <= b)%nat -> level (at_step a) <= level (at_step b).
Proof.
  induction b; intros H; [replace a with 0%nat by lia; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [lra|].
  apply Qle_trans with (level (at_step b)); [apply IHb; lia|apply clock_level_step].
Qed.

Lemma unit_weight_pos u : In u (units w) -> 0 < unit_weight w u.
Proof.
  intros H. unfold unit_weight. rewrite <- q_0. apply q_lt.
  pose proof (weight_positive w form _ (agent_known w form u H)). lia.
Qed.

Lemma clock_base_ok u : In u (units w) -> level (at_step (ready w u)) <= base f u.
Proof.
  intros H. unfold clock_reference. simpl. unfold release_all.
  apply (release_base_ge w); [apply newly_ready_distinct|apply newly_ready_In; auto].
Qed.

(** The base of a unit stays what it was when the unit became ready. *)
Lemma bases_stay u k : (ready w u < k)%nat -> bases (at_step k) u = base f u.
Proof.
  induction k; intros L; [lia|]. destruct (Nat.eq_dec (ready w u) k) as [<-|N]; [reflexivity|].
  rewrite <- IHk by lia. simpl. unfold release_all. apply release_base_other. rewrite newly_ready_In. intros [_ E]. lia.
Qed.

(** The latest tag of an agent stays while it releases nothing. *)
Lemma latest_stays i a k : (a <= k)%nat ->
  (forall z, In z (units w) -> agent z = i -> ~ (a <= ready w z < k)%nat) ->
  latest (at_step k) i = latest (at_step a) i.
Proof.
  induction k; intros L H; [replace a with 0%nat by lia; auto|].
  destruct (Nat.eq_dec a (S k)) as [->|]; auto. simpl. unfold release_all. rewrite release_latest_other.
  - apply IHk; [lia|]. intros z Hz E C. apply (H z Hz E). lia.
  - intros z Hz E. apply newly_ready_In in Hz as [Hz Ha]. apply (H z Hz E). lia.
Qed.

(** ** Agents and units take in the same *)
Notation received := (received w f).

Lemma piece_received u v x : In u (units w) -> piece w (base f u) u v x == received u x - received u v.
Proof.
  intros H. unfold piece.
  rewrite !received_min by (try apply (unit_weight_pos u H); apply (predicted_nonneg w form u H)).
  unfold tag, clock_reference. cbn [share base]. lra.
Qed.

(** One step: the units that become ready add what they receive from now on. *)
Lemma fill_release k x : level (at_step k) <= x ->
  fill (tagbag w (at_step (S k))) (level (at_step k)) x
  == fill (tagbag w (at_step k)) (level (at_step k)) x
     + sumq (fun u => if (ready w u =? k)%nat then received u x - received u (level (at_step k)) else 0)
            (units w).
Proof.
  intros Hx. cbn [clock_at]. rewrite tagbag_serve. unfold release_all.
  rewrite (release_fill w); auto using newly_ready_distinct, (agents_distinct w form).
  2: { intros u Hu. apply newly_ready_In in Hu. apply (agent_known w form). tauto. }
  apply Qplus_comp; [reflexivity|].
  rewrite <- (sumq_filter (fun u => received u x - received u (level (at_step k)))).
  apply sumq_ext. intros u Hu. apply newly_ready_In in Hu as [Hu Hk].
  rewrite <- piece_received by auto. unfold clock_reference. cbn [base]. rewrite Hk. reflexivity.
Qed.

Lemma clock_fill k : forall x, level (at_step k) <= x ->
  fill (tagbag w (at_step (S k))) (level (at_step k)) x
  == sumq (fun u => if (ready w u <=? k)%nat then received u x - received u (level (at_step k)) else 0)
          (units w).
Proof.
  induction k; intros x Hx; rewrite fill_release by auto.
  - assert (Z : fill (tagbag w (at_step 0)) (level (at_step 0)) x == 0).
    { rewrite fill_tagbag, <- (sumq_0 (agents w)). apply sumq_ext. intros i _.
      simpl in *. rewrite !(Q.min_l 0) by lra. lra. }
    rewrite Z, Qplus_0_l. apply sumq_ext. intros u _.
    destruct (Nat.eqb_spec (ready w u) 0), (Nat.leb_spec (ready w u) 0); try lia; reflexivity.
  - pose proof (clock_level_step k) as Lk.
    pose proof (fill_chain (tagbag w (at_step (S k))) (level (at_step k)) (level (at_step (S k))) x) as Ch.
    rewrite (IHk x) in Ch by lra. rewrite (IHk (level (at_step (S k)))) in Ch by lra.
    set (lo := level (at_step k)) in *. set (hi := level (at_step (S k))) in *.
    assert (E : fill (tagbag w (at_step (S k))) hi x
      == sumq (fun u => (if (ready w u <=? k)%nat then received u x - received u lo else 0)
                      - (if (ready w u <=? k)%nat then received u hi - received u lo else 0)) (units w)).
    { rewrite sumq_minus. lra. }
    rewrite E, <- sumq_plus. apply sumq_ext. intros u _.
    destruct (Nat.eqb_spec (ready w u) (S k)), (Nat.leb_spec (ready w u) k), (Nat.leb_spec (ready w u) (S k));
      try lia; lra.
Qed.

Lemma handed_fill k x : level (at_step k) <= x -> x <= level (at_step (S k)) ->
  handed w f k x == fill (tagbag w (at_step (S k))) (level (at_step k)) x.
Proof.
  intros H1 H2. rewrite clock_fill by auto. unfold handed. apply sumq_ext. intros u Hu.
  destruct (Nat.leb_spec (ready w u) k) as [L|L]; [reflexivity|].
  pose proof (clock_base_ok u Hu). pose proof (clock_level_mono (S k) (ready w u) L).
  pose proof (clock_level_step k).
  rewrite !received_zero; [lra| |]; simpl (V f k); lra.
Qed.

(** In step [k] at most [s k] is handed out, and exactly [s k] unless everything released is finished. *)
Lemma handed_at_most k : handed w f k (level (at_step (S k))) <= s k.
Proof.
  rewrite handed_fill; [|apply clock_level_step|lra]. rewrite clock_level_S. apply advance_rate. auto.
Qed.

Lemma handed_all k : handed w f k (level (at_step (S k))) == s k \/
  forall i, In i (agents w) -> latest (at_step (S k)) i <= level (at_step (S k)).
Proof.
  rewrite handed_fill; [|apply clock_level_step|lra]. rewrite clock_level_S.
  destruct (advance_exact (length (tagbag w (at_step (S k)))) (tagbag w (at_step (S k))) (level (at_step k)) (s k))
    as [E|E]; auto.
  - generalize (tagbag w (at_step (S k))). intros l.
    induction l as [|x l IH]; simpl; [lia|]. destruct (qltb (level (at_step k)) x); simpl; lia.
  - right. intros i Hi. apply E. unfold tagbag. apply in_flat_map. exists i. split; auto.
    pose proof (weight_positive w form i Hi). destruct (weight w i); [lia|simpl; auto].
Qed.
End Clock.
