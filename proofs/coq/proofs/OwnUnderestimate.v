(** * An agent's own underestimate is needed

    One agent, predicted to cost 1, brings two inferences. The first really costs K + 2 and runs in step
    0; the second, of cost 1, starts in step 1. By then K + 2 has been delivered; the reference was
    through with the agent when it had handed out 1. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts OrderFacts NegativeResults.
Import ListNotations.

Section Surprise.
Variable K : nat.

Definition surprise_cost (x : nat) : Q := if (x =? 0)%nat then q (K + 2) else 1.
Definition surprise : workload := Workload [0; 1]%nat [0]%nat [0]%nat (fun _ => 0%nat) (fun u => u)
  (fun _ => 1%nat) surprise_cost (fun _ => 1) (fun _ => 0%nat) (fun u => u).
Definition surprise_run : run :=
  Run (Execution surprise (fun x k => if (k =? x)%nat then surprise_cost x else 0)) (fun x => Some x).
Local Notation r := surprise_run.
Local Notation f := (reference_of r).

Lemma large : 2 <= q (K + 2).
Proof. change 2 with (q 2). apply q_le. lia. Qed.

Lemma surprise_cost_nonneg x : 0 <= surprise_cost x.
Proof. unfold surprise_cost. destruct (x =? 0)%nat; [apply q_nonneg|discriminate]. Qed.

Lemma surprise_got x n : got r x n == if (x <? n)%nat then surprise_cost x else 0.
Proof.
  induction n; [reflexivity|]. unfold got in *. rewrite upto_S, IHn. simpl.
  destruct (Nat.ltb_spec x n), (Nat.ltb_spec x (S n)), (Nat.eqb_spec n x); try lia; lra.
Qed.

Lemma surprise_form : well_formed r.
Proof.
  split; simpl; try (repeat constructor; simpl; tauto); auto; intros; try lia. discriminate.
Qed.

Lemma surprise_valid : valid_run r.
Proof.
  split; [split|..].
  - intros x k _. simpl. destruct (k =? x)%nat; [apply surprise_cost_nonneg|lra].
  - intros x n _. rewrite surprise_got. pose proof (surprise_cost_nonneg x). simpl.
    destruct (x <? n)%nat; lra.
  - intros x k _ H. unfold started_before in H. simpl in H. apply Nat.ltb_ge in H. simpl.
    destruct (Nat.eqb_spec k x); [lia|reflexivity].
  - intros x s _ _. simpl. lia.
Qed.

(** The level goes from 0 to the only tag, 1, in step 0. *)
Lemma surprise_delivered : delivered r 0 == q (K + 2).
Proof. unfold delivered. simpl. unfold surprise_cost. simpl. lra. Qed.

Lemma surprise_level : V f 1 == 1.
Proof.
  unfold reference_of. change (V (clock_reference r (delivered r)) 1)
    with (advance 1 [Qred (Qmax 0 0 + 1 / unit_weight r 0)] 0 (delivered r 0)).
  change (Qred (Qmax 0 0 + 1 / unit_weight r 0)) with 1. cbn [advance filter].
  change (qltb 0 1) with true. cbn [qmin length].
  destruct (Qle_bool (delivered r 0) (q 1 * (1 - 0))) eqn:E; [|reflexivity].
  apply Qle_bool_iff in E. rewrite surprise_delivered, q_1 in E. pose proof large. lra.
Qed.

Lemma surprise_tag : tag r f 0 == 1.
Proof. reflexivity. Qed.

Lemma surprise_compared : comparison r f 1 1 0 0.
Proof.
  split; simpl; auto.
  - split; [lia|]. split; [|discriminate]. intros k _ (z & _ & _ & B).
    rewrite (before_irrefl r (tag r f)) in B. discriminate.
  - split; [simpl; lia|]. rewrite surprise_level, surprise_tag. split; [discriminate|lra].
Qed.

Lemma surprise_G : G r f 0 0 == 1.
Proof. reflexivity. Qed.

Lemma surprise_exceeds : G r f 0 0 + inflight r 0 - cost r 1 + underestimate_of_others r (tag r f) 0 0 1 + q K
  < total r 1.
Proof.
  assert (I : inflight r 0 == 0) by reflexivity.
  assert (U : underestimate_of_others r (tag r f) 0 0 1 == 0).
  { unfold underestimate_of_others. change (units r) with [0%nat]. cbn [sumq].
    change (negb (0 =? 0)%nat) with false. rewrite andb_false_r. reflexivity. }
  assert (C : cost r 1 == 1) by reflexivity.
  assert (T : total r 1 == q (K + 2)) by (unfold total; rewrite upto_S, surprise_delivered; unfold upto;
    simpl; lra).
  rewrite surprise_G, I, U, C, T, q_plus. change (q 2) with 2. lra.
Qed.
End Surprise.

Theorem own_underestimate_is_needed_holds : own_underestimate_is_needed.
Proof.
  intros K. exists (surprise_run K), 1%nat, 1%nat, 0%nat, 0%nat. cbv zeta.
  split; [apply surprise_form|]. split; [apply surprise_valid|]. split.
  - intros x y s _ _ _ _. set (r := surprise_run K). apply (before_irrefl r (tag r (reference_of r))).
  - split; [apply surprise_compared|apply surprise_exceeds].
Qed.
