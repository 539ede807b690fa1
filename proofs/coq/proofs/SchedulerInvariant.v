(** * What is true of the scheduler's state at the beginning of every step

    Everyone who has arrived either has started or stands in the line, once. *)
Require Import List Arith Lia QArith Lqa Bool Sorting.Sorted.
From Justitia Require Import Sums Windows Demand Schedule Scheduler LineFacts.
Import ListNotations.

Section SchedulerInvariant.
Variable W : demand.
Variable tag : nat -> Q.
Variable admits : admission_test.
Local Notation inferences := (Demand.inferences W).
Local Notation owner := (Demand.owner W).
Local Notation arrival := (Demand.arrival W).
Local Notation join := (Scheduler.join W tag).
Local Notation starts := (Scheduler.starts W tag admits).
Local Notation line := (Scheduler.line W tag admits).
Local Notation state := (Scheduler.state W tag admits).
Local Notation start_heads := (Scheduler.start_heads admits).

Lemma start_heads_spec t : forall ln st st' rest, start_heads t st ln = (st', rest) ->
  exists now, ln = now ++ rest /\
    (forall x, In x now -> st' x = Some t) /\
    (forall x, ~ In x now -> st' x = st x) /\
    (forall h r, rest = h :: r -> admits st' t h = false).
Proof.
  induction ln as [|a r IH]; simpl; intros st st' rest H.
  - injection H as <- <-. exists []. simpl. repeat split; auto; try tauto. discriminate.
  - destruct (admits st t a) eqn:Ef.
    + destruct (IH _ _ _ H) as (now & E & A1 & A2 & A3). exists (a :: now). simpl.
      rewrite E. repeat split; auto.
      * intros x [<-|Hx]; auto. destruct (in_dec Nat.eq_dec a now); auto.
        rewrite A2 by auto. unfold Scheduler.record_start. rewrite Nat.eqb_refl. reflexivity.
      * intros x Hx. rewrite A2 by tauto. unfold Scheduler.record_start.
        destruct (Nat.eqb_spec x a); [subst; tauto|reflexivity].
    + injection H as <- <-. exists []. simpl. repeat split; auto; try tauto.
      intros h r0 E. injection E as <- <-. auto.
Qed.

Lemma state_S t : state (S t) = start_heads t (starts t) (join t (line t)).
Proof. unfold Scheduler.starts, Scheduler.line. simpl. destruct (state t). reflexivity. Qed.

(** In step [t] a first part of the line starts; the head of what is left, if any, was refused. *)
Lemma step_facts t : exists now,
  join t (line t) = now ++ line (S t) /\
  (forall x, In x now -> starts (S t) x = Some t) /\
  (forall x, ~ In x now -> starts (S t) x = starts t x) /\
  (forall h r, line (S t) = h :: r -> admits (starts (S t)) t h = false).
Proof.
  apply start_heads_spec. rewrite <- state_S. unfold Scheduler.starts, Scheduler.line.
  destruct (state (S t)); reflexivity.
Qed.

Record invariant (t : nat) : Prop := {
  line_sorted : sorted W tag (line t);
  line_distinct : NoDup (line t);
  line_arrived : forall x, In x (line t) -> In x inferences /\ (arrival (owner x) < t)%nat;
  line_not_started : forall x, In x (line t) -> starts t x = None;
  started_arrived : forall x s, starts t x = Some s -> In x inferences /\ (arrival (owner x) <= s < t)%nat;
  nobody_lost : forall x, In x inferences -> (arrival (owner x) < t)%nat -> starts t x = None -> In x (line t)
}.

Hypothesis distinct : NoDup inferences.

Lemma joined_facts t x : invariant t -> In x (join t (line t)) ->
  In x inferences /\ (arrival (owner x) < S t)%nat /\ starts t x = None.
Proof.
  intros I Hx. apply join_In in Hx as [[H1 H2]|H].
  - repeat split; auto; [lia|]. destruct (starts t x) as [s|] eqn:E; auto.
    destruct (started_arrived t I _ _ E). lia.
  - destruct (line_arrived t I x H). repeat split; auto. apply line_not_started; auto.
Qed.

Lemma NoDup_app_split (l1 l2 : list nat) : NoDup (l1 ++ l2) -> NoDup l2 /\ forall x, In x l2 -> ~ In x l1.
Proof.
  induction l1 as [|a l1 IH]; simpl; intros H; [auto|]. inversion H; subst. destruct (IH H3) as [N1 N2].
  split; auto. intros x Hx [->|C]; [apply H2, in_or_app; auto|apply (N2 x); auto].
Qed.

Theorem invariant_always t : invariant t.
Proof.
  induction t as [|t I].
  - unfold Scheduler.starts, Scheduler.line. split; simpl; try constructor; try tauto; try discriminate.
    intros; lia.
  - destruct (step_facts t) as (now & E & A1 & A2 & _).
    assert (J : forall x, In x now \/ In x (line (S t)) -> In x (join t (line t))).
    { intros x H. rewrite E. apply in_or_app. auto. }
    destruct (NoDup_app_split now (line (S t))) as [N1 N2].
    { rewrite <- E. apply join_NoDup; auto; [apply line_distinct; auto|]. intros x Hx.
      apply line_arrived; auto. }
    split.
    + apply (sorted_app W tag now). rewrite <- E. apply join_sorted, line_sorted. auto.
    + exact N1.
    + intros x Hx. destruct (joined_facts t x I) as (H1 & H2 & _); auto.
    + intros x Hx. rewrite A2 by auto. apply (joined_facts t x I). auto.
    + intros x s H. destruct (in_dec Nat.eq_dec x now) as [Hn|Hn].
      * rewrite A1 in H by auto. injection H as <-. destruct (joined_facts t x I) as (H1 & H2 & _); auto.
        split; auto. lia.
      * rewrite A2 in H by auto. destruct (started_arrived t I _ _ H). split; auto. lia.
    + intros x Hx Ha Hs. destruct (in_dec Nat.eq_dec x now) as [Hn|Hn]; [rewrite A1 in Hs by auto;
        discriminate|].
      rewrite A2 in Hs by auto.
      assert (Hq : In x (join t (line t))).
      { apply join_In. destruct (Nat.eq_dec (arrival (owner x)) t); [left; auto|right].
        apply nobody_lost; auto. lia. }
      rewrite E in Hq. apply in_app_or in Hq as [Hq|Hq]; tauto.
Qed.

(** A start is never changed, and is known as soon as its step is over. *)
Lemma starts_kept t x s : starts t x = Some s -> starts (S t) x = Some s.
Proof.
  intros H. pose proof (invariant_always t) as I. destruct (step_facts t) as (now & E & A1 & A2 & _).
  rewrite A2; auto. intros Hn. destruct (joined_facts t x I) as (_ & _ & N); [|congruence].
  rewrite E. apply in_or_app. auto.
Qed.
Lemma starts_later t t' x s : (t <= t')%nat -> starts t x = Some s -> starts t' x = Some s.
Proof.
  induction t'; intros L H; [replace 0%nat with t by lia; auto|].
  destruct (Nat.eq_dec t (S t')) as [<-|]; auto. apply starts_kept, IHt'; auto. lia.
Qed.
Lemma starts_earlier t t' x s : starts t' x = Some s -> (s < t)%nat -> starts t x = Some s.
Proof.
  intros H L. destruct (Nat.le_gt_cases t' t); [apply (starts_later t'); auto|].
  destruct (starts t x) as [s'|] eqn:E.
  - rewrite (starts_later t t' x s') in H by (auto; lia). auto.
  - (* not started before t, yet started at s < t: go down from t' *)
    exfalso. revert H. induction t' as [|u IH]; [lia|]. intros H.
    destruct (step_facts u) as (now & _ & A1 & A2 & _).
    destruct (in_dec Nat.eq_dec x now) as [Ha|Ha].
    + rewrite A1 in H by auto. injection H as <-. lia.
    + rewrite A2 in H by auto. destruct (Nat.eq_dec u t) as [->|]; [congruence|]. apply IH; auto. lia.
Qed.

End SchedulerInvariant.

