(** * Busy periods

    For a tag [c] and a step [s] there is a first step [t0 <= s] from which on, up to [s], something of
    tag at most [c] waits all the time. In the step before [t0], nothing of such a tag waits. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums Windows Demand Schedule.
Import ListNotations.

(** Of a decidable property: the beginning of the run of steps that ends before [s]. *)
Lemma run_beginning (P : nat -> Prop) (P_dec : forall t, P t \/ ~ P t) s :
  exists t0, (t0 <= s)%nat /\ (forall t, (t0 <= t < s)%nat -> P t) /\ (forall t, t0 = S t -> ~ P t).
Proof.
  induction s.
  - exists 0%nat. repeat split; intros; lia.
  - destruct (P_dec s) as [Hp|Hn].
    + destruct IHs as (t0 & H1 & H2 & H3). exists t0. repeat split; try lia; auto.
      intros t Ht. destruct (Nat.eq_dec t s); [subst; auto|]. apply H2. lia.
    + exists (S s). repeat split; try lia. intros t E. injection E as <-. exact Hn.
Qed.

Section BusyPeriod.
Variable W : demand.
Variable start : nat -> nat.
Variable tag : nat -> Q.

Definition something_waits (c : Q) (t : nat) : Prop :=
  exists z, In z (inferences W) /\ waiting W start z t /\ tag (owner W z) <= c.

Lemma waiting_dec z t : waiting W start z t \/ ~ waiting W start z t.
Proof. unfold waiting. lia. Qed.

Lemma something_waits_dec c t : something_waits c t \/ ~ something_waits c t.
Proof.
  unfold something_waits. induction (inferences W) as [|a l IH]; [right; intros (z & [] & _)|].
  destruct IH as [(z & Hz & H)|N]; [left; exists z; simpl; auto|].
  destruct (waiting_dec a t) as [H|H].
  - destruct (Qlt_le_dec c (tag (owner W a))) as [L|L].
    + right. intros (z & [<-|Hz] & H1 & H2); [lra|]. apply N. exists z. auto.
    + left. exists a. simpl. auto.
  - right. intros (z & [<-|Hz] & H1 & H2); [tauto|]. apply N. exists z. auto.
Qed.

Lemma busy_period c s : exists t0, (t0 <= s)%nat /\
  (forall t, (t0 <= t < s)%nat -> something_waits c t) /\
  (forall x, In x (inferences W) -> tag (owner W x) <= c -> (t0 <= start x)%nat ->
    (t0 <= arrival W (owner W x))%nat).
Proof.
  destruct (run_beginning (something_waits c) (something_waits_dec c) s) as (t0 & H1 & H2 & H3).
  exists t0. repeat split; auto. intros x Hx Hc Hs.
  destruct (Nat.le_gt_cases t0 (arrival W (owner W x))) as [|L]; auto. exfalso.
  destruct t0 as [|u]; [lia|]. apply (H3 u eq_refl). exists x. unfold waiting. repeat split; auto; lia.
Qed.
End BusyPeriod.

