(** * Memory under the test that reserves the peak *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums Windows LoopFacts.
From Justitia Require Export KVCost.
Import ListNotations.

Lemma inwin_true s d k : inwin s d k = true <-> (s <= k < s + d)%nat.
Proof. unfold inwin. rewrite andb_true_iff, Nat.leb_le, Nat.ltb_lt. tauto. Qed.

Lemma inwin_false s d k : inwin s d k = false <-> ~ (s <= k < s + d)%nat.
Proof. rewrite <- inwin_true. destruct (inwin s d k); split; congruence. Qed.

Section Memory.
Variable w : workload.
Variables p d : nat -> nat.
Notation held := (held w p d).
Notation reserved := (reserved w p d).

Lemma held_reserved st k : (held st k <= reserved st k)%nat.
Proof.
  apply sumn_le. intros x _. destruct (st x) as [s|]; [|lia]. destruct (inwin s (d x) k) eqn:E; [|lia].
  apply inwin_true in E. lia.
Qed.

(** What has started by step [k] only gives memory back. *)
Lemma reserved_shrinks st k n : (forall x s, st x = Some s -> (s <= k)%nat) -> (k <= n)%nat ->
  (reserved st n <= reserved st k)%nat.
Proof.
  intros H L. apply sumn_le. intros x _. destruct (st x) as [s|] eqn:E; [|lia]. specialize (H x s E).
  destruct (inwin s (d x) n) eqn:E1; [|lia]. apply inwin_true in E1.
  destruct (inwin s (d x) k) eqn:E2; [lia|]. apply inwin_false in E2. lia.
Qed.

Lemma reserved_start st k n x : NoDup (inferences w) ->
  (reserved (start_in k x st) n <= reserved st n + (p x + d x))%nat.
Proof.
  intros Nd. unfold KVCost.reserved, start_in. induction (inferences w) as [|a l IH]; [simpl; lia|].
  inversion Nd; subst. specialize (IH H2). cbn [sumn]. destruct (Nat.eqb_spec a x) as [->|]; [|lia].
  erewrite (sumn_ext _ (fun y => match st y with
                                 | Some s => if inwin s (d y) n then p y + d y else 0
                                 | None => 0 end)%nat l).
  - destruct (inwin k (d x) n); lia.
  - intros y Hy. destruct (Nat.eqb_spec y x); [subst; tauto|reflexivity].
Qed.

Section Reserve.
Variable M : nat.
Hypothesis distinct : NoDup (inferences w).
Notation starts := (starts w (kv_engine p d (reserve w p d M))).

Lemma starts_within T : forall n, (T <= S n)%nat -> (reserved (starts T) n <= M)%nat.
Proof.
  induction T; intros n L.
  - unfold KVCost.reserved. rewrite sumn_zero; [lia|]. reflexivity.
  - rewrite starts_S.
    apply (admit_preserves w _ (fun st => (forall x s, st x = Some s -> (s <= T)%nat) /\
                                          forall n, (T <= n)%nat -> (reserved st n <= M)%nat)).
    + clear - distinct. intros st x [H1 H2] _ _ F. apply Nat.leb_le in F. cbn [fits kv_engine reserve] in F. split.
      * unfold start_in. intros y s. destruct (y =? x)%nat; [intros E; injection E; lia|apply H1].
      * intros n L. pose proof (reserved_start st T n x distinct). pose proof (reserved_shrinks st T n H1 L). lia.
    + split; [|intros m Lm; apply IHT; lia]. intros x s E. apply starts_spec in E. lia.
    + lia.
Qed.

Lemma reserved_within T k : (reserved (starts T) k <= M)%nat.
Proof.
  destruct (Nat.le_gt_cases T (S k)) as [L|L]; [apply starts_within; auto|].
  apply Nat.le_trans with (reserved (starts (S k)) k); [|apply starts_within; auto].
  apply sumn_le. intros x _. destruct (starts T x) as [s|] eqn:E; [|lia].
  destruct (inwin s (d x) k) eqn:W; [|lia]. apply inwin_true in W as W'.
  apply starts_spec in E as (_ & _ & _ & _ & E & _).
  rewrite (starts_keep w _ (S s) (S k) x s) by (auto; lia). rewrite W. lia.
Qed.
End Reserve.
End Memory.
