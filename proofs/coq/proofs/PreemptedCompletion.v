(** * With preemption, a completion has no bound

    Inference 0 runs for two steps, of cost 1 and N + 1. After the first it gives way to agent 1, whose
    tag N + 1 is smaller than its own, N + 2, and whose N inferences run for a step each. So it ends N +
    2 steps after its start instead of 2. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts OrderFacts LevelByHand NegativeResults.
Import ListNotations.

Section Interrupted.
Variable N : nat.
Hypothesis N_pos : (1 <= N)%nat.

Definition interrupted_cost (x : nat) : Q := if (x =? 0)%nat then q (N + 2) else 1.
Definition interrupted_unit (x : nat) : nat := if (x =? 0)%nat then 0%nat else 1%nat.
Definition interrupted : workload := Workload (seq 0 (N + 1)) [0; 1]%nat [0;
  1]%nat interrupted_unit (fun u => u)
  (fun _ => 1%nat) interrupted_cost
  (fun u => if (u =? 0)%nat then q (N + 2) else q N) (fun u => u) (fun u => u).
Definition interrupted_service (x k : nat) : Q :=
  if (x =? k)%nat then 1 else if ((x =? 0) && (k =? N + 1))%nat then q (N + 1) else 0.
Definition interrupted_running (x k : nat) : bool := ((x =? k) || ((x =? 0) && (k =? N + 1)))%nat.
Definition interrupted_run : preemptive_run :=
  PreemptiveRun (Execution interrupted interrupted_service) interrupted_running.
Local Notation r := interrupted_run.
Local Notation f := (reference_of r).

Lemma in_interrupted x : In x (inferences r) <-> (x <= N)%nat.
Proof. change (inferences r) with (seq 0 (N + 1)). rewrite in_seq. lia. Qed.

Lemma service_nonneg_here x k : 0 <= interrupted_service x k.
Proof.
  unfold interrupted_service. destruct (x =? k)%nat; [lra|].
  destruct ((x =? 0) && (k =? N + 1))%nat; [apply q_nonneg|lra].
Qed.

Lemma got_first k : got r 0 k == if (k =? 0)%nat then 0 else if (k <=? N + 1)%nat then 1 else q (N + 2).
Proof.
  assert (E : q (N + 2) == q (N + 1) + 1) by (rewrite <- q_S; replace (S (N + 1)) with (N + 2)%nat by lia;
    reflexivity).
  induction k; [reflexivity|]. unfold got in *. rewrite upto_S, IHk. simpl service.
  unfold interrupted_service.
  destruct k as [|k]; [destruct (Nat.leb_spec 1 (N + 1)); [simpl; lra|lia]|].
  change (0 =? S k)%nat with false. change ((0 =? 0) && (S k =? N + 1))%nat with (S k =? N + 1)%nat.
  destruct (Nat.leb_spec (S k) (N + 1)), (Nat.leb_spec (S (S k)) (N + 1)), (Nat.eqb_spec (S k) (N + 1));
    try lia; cbn [Nat.eqb]; lra.
Qed.

Lemma got_other x k : (1 <= x)%nat -> got r x k == if (x <? k)%nat then 1 else 0.
Proof.
  intros Hx. induction k; [reflexivity|]. unfold got in *. rewrite upto_S, IHk. simpl service.
  unfold interrupted_service. destruct (Nat.eqb_spec x 0); [lia|]. simpl andb.
  destruct (Nat.ltb_spec x k), (Nat.ltb_spec x (S k)), (Nat.eqb_spec x k); try lia; lra.
Qed.

Lemma interrupted_form : well_formed r.
Proof.
  split; simpl.
  - repeat constructor; simpl; intuition discriminate.
  - repeat constructor; simpl; intuition discriminate.
  - intros x _. unfold interrupted_unit. destruct (x =? 0)%nat; auto.
  - auto.
  - lia.
  - intros u _. destruct (u =? 0)%nat; apply q_nonneg.
Qed.

Lemma interrupted_plain : plain r.
Proof. split; auto. Qed.

Lemma interrupted_nonneg k : 0 <= delivered r k.
Proof. apply sumq_nonneg. intros x _. apply service_nonneg_here. Qed.

Lemma interrupted_valid : valid_preemptive_run r.
Proof.
  split; [split|..].
  - intros x k _. apply service_nonneg_here.
  - intros x k _. destruct x as [|x].
    + rewrite got_first. change (cost r 0) with (q (N + 2)).
      assert (L : q 1 <= q (N + 2)) by (apply q_le; lia). rewrite q_1 in L.
      destruct (k =? 0)%nat, (k <=? N + 1)%nat; lra.
    + rewrite got_other by lia. change (cost r (S x)) with 1. destruct (S x <? k)%nat; lra.
  - intros x k _ H. simpl in *. unfold interrupted_running, interrupted_service in *.
    apply orb_false_iff in H as [-> ->]. reflexivity.
  - intros x k _ H. simpl in *. unfold interrupted_running, interrupted_unit in *.
    destruct (Nat.eqb_spec x 0); [lia|]. destruct (Nat.eqb_spec x k); [lia|discriminate].
Qed.

(** ** The tags *)
Lemma first_delivers : delivered r 0 == 1.
Proof.
  unfold delivered. change (inferences r) with (seq 0 (N + 1)).
  rewrite (sumq_ext _ (fun x => if (x =? 0)%nat then 1 else 0)).
  - rewrite sum_one. simpl. destruct (Nat.ltb_spec 0 (N + 1)); [reflexivity|lia].
  - intros x _. simpl. unfold interrupted_service. destruct (x =? 0)%nat; [reflexivity|].
    destruct (Nat.eqb_spec 0 (N + 1)); [lia|reflexivity].
Qed.

Lemma first_tag : tag r f 0 == q (N + 2).
Proof.
  rewrite (tag_by_hand r interrupted_form interrupted_plain interrupted_nonneg) by (simpl; auto). simpl. lra.
Qed.

Lemma level_one : V f 1 == 1.
Proof.
  rewrite (level_by_hand r interrupted_form interrupted_plain interrupted_nonneg 0 [0]%nat).
  - rewrite first_delivers. change (q (length [0]%nat)) with 1. change (V f 0) with 0. field.
  - repeat constructor; simpl; tauto.
  - discriminate.
  - intros u. change (V f 0) with 0. split.
    + intros [<-|[]]. split; [simpl; auto|]. split; [apply le_n|]. rewrite first_tag, <- q_0. apply q_lt. lia.
    + intros ([<-|[<-|[]]] & R & _); simpl in R |- *; auto. lia.
  - intros u [<-|[]]. rewrite first_tag, first_delivers. change (q (length [0]%nat)) with 1.
    change (V f 0) with 0.
    assert (L : q 1 <= q (N + 2)) by (apply q_le; lia). rewrite q_1 in L.
    setoid_replace (0 + 1 / 1) with 1 by field. lra.
Qed.

Lemma second_tag : tag r f 1 == q (N + 1).
Proof.
  rewrite (tag_by_hand r interrupted_form interrupted_plain interrupted_nonneg) by (simpl; auto).
  change (ready r 1) with 1%nat. change (predicted r 1) with (q N). rewrite level_one, q_plus, q_1. lra.
Qed.

(** ** The order *)
Lemma running_first k : running r 0 k = true <-> (k = 0 \/ k = N + 1)%nat.
Proof.
  simpl. unfold interrupted_running. rewrite orb_true_iff, andb_true_iff, !Nat.eqb_eq. lia.
Qed.

Lemma running_other x k : (1 <= x)%nat -> running r x k = true <-> k = x.
Proof.
  intros Hx. simpl. unfold interrupted_running. rewrite orb_true_iff, andb_true_iff, !Nat.eqb_eq. lia.
Qed.

Lemma interrupted_order : enters_in_order r (tag r f).
Proof.
  intros x y k Hx Hy [E _] (O1 & _ & k' & O3 & O4). apply in_interrupted in Hy.
  destruct (before r (tag r f) (unit_of r y) (unit_of r x)) eqn:B; auto. exfalso. apply before_true in B.
  assert (Same : forall u, tag r f u < tag r f u \/ tag r f u == tag r f u /\ (rank r u < rank r u)%nat ->
    False)
    by (intros u [H|[_ H]]; [lra|lia]).
  destruct x as [|x], y as [|y]; try (apply (Same _ B)).
  - apply running_first in E. apply (running_other (S y)) in O4; [|lia]. change (1 <= k)%nat in O1. lia.
  - change (unit_of r 0) with 0%nat in B. change (unit_of r (S x)) with 1%nat in B.
    rewrite first_tag, second_tag in B. assert (L : q (N + 1) < q (N + 2)) by (apply q_lt; lia).
    destruct B as [B|[B _]]; lra.
Qed.

Lemma runs_two_steps : runs_for r 0 2.
Proof.
  exists (N + 2)%nat. split.
  - replace (N + 2)%nat with (1 + N + 1)%nat by lia. rewrite !seq_app, !filter_app.
    assert (E : filter (running r 0) (seq (0 + 1) N) = []).
    { assert (H : forall l, (forall k, In k l -> (1 <= k <= N)%nat) -> filter (running r 0) l = []).
      - induction l as [|a l IH]; intros H; [reflexivity|]. cbn [filter].
        destruct (running r 0 a) eqn:E; [|apply IH; intros; apply H; simpl; auto].
        apply running_first in E. specialize (H a (or_introl eq_refl)). lia.
      - apply H. intros k Hk. apply in_seq in Hk. lia. }
    rewrite E. assert (E1 : running r 0 (N + 1) = true) by (apply running_first; auto).
    cbn [seq filter]. replace (0 + (1 + N))%nat with (N + 1)%nat by lia. rewrite E1. reflexivity.
  - intros k Hk. destruct (running r 0 k) eqn:E; auto. apply running_first in E. lia.
Qed.

Lemma not_done k : (k <= N + 1)%nat -> ~ done r 0 k.
Proof.
  intros Hk. unfold done. rewrite got_first. change (cost r 0) with (q (N + 2)).
  assert (L : q 2 <= q (N + 2)) by (apply q_le; lia). change (q 2) with 2 in L.
  destruct (k =? 0)%nat; [lra|]. destruct (Nat.leb_spec k (N + 1)); [lra|lia].
Qed.
End Interrupted.

Theorem completion_is_unbounded_holds : completion_is_unbounded.
Proof.
  intros K. set (N := (K + 1)%nat). assert (HN : (1 <= N)%nat) by (unfold N; lia).
  exists (interrupted_run N), 0%nat, 0%nat, 2%nat.
  split; [apply interrupted_form; auto|]. split; [apply interrupted_valid; auto|].
  split; [apply interrupted_order; auto|]. split; [apply in_interrupted; lia|].
  split; [split; [reflexivity|intros; lia]|]. split; [apply runs_two_steps; auto|].
  apply not_done; auto. unfold N. lia.
Qed.
