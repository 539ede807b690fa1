(** * A server that reserves before it admits never exceeds its memory *)
Require Import List Arith Lia QArith Lqa Bool Sorting.Sorted.
From Justitia Require Import Sums Windows Demand Schedule Scheduler Admission LineFacts SchedulerInvariant.
From Justitia Require Import SchedulerSaturates TheoremA.
Import ListNotations.

Section MemorySafety.
Variable W : demand.
Variable tag : nat -> Q.
Variable admits : admission_test.
Local Notation inferences := (Demand.inferences W).
Local Notation duration := (Demand.duration W).
Local Notation footprint := (Demand.footprint W).
Local Notation reserved := (Schedule.reserved W).
Local Notation join := (Scheduler.join W tag).
Local Notation starts := (Scheduler.starts W tag admits).
Local Notation line := (Scheduler.line W tag admits).
Local Notation start_heads := (Scheduler.start_heads admits).

Hypothesis distinct : NoDup inferences.
Hypothesis positive : forall x, In x inferences -> (1 <= duration x)%nat.
Variable M : nat.
Hypothesis within : stays_within W admits M.

Lemma reserved_record_start st x t : In x inferences -> st x = None -> (1 <= duration x)%nat ->
  reserved (record_start st x t) t = (reserved st t + footprint x)%nat.
Proof.
  intros Hx Hn Hd. unfold Schedule.reserved.
  assert (G : forall l, NoDup l ->
    sumn (fun y => match record_start st x t y with
                   | Some s => if inwin s (duration y) t then footprint y else 0
                   | None => 0 end)%nat l
    = (sumn (fun y => match st y with
                      | Some s => if inwin s (duration y) t then footprint y else 0
                      | None => 0 end) l
       + (if in_dec Nat.eq_dec x l then footprint x else 0))%nat).
  { induction l as [|a l IH]; intros Nd; [reflexivity|]. inversion Nd; subst.
    cbn [sumn]. rewrite IH by auto. unfold Scheduler.record_start at 1.
    destruct (Nat.eqb_spec a x) as [->|Hne].
    - rewrite Hn. destruct (in_dec Nat.eq_dec x l); [tauto|].
      destruct (in_dec Nat.eq_dec x (x :: l)) as [|C]; [|simpl in C; tauto].
      unfold inwin. rewrite Nat.leb_refl. destruct (Nat.ltb_spec t (t + duration x)); simpl; lia.
    - destruct (in_dec Nat.eq_dec x l) as [i|i], (in_dec Nat.eq_dec x (a :: l)) as [i'|i']; simpl in i';
        try lia.
      + exfalso. tauto.
      + exfalso. destruct i'; [congruence|tauto]. }
  rewrite G by auto. destruct (in_dec Nat.eq_dec x inferences); [lia|tauto].
Qed.

Lemma start_heads_safe t : forall ln st st' rest,
  NoDup ln -> (forall x, In x ln -> In x inferences /\ st x = None) ->
  (reserved st t <= M)%nat -> start_heads t st ln = (st', rest) -> (reserved st' t <= M)%nat.
Proof.
  induction ln as [|a r IH]; simpl; intros st st' rest Nd Hw Hl H.
  - injection H as <- <-. auto.
  - inversion Nd; subst. destruct (admits st t a) eqn:Ef; [|injection H as <- <-; auto].
    apply within in Ef.
    destruct (Hw a (or_introl eq_refl)) as [Ha Hn].
    apply (IH (record_start st a t) st' rest); auto.
    + intros x Hx. destruct (Hw x (or_intror Hx)) as [H5 H6]. split; auto. unfold Scheduler.record_start.
      destruct (Nat.eqb_spec x a); [subst; tauto|auto].
    + rewrite reserved_record_start; auto.
Qed.

Theorem reserved_within t : (reserved (starts (S t)) t <= M)%nat.
Proof.
  assert (Step : forall t, (reserved (starts t) t <= M)%nat -> (reserved (starts (S t)) t <= M)%nat).
  { clear t. intros t H. pose proof (invariant_always W tag admits distinct t) as I.
    apply (start_heads_safe t (join t (line t)) (starts t) (starts (S t)) (line (S t))); auto.
    - apply join_NoDup; auto; [apply (line_distinct _ _ _ _ I)|]. intros x Hx.
      apply (line_arrived _ _ _ _ I x Hx).
    - intros x Hx. destruct (joined_facts W tag admits t x I Hx) as (H1 & _ & H2). auto.
    - rewrite <- state_S. unfold Scheduler.starts, Scheduler.line.
      destruct (state W tag admits (S t)); reflexivity. }
  induction t as [|t IH]; apply Step.
  - unfold Schedule.reserved. rewrite sumn_zero; [lia|]. intros. reflexivity.
  - apply Nat.le_trans with (reserved (starts (S t)) t); auto.
    unfold Schedule.reserved. apply sumn_le. intros x _. destruct (starts (S t) x) as [s|] eqn:E; auto.
    destruct (started_arrived _ _ _ _ (invariant_always W tag admits distinct (S t)) _ _ E) as [_ L].
    unfold inwin. destruct (Nat.leb_spec s (S t)), (Nat.ltb_spec (S t) (s + duration x)),
      (Nat.leb_spec s t), (Nat.ltb_spec t (s + duration x)); simpl; lia.
Qed.

End MemorySafety.

Theorem theorem_A_memory_safe_holds : theorem_A_memory_safe.
Proof.
  intros W D M tag admits Wf positive within T t Ht. pose proof (inferences_distinct W D Wf) as Nd.
  rewrite <- reserved_load by auto. apply reserved_within; auto.
Qed.

