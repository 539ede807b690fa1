(** * The level of the reference, computed by hand

    For agents of one unit and of weight 1. In a step in which nobody finishes, the level rises by what is
    delivered over the number of those active: ready, and with a tag above the level. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts.
Import ListNotations.

Record plain (w : workload) : Prop := {
  plain_units : units w = agents w;
  plain_agent : forall u, In u (units w) -> agent_of w u = u;
  plain_weight : forall u, In u (units w) -> weight w u = 1%nat
}.

Lemma advance_within fuel tags v b : let n := q (length (filter (qltb v) tags)) in
  (0 < fuel)%nat -> filter (qltb v) tags <> [] ->
  (forall x, In x tags -> v < x -> v + b / n <= x) -> advance fuel tags v b == v + b / n.
Proof.
  intros n Hf Hne Hx. subst n. destruct fuel as [|fuel]; [lia|]. simpl.
  destruct (filter (qltb v) tags) as [|a l] eqn:E; [congruence|].
  destruct (active_facts v tags a l E) as (H1 & H2 & _). pose proof (active_pos a l) as Hn.
  specialize (Hx (qmin a l) H2 H1). cbn [length] in *.
  assert (C : b <= q (S (length l)) * (qmin a l - v)).
  { rewrite <- (mul_div (q (S (length l))) b) by auto.
    rewrite !(Qmult_comm (q (S (length l)))). apply Qmult_le_compat_r; lra. }
  apply Qle_bool_iff in C. rewrite C, Qred_correct. reflexivity.
Qed.

Lemma filter_map {A B} (g : A -> B) (p : B ->
  bool) l : filter p (map g l) = map g (filter (fun x => p (g x)) l).
Proof. induction l as [|a l IH]; simpl; auto. destruct (p (g a)); simpl; rewrite IH; auto. Qed.

Section ByHand.
Variable e : execution.
Hypothesis form : well_formed e.
Hypothesis simple : plain e.
Hypothesis nonneg : forall k, 0 <= delivered e k.
Notation f := (reference_of e).
Notation at_step := (clock_at e (delivered e)).

Lemma V_start : V f 0 = 0.
Proof. reflexivity. Qed.

Lemma weight_is_one u : In u (units e) -> unit_weight e u == 1.
Proof.
  intros H. unfold unit_weight. rewrite (plain_agent e simple u H), (plain_weight e simple u H). reflexivity.
Qed.

Lemma own_unit u z : In u (units e) -> In z (units e) -> agent_of e z = agent_of e u -> z = u.
Proof. intros Hu Hz E. rewrite (plain_agent e simple u Hu), (plain_agent e simple z Hz) in E. exact E. Qed.

Lemma latest_before_ready u k : In u (units e) -> (k <= ready e u)%nat -> latest (at_step k) u = 0.
Proof.
  intros Hu L. rewrite (latest_stays e (delivered e) u 0 k); [reflexivity|lia|].
  intros z Hz E C. rewrite (plain_agent e simple z Hz) in E. subst. lia.
Qed.

Lemma released u : In u (units e) ->
  base f u = Qmax (V f (ready e u)) 0 /\
  latest (at_step (S (ready e u))) u = Qred (Qmax (V f (ready e u)) 0 + predicted e u / unit_weight e u).
Proof.
  intros Hu. destruct (release_one e u (newly_ready e (ready e u))) with (c :=
    at_step (ready e u)) as [E1 E2].
  - apply newly_ready_distinct; auto.
  - apply newly_ready_In; auto.
  - intros z Hz Ea. apply newly_ready_In in Hz as [Hz _]. apply own_unit; auto.
  - rewrite (plain_agent e simple u Hu) in E1, E2. rewrite latest_before_ready in E1, E2 by auto.
    split; [exact E1|exact E2].
Qed.

Lemma V_nonneg k : 0 <= V f k.
Proof. apply (clock_level_mono e (delivered e) nonneg 0 k). lia. Qed.

Lemma tag_by_hand u : In u (units e) -> tag e f u == V f (ready e u) + predicted e u.
Proof.
  intros Hu. unfold tag. destruct (released u Hu) as [-> _]. rewrite Q.max_l by apply V_nonneg.
  change (share f u) with (unit_weight e u). rewrite weight_is_one by auto. field.
Qed.

Lemma latest_after_ready u k : In u (units e) -> (ready e u < k)%nat -> latest (at_step k) u == tag e f u.
Proof.
  intros Hu L. rewrite (latest_stays e (delivered e) u (S (ready e u)) k);
    [|lia|intros z Hz E C; rewrite (plain_agent e simple z Hz) in E; subst; lia].
  destruct (released u Hu) as [E1 E2]. rewrite E2, Qred_correct. unfold tag. rewrite E1. reflexivity.
Qed.

Lemma bag_by_hand c : tagbag e c = map (latest c) (units e).
Proof.
  unfold tagbag. rewrite <- (plain_units e simple).
  assert (H : forall l, (forall u, In u l -> In u (units e)) ->
    flat_map (fun i => repeat (latest c i) (weight e i)) l = map (latest c) l); [|apply H; auto].
  induction l as [|a l IH]; intros Hl; simpl; auto.
  rewrite IH by (intros; apply Hl; simpl; auto). rewrite (plain_weight e simple a) by (apply Hl; simpl; auto).
  reflexivity.
Qed.

Theorem level_by_hand k active : NoDup active -> active <> [] ->
  (forall u, In u active <-> In u (units e) /\ (ready e u <= k)%nat /\ V f k < tag e f u) ->
  (forall u, In u active -> V f k + delivered e k / q (length active) <= tag e f u) ->
  V f (S k) == V f k + delivered e k / q (length active).
Proof.
  intros Nd Ne Hact Hle. change (V f (S k)) with (level (at_step (S k))). rewrite clock_level_S, bag_by_hand.
  change (level (at_step k)) with (V f k). set (g := latest (at_step (S k))).
  set (act := filter (fun u => qltb (V f k) (g u)) (units e)).
  assert (Hg : forall u, In u act <-> In u active).
  { intros u. unfold act. rewrite filter_In, qltb_true, Hact. unfold g.
    destruct (Nat.le_gt_cases (ready e u) k) as [L|L].
    - split; intros (H1 & H2); [|destruct H2 as [_ H2]]; rewrite ?latest_after_ready in *; auto; lia.
    - split; intros (H1 & H2); [|lia]. rewrite latest_before_ready in H2 by (auto; lia).
      pose proof (V_nonneg k). lra. }
  assert (Hlen : length act = length active).
  { apply Nat.le_antisymm; apply NoDup_incl_length; auto;
      try (intros u; apply Hg); apply NoDup_filter, (units_distinct e form). }
  assert (Hfil : length (filter (qltb (V f k)) (map g (units e))) = length active).
  { rewrite filter_map, map_length. exact Hlen. }
  rewrite <- Hfil. apply advance_within.
  - destruct active as [|a l]; [congruence|]. destruct (proj1 (Hact a) (or_introl eq_refl)) as [Ha _].
    destruct (units e); [destruct Ha|simpl; lia].
  - intros E. rewrite E in Hfil. destruct active; [congruence|discriminate].
  - rewrite Hfil. intros x Hx Hv. apply in_map_iff in Hx as (u & <- & Hu).
    assert (Hin : In u active). { apply Hg. unfold act. apply filter_In. split; auto. apply qltb_true. auto. }
    assert (Et : g u == tag e f u).
    { apply latest_after_ready; auto. apply Hact in Hin. lia. }
    rewrite Et. auto.
Qed.

(** When the level reaches the tag of [j] at the beginning of a step, [G_j] is what was delivered before. *)
Theorem finish_at_step j n : In j (units e) -> (ready e j <= n)%nat -> V f n == tag e f j ->
  finishes e f j n /\ G e f j n == total e n.
Proof.
  intros Hj Hr Ht. split.
  - split; [exact Hr|]. pose proof (clock_level_step e (delivered e) nonneg n) as L.
    change (level (at_step n)) with (V f n) in L. change (level (at_step (S n))) with (V f (S n)) in L.
    split; lra.
  - unfold G, handed.
    assert (Z : sumq (fun u => received e f u (tag e f j) - received e f u (V f n)) (units e) == 0);
      [|lra].
    rewrite <- (sumq_0 (units e)). apply sumq_ext. intros u _. unfold received. rewrite Ht. lra.
Qed.
End ByHand.

(** ** Sums with one summand *)
Lemma sum_one a (v : Q) n : forall i, sumq (fun x => if (x =? a)%nat then v else 0) (seq i n)
  == if ((i <=? a) && (a <? i + n))%nat then v else 0.
Proof.
  induction n; intros i; simpl.
  - destruct (Nat.leb_spec i a), (Nat.ltb_spec a (i + 0)); simpl; try lia; reflexivity.
  - rewrite IHn. destruct (Nat.eqb_spec i a) as [->|].
    + rewrite Nat.leb_refl. destruct (Nat.leb_spec (S a) a), (Nat.ltb_spec a (a + S n)); simpl; try lia; lra.
    + destruct (Nat.leb_spec (S i) a), (Nat.leb_spec i a), (Nat.ltb_spec a (S i + n)),
        (Nat.ltb_spec a (i + S n));
        simpl; try lia; lra.
Qed.
