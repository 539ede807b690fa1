(** * What the release of units does to the clock *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ReferenceFacts.
From Justitia Require Export ServiceClock.
Import ListNotations.

Section Release.
Variable w : workload.
Notation agent := (agent_of w).
Notation releases := (fold_left (release w)).
Notation uw := (unit_weight w).

Lemma release_level l : forall c, level (releases l c) = level c.
Proof. induction l as [|a l IH]; simpl; intros c; auto. rewrite IH. reflexivity. Qed.

Lemma release_base_other l : forall c u, ~ In u l -> bases (releases l c) u = bases c u.
Proof.
  induction l as [|a l IH]; simpl; intros c u H; auto. rewrite IH by tauto. simpl. unfold updq.
  destruct (Nat.eqb_spec u a); [subst; tauto|reflexivity].
Qed.

Lemma release_base_ge l : forall c u, NoDup l -> In u l -> level c <= bases (releases l c) u.
Proof.
  induction l as [|a l IH]; simpl; intros c u Nd H; [tauto|]. inversion Nd; subst.
  destruct H as [->|H]; [|apply (IH (release w c a)); auto]. rewrite release_base_other by auto. simpl.
  unfold updq. rewrite Nat.eqb_refl. apply Q.le_max_l.
Qed.

Lemma release_latest_other i l : (forall z, In z l -> agent z <> i) -> forall c,
  latest (releases l c) i = latest c i.
Proof.
  induction l as [|a l IH]; simpl; intros H c; auto. rewrite IH by auto. simpl. unfold updq.
  destruct (Nat.eqb_spec i (agent a)) as [->|]; auto. exfalso. apply (H a); auto.
Qed.

(** A unit that is the only one of its agent in the list. *)
Lemma release_one u l : NoDup l -> In u l -> (forall z, In z l -> agent z = agent u -> z = u) -> forall c,
  bases (releases l c) u = Qmax (level c) (latest c (agent u)) /\
  latest (releases l c) (agent u) = Qred (Qmax (level c) (latest c (agent u)) + predicted w u / uw u).
Proof.
  induction l as [|a l IH]; intros Nd Hin Hu c; [destruct Hin|]. inversion Nd; subst. cbn [fold_left].
  destruct Hin as [->|Hin].
  - rewrite release_base_other by auto. rewrite release_latest_other.
    + simpl. unfold updq. rewrite !Nat.eqb_refl. auto.
    + intros z Hz E. assert (z = u) by (apply Hu; simpl; auto). subst. auto.
  - destruct (IH H2 Hin ltac:(intros; apply Hu; simpl; auto) (release w c a)) as [E1 E2]. rewrite E1, E2.
    assert (Hne : agent a <> agent u).
    { intros E. assert (a = u) by (apply Hu; simpl; auto). subst. auto. }
    simpl. unfold updq. destruct (Nat.eqb_spec (agent u) (agent a)); [congruence|auto].
Qed.

(** ** The service that all active agents take in between two levels *)
Lemma fill_tagbag c v x :
  fill (tagbag w c) v x
  == sumq (fun i => q (weight w i) * (Qmin (latest c i) x - Qmin (latest c i) v)) (agents w).
Proof.
  unfold fill, tagbag. induction (agents w) as [|a l IH]; cbn [flat_map sumq]; [reflexivity|].
  rewrite sumq_app, IH, (sumq_repeat (fun y => Qmin y x - Qmin y v)). reflexivity.
Qed.

(** What unit [u] takes in between the levels [v] and [x] when its base is [b]. *)
Definition piece (b : Q) (u : nat) (v x : Q) : Q :=
  uw u * ((Qmin (b + predicted w u / uw u) x - Qmin b x) - (Qmin (b + predicted w u / uw u) v - Qmin b v)).

(** Releasing units adds exactly their own pieces. *)
Lemma release_fill v x l : v <= x -> NoDup l -> NoDup (agents w) ->
  (forall u, In u l -> In (agent u) (agents w)) ->
  forall c, level c = v ->
  fill (tagbag w (releases l c)) v x
  == fill (tagbag w c) v x + sumq (fun u => piece (bases (releases l c) u) u v x) l.
Proof.
  intros Hvx. induction l as [|a l IH]; intros Nd Na Hl c Hc; [simpl; lra|]. inversion Nd; subst v; subst.
  cbn [fold_left sumq]. rewrite IH by (auto; intros; apply Hl; simpl; auto).
  rewrite release_base_other by auto.
  assert (E : fill (tagbag w (release w c a)) (level c) x
              == fill (tagbag w c) (level c) x + piece (bases (release w c a) a) a (level c) x); [|lra].
  rewrite !fill_tagbag. unfold release. cbn [level latest bases]. set (b := Qmax (level c) (latest c (agent a))).
  rewrite (sumq_updq (fun y => Qmin y x - Qmin y (level c)) (fun i => q (weight w i))); auto;
    [|apply Hl; simpl; auto].
  assert (Eb : updq (bases c) a b a = b) by (unfold updq; rewrite Nat.eqb_refl; reflexivity). rewrite Eb.
  rewrite !Qred_correct. unfold piece. fold (uw a).
  assert (G : Qmin b x - Qmin b (level c)
              == Qmin (latest c (agent a)) x - Qmin (latest c (agent a)) (level c)).
  { unfold b. destruct (Qlt_le_dec (level c) (latest c (agent a))) as [L|L].
    - rewrite (Q.max_r (level c)) by lra. reflexivity.
    - rewrite (Q.max_l (level c)) by lra.
      rewrite (Q.min_l (level c) x), (Q.min_l (level c) (level c)), (Q.min_l _ x), (Q.min_l _ (level c)) by lra.
      lra. }
  apply Qplus_comp; [reflexivity|]. apply Qmult_comp; [reflexivity|]. lra.
Qed.
End Release.
