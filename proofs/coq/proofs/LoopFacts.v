(** * The closed loop over time

    The past does not change: later starts alter neither earlier service nor tags already given. *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums ServiceFacts ClockFacts.
From Justitia Require Export AdmitFacts.
Import ListNotations.

Section Loop.
Variable w : workload.
Variable g : engine.
Notation starts := (starts w g).
Notation execution_of := (execution_of w g).
Notation clock_in k := (fst (loop w g k)).

(** The clock by whose tags step [k] starts inferences. *)
Definition clock_deciding k : clock := release_all w k (clock_in k).

Lemma loop_S k : loop w g (S k) =
  (serve w (delivered (execution_of (starts (S k))) k) (clock_deciding k), starts (S k)).
Proof.
  unfold ClosedLoop.starts, clock_deciding. cbn [loop]. unfold loop_step. destruct (loop w g k). reflexivity.
Qed.

Lemma starts_S k : starts (S k) =
  admit w g (length (inferences w)) k (before w (clock_tag w (clock_deciding k))) (starts k).
Proof.
  unfold ClosedLoop.starts, clock_deciding. cbn [loop]. unfold loop_step. destruct (loop w g k). reflexivity.
Qed.

Lemma starts_keep k T x s : (k <= T)%nat -> starts k x = Some s -> starts T x = Some s.
Proof.
  induction T; intros L H; [replace 0%nat with k by lia; auto|].
  destruct (Nat.eq_dec k (S T)) as [<-|]; auto. rewrite starts_S. apply admit_keeps, IHT; auto. lia.
Qed.

(** Everything about a start: when it was decided, and the order at that moment. *)
Lemma starts_spec T : forall x s, starts T x = Some s ->
  (s < T)%nat /\ In x (inferences w) /\ (ready w (unit_of w x) <= s)%nat /\
  starts s x = None /\ starts (S s) x = Some s /\
  forall y, In y (inferences w) -> (ready w (unit_of w y) <= s)%nat -> starts (S s) y = None ->
    before w (clock_tag w (clock_deciding s)) (unit_of w y) (unit_of w x) = false.
Proof.
  induction T; intros x s H; [discriminate|]. destruct (starts T x) as [s'|] eqn:E.
  - assert (s' = s) by (pose proof (starts_keep T (S T) x s' ltac:(lia) E); congruence). subst.
    destruct (IHT x s E) as (A & B). split; [lia|auto].
  - pose proof H as H'. rewrite starts_S in H. apply admit_new in H as (-> & H2 & H3 & H4); auto.
    rewrite <- starts_S in H4. repeat split; auto.
Qed.

Lemma starts_none k T x : (k <= T)%nat -> starts k x = None ->
  starts T x = None \/ exists s, starts T x = Some s /\ (k <= s)%nat.
Proof.
  intros L H. destruct (starts T x) as [s|] eqn:E; auto. right. exists s. split; auto.
  destruct (starts_spec T x s E) as (_ & _ & _ & _ & H5 & _).
  destruct (Nat.le_gt_cases k s) as [|L2]; auto. rewrite (starts_keep (S s) k x s) in H by (auto; lia). discriminate.
Qed.

Lemma delivered_past k T n : (k <= T)%nat -> (n < k)%nat ->
  delivered (execution_of (starts k)) n = delivered (execution_of (starts T)) n.
Proof.
  intros L Hn. unfold delivered. cbn [service load ClosedLoop.execution_of].
  assert (Ext : forall (a b : nat -> Q) l, (forall x, a x = b x) -> sumq a l = sumq b l).
  { intros a b l E. induction l as [|x l IH]; simpl; auto. rewrite E, IH. reflexivity. }
  apply Ext. intros x. unfold service_of.
  destruct (starts k x) as [s|] eqn:E; [rewrite (starts_keep k T x s L E); reflexivity|].
  destruct (starts_none k T x L E) as [->|(s & -> & Hs)]; auto. destruct (Nat.leb_spec s n); [lia|auto].
Qed.

Lemma clock_at_past s1 s2 k : (forall n, (n < k)%nat -> s1 n = s2 n) -> clock_at w s1 k = clock_at w s2 k.
Proof.
  induction k; intros H; auto. simpl. rewrite IHk by auto. rewrite (H k) by lia. reflexivity.
Qed.

(** The clock in the loop is the clock driven by what the whole run delivers. *)
Lemma loop_clock T k : (k <= T)%nat -> clock_in k = clock_at w (delivered (execution_of (starts T))) k.
Proof.
  induction k; intros L; [reflexivity|]. rewrite loop_S. cbn [fst clock_at]. unfold clock_deciding.
  rewrite IHk by lia. rewrite (delivered_past (S k) T) by lia. reflexivity.
Qed.

Lemma deciding_tag T k u : (ready w u <= k <= T)%nat ->
  clock_tag w (clock_deciding k) u = tag w (reference_of (execution_of (starts T))) u.
Proof.
  intros L. unfold clock_deciding. rewrite (loop_clock T) by lia. unfold clock_tag, tag, reference_of.
  pose proof (bases_stay w (delivered (execution_of (starts T))) u (S k) ltac:(lia)) as E.
  cbn [load execution_of] in *. rewrite <- E. reflexivity.
Qed.

Lemma got_of st x n : got (execution_of st) x n ==
  match st x with Some s => upto (work g x) (n - s) | None => 0 end.
Proof.
  unfold got. cbn [service ClosedLoop.execution_of]. destruct (st x) as [s|] eqn:E.
  - induction n; [reflexivity|]. rewrite upto_S, IHn. unfold service_of. rewrite E.
    destruct (Nat.leb_spec s n).
    + replace (S n - s)%nat with (S (n - s)) by lia. rewrite upto_S. reflexivity.
    + replace (S n - s)%nat with 0%nat by lia. replace (n - s)%nat with 0%nat by lia. lra.
  - apply upto_zero. intros k _. unfold service_of. rewrite E. reflexivity.
Qed.
End Loop.
