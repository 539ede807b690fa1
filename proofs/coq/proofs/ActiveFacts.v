(** * An active agent is served

    The clock releases the units of an agent end to end: between the level and the latest tag of an agent there
    is no gap, so that at each level one of its units is being served ([served_at]). *)
Require Import List Arith Lia QArith Qminmax Lqa.
From Justitia Require Import Sums ClockFacts.
Import ListNotations.

Section Active.
Variable w : workload.
Hypothesis form : well_formed w.
Notation agent := (agent_of w).

(** [released]: the units released so far. Their tags are at most the latest of their agent, and they leave no gap. *)
Definition gapless (c : clock) (released : nat -> Prop) : Prop :=
  (forall u, released u -> clock_tag w c u <= latest c (agent u)) /\
  (forall i v, level c <= v -> v < latest c i ->
     exists u, released u /\ agent u = i /\ bases c u <= v /\ v < clock_tag w c u).

Lemma gapless_release c released u : In u (units w) -> ~ released u -> gapless c released ->
  gapless (release w c u) (fun z => released z \/ z = u).
Proof.
  intros Hu Hn [H1 H2].
  assert (Pos : 0 <= predicted w u / unit_weight w u).
  { apply div_nonneg; [apply (unit_weight_pos w form); auto|apply (predicted_nonneg w form); auto]. }
  assert (Same : forall z, released z -> bases (release w c u) z = bases c z).
  { intros z Hz. simpl. unfold updq. destruct (Nat.eqb_spec z u); [subst; tauto|reflexivity]. }
  assert (New : bases (release w c u) u = Qmax (level c) (latest c (agent u))).
  { simpl. unfold updq. rewrite Nat.eqb_refl. reflexivity. }
  assert (Last : forall i, latest (release w c u) i =
    if (i =? agent u)%nat then Qred (Qmax (level c) (latest c (agent u)) + predicted w u / unit_weight w u)
    else latest c i) by reflexivity.
  pose proof (Q.le_max_l (level c) (latest c (agent u))) as M1.
  pose proof (Q.le_max_r (level c) (latest c (agent u))) as M2.
  split.
  - intros z [Hz| ->]; unfold clock_tag; rewrite Last.
    + rewrite (Same z Hz). specialize (H1 z Hz). unfold clock_tag in H1.
      destruct (Nat.eqb_spec (agent z) (agent u)) as [E|E]; auto. rewrite Qred_correct. rewrite E in H1. lra.
    + rewrite New, Nat.eqb_refl, Qred_correct. lra.
  - intros i v L1 L2. rewrite Last in L2. change (level (release w c u)) with (level c) in L1.
    assert (Old : v < latest c i -> exists z, (released z \/ z = u) /\ agent z = i /\
                  bases (release w c u) z <= v /\ v < clock_tag w (release w c u) z).
    { intros L. destruct (H2 i v L1 L) as (z & Hz & Ez & B1 & B2). exists z. unfold clock_tag in *.
      rewrite (Same z Hz). auto. }
    destruct (Nat.eqb_spec i (agent u)) as [->|E]; [|auto]. rewrite Qred_correct in L2.
    destruct (Qlt_le_dec v (latest c (agent u))) as [L|L]; [auto|].
    exists u. unfold clock_tag. rewrite New. split; [auto|]. split; [reflexivity|]. split; [|exact L2].
    apply Q.max_lub; auto.
Qed.

Lemma gapless_releases l : forall c released, NoDup l -> (forall u, In u l -> In u (units w) /\ ~ released u) ->
  gapless c released -> gapless (fold_left (release w) l c) (fun z => released z \/ In z l).
Proof.
  induction l as [|a l IH]; intros c released Nd Hl Hc; simpl.
  - destruct Hc as [H1 H2]. split; [intros u [Hu|[]]; auto|].
    intros i v L1 L2. destruct (H2 i v L1 L2) as (u & Hu & E). exists u. tauto.
  - inversion Nd; subst. destruct (Hl a (or_introl eq_refl)) as [Ha1 Ha2].
    pose proof (IH (release w c a) (fun z => released z \/ z = a) H2) as H.
    destruct H as [I1 I2].
    + intros u Hu. destruct (Hl u (or_intror Hu)). split; auto. intros [|E]; [tauto|subst; tauto].
    + apply gapless_release; auto.
    + split.
      * intros u Hu. apply I1. intuition.
      * intros i v L1 L2. destruct (I2 i v L1 L2) as (u & Hu & E). exists u. split; [intuition|auto].
Qed.

Variable s : nat -> Q.
Hypothesis s_nonneg : forall k, 0 <= s k.

Lemma gapless_at k : gapless (clock_at w s k) (fun u => In u (units w) /\ (ready w u < k)%nat).
Proof.
  induction k.
  - split; [intros u [_ H]; lia|]. simpl. intros i v L1 L2. lra.
  - assert (H : gapless (release_all w k (clock_at w s k))
              (fun z => (In z (units w) /\ (ready w z < k)%nat) \/ In z (newly_ready w k))).
    { apply gapless_releases; auto using newly_ready_distinct.
      intros u Hu. apply newly_ready_In in Hu as [Hu E]. split; auto. lia. }
    destruct H as [H1 H2]. pose proof (clock_level_step w s s_nonneg k) as L.
    assert (E : level (release_all w k (clock_at w s k)) = level (clock_at w s k)) by apply release_level.
    split.
    + intros u [Hu Hr]. apply (H1 u). destruct (Nat.eq_dec (ready w u) k); [right|left; split; auto; lia].
      apply newly_ready_In. auto.
    + intros i v L1 L2. destruct (H2 i v) as (u & Hu & Rest); [rewrite E; lra|exact L2|].
      exists u. split; [|exact Rest]. destruct Hu as [[Hu Hr]|Hu]; [split; auto|].
      apply newly_ready_In in Hu as [Hu Hr]. split; auto. lia.
Qed.

Notation f := (clock_reference w s).

(** While [z] is unfinished, some unit of its agent that became ready before step [b] is served at the level of [b]. *)
Lemma served_at z b : In z (units w) -> (ready w z < b)%nat -> V f b < tag w f z ->
  exists u, In u (units w) /\ (ready w u < b)%nat /\ base f u <= V f b /\ V f b < tag w f u.
Proof.
  intros Hz Hr Hv. destruct (gapless_at b) as [H1 H2]. specialize (H1 z (conj Hz Hr)). unfold clock_tag in H1.
  rewrite (bases_stay w s z b Hr) in H1. unfold tag in Hv. cbn [share clock_reference] in Hv.
  destruct (H2 (agent z) (V f b)) as (u & (Hu & Ru) & _ & B1 & B2); [apply Qle_refl|lra|].
  unfold clock_tag in B2. rewrite (bases_stay w s u b Ru) in B1, B2. exists u. auto.
Qed.
End Active.
