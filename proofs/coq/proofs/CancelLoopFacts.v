(** * The loop with leaves over time

    What is decided stays decided, and the clock in the loop is the settling clock driven by what the whole run
    delivers. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts SettlingFacts LoopFacts.
From Justitia Require Export CancelLoop AdmitFacts MarkFacts.
Import ListNotations.

Section Loop.
Variable w : workload.
Variable g : engine.
Variable rule : leave_rule.
Variable forgets : bool.
Notation loop k := (cancel_loop w g rule forgets k).
Notation starts k := (c_starts (cancel_loop w g rule forgets k)).
Notation left_in k := (c_left (cancel_loop w g rule forgets k)).
Notation table k := (c_table (cancel_loop w g rule forgets k)).

(** ** Leaves *)
Definition going (k : nat) : list nat := filter (goes w rule (loop k) k) (units w).

Lemma left_S k : left_in (S k) = mark_all k (going k) (left_in k).
Proof. reflexivity. Qed.

Lemma going_spec k u : In u (going k) -> In u (units w) /\ left_in k u = None /\ (ready w u <= k)%nat.
Proof.
  unfold going. rewrite filter_In. unfold goes, marked. intros [H1 H2]. split; auto.
  destruct (left_in k u); [discriminate|]. split; auto.
  apply andb_prop in H2 as [H2 _]. apply Nat.leb_le. auto.
Qed.

Lemma left_keeps k T u l : (k <= T)%nat -> left_in k u = Some l -> left_in T u = Some l.
Proof.
  intros L H. induction T; [replace k with 0%nat in H by lia; auto|].
  destruct (Nat.eq_dec k (S T)) as [<-|]; auto. rewrite left_S.
  destruct (in_dec Nat.eq_dec u (going T)) as [I|I]; [|rewrite mark_all_other by auto; apply IHT; lia].
  apply going_spec in I as (_ & I & _). rewrite IHT in I by lia. discriminate.
Qed.

Lemma left_spec T u l : left_in T u = Some l -> (l < T)%nat /\ In u (going l) /\ left_in (S l) u = Some l.
Proof.
  induction T; intros H; [discriminate|]. rewrite left_S in H.
  destruct (in_dec Nat.eq_dec u (going T)) as [I|I].
  - rewrite mark_all_in in H by auto. injection H as <-. repeat split; auto. rewrite left_S. apply mark_all_in. auto.
  - rewrite mark_all_other in H by auto. destruct (IHT H) as (A & B). split; [lia|auto].
Qed.

(** Who has left by step [k] is known in step [k]. *)
Lemma has_left_now T u k : (k < T)%nat -> has_left (left_in (S k)) u k = has_left (left_in T) u k.
Proof.
  intros L. unfold has_left. destruct (left_in (S k) u) as [l|] eqn:E.
  - rewrite (left_keeps (S k) T u l) by (auto; lia). reflexivity.
  - destruct (left_in T u) as [l|] eqn:E2; auto. apply left_spec in E2 as (A & B & C).
    symmetry. apply Nat.leb_gt. destruct (Nat.le_gt_cases l k) as [D|]; auto.
    rewrite (left_keeps (S l) (S k) u l) in E by (auto; lia). discriminate.
Qed.

Lemma has_left_marked u k : has_left (left_in (S k)) u k = marked (left_in (S k)) u.
Proof.
  unfold has_left, marked. destruct (left_in (S k) u) as [l|] eqn:E; auto. apply left_spec in E as (A & _).
  apply Nat.leb_le. lia.
Qed.

Lemma leaves_in_now T u k : (k < T)%nat -> leaves_in (left_in T) u k = leaves_in (left_in (S k)) u k.
Proof.
  intros L. unfold leaves_in. destruct (left_in (S k) u) as [l|] eqn:E1.
  - rewrite (left_keeps (S k) T u l) by (auto; lia). auto.
  - destruct (left_in T u) as [l|] eqn:E2; auto. apply Nat.eqb_neq. intros ->.
    apply left_spec in E2 as (_ & _ & E2). congruence.
Qed.

(** ** Starts *)
Lemma cstarts_S k : starts (S k) =
  admit (with_ready w (present w (left_in (S k)) k)) (engine_without w g (left_in (S k))) (length (inferences w)) k
        (before w (tag_of (table (S k)))) (starts k).
Proof. reflexivity. Qed.

Lemma cstarts_keep k T x s : (k <= T)%nat -> starts k x = Some s -> starts T x = Some s.
Proof.
  induction T; intros L H; [replace 0%nat with k by lia; auto|].
  destruct (Nat.eq_dec k (S T)) as [<-|]; auto. rewrite cstarts_S. apply admit_keeps, IHT; auto. lia.
Qed.

Lemma cstarts_spec T : forall x s, starts T x = Some s ->
  (s < T)%nat /\ In x (inferences w) /\ (ready w (unit_of w x) <= s)%nat /\
  left_in (S s) (unit_of w x) = None /\ starts (S s) x = Some s /\
  forall y, In y (inferences w) -> (ready w (unit_of w y) <= s)%nat ->
    left_in (S s) (unit_of w y) = None -> starts (S s) y = None ->
    before w (tag_of (table (S s))) (unit_of w y) (unit_of w x) = false.
Proof.
  induction T; intros x s H; [discriminate|]. destruct (starts T x) as [s'|] eqn:E.
  - assert (s' = s) by (pose proof (cstarts_keep T (S T) x s' ltac:(lia) E); congruence). subst.
    destruct (IHT x s E) as (A & B). split; [lia|auto].
  - pose proof H as H'. rewrite cstarts_S in H.
    apply (admit_new (with_ready w (present w (left_in (S T)) T))) in H as (-> & H2 & H3 & H4); auto.
    rewrite <- cstarts_S in H4. cbn [ready with_ready unit_of inferences] in H2, H3, H4. unfold present, marked in H3.
    destruct (left_in (S T) (unit_of w x)) eqn:Lx; [lia|]. repeat split; auto.
    intros y Hy Hr Ly Hn. apply (H4 y Hy); auto. unfold present, marked. rewrite Ly. auto.
Qed.

Lemma cstarts_none k T x : (k <= T)%nat -> starts k x = None ->
  starts T x = None \/ exists s, starts T x = Some s /\ (k <= s)%nat.
Proof.
  intros L H. destruct (starts T x) as [s|] eqn:E; auto. right. exists s. split; auto.
  destruct (cstarts_spec T x s E) as (_ & _ & _ & _ & H5 & _).
  destruct (Nat.le_gt_cases k s) as [|L2]; auto. rewrite (cstarts_keep (S s) k x s) in H by (auto; lia). discriminate.
Qed.

(** ** The whole run, seen from one of its steps *)
Section Run.
Variable T : nat.
Notation leave := (cancel_leave w g rule forgets T).
Notation served := (cut_service w g leave (cancel_starts w g rule forgets T)).
Notation r := (cancel_run w g rule forgets T).

Lemma service_past k k' x n : (n < k <= T)%nat -> (n < k' <= T)%nat ->
  cut_service w g (left_in k') (starts k) x n = served x n.
Proof.
  intros L L'. unfold cut_service, cancel_starts, cancel_leave.
  assert (E : has_left (left_in k') (unit_of w x) n = has_left (left_in T) (unit_of w x) n).
  { rewrite <- (has_left_now T) by lia. symmetry. apply has_left_now. lia. }
  rewrite E. destruct (starts k x) as [s|] eqn:Es; [rewrite (cstarts_keep k T x s ltac:(lia) Es); reflexivity|].
  destruct (cstarts_none k T x ltac:(lia) Es) as [->|(s & -> & Hs)]; auto. destruct (Nat.leb_spec s n); [lia|auto].
Qed.

Lemma delivered_now k : (k < T)%nat ->
  delivered (cut_execution w g (left_in (S k)) (starts (S k))) k = delivered r k.
Proof. intros L. apply sumq_eq. intros x _. apply (service_past (S k) (S k)); lia. Qed.

Lemma settlement_now k u : (k < T)%nat -> leaves_in leave u k = true ->
  settlement (cut_execution w g (left_in (S k)) (starts k)) (left_in (S k)) u = settlement r leave u.
Proof.
  intros L E. pose proof E as E'. unfold cancel_leave in E. rewrite (leaves_in_now T) in E by auto.
  unfold settlement, leaves_in in *.
  destruct (left_in (S k) u) as [l|]; [|discriminate]. apply Nat.eqb_eq in E. subst l.
  destruct (leave u) as [l|]; [|discriminate]. apply Nat.eqb_eq in E'. subst l.
  cbn [predicted with_cost load exec cancel_run cut_execution]. f_equal. unfold delivered_to. apply sumq_eq.
  intros x _.
  cbn [unit_of with_cost load exec cancel_run cut_execution]. destruct (unit_of w x =? u)%nat; auto.
  unfold got, upto. cbn [service exec cancel_run cut_execution]. apply sumq_eq. intros n Hn. apply in_seq in Hn.
  apply service_past; lia.
Qed.

Notation settling := (settling_at r leave forgets (settlement r leave) (delivered r)).

Lemma settling_units k : forall entry, In entry (snd (settling k)) -> In (fst entry) (units w).
Proof.
  induction k; cbn [settling_at].
  - intros entry H. apply in_map_iff in H as (u & <- & H). auto.
  - destruct (settling k) as [v tb]. cbn [snd] in *. intros entry H.
    apply in_map_iff in H as ([u t] & <- & H). cbn [turn fst]. apply (IHk (u, t) H).
Qed.

(** The clock in the loop is that of the whole run. *)
Lemma loop_settling k : (k <= T)%nat -> settling k = (c_level (loop k), table k).
Proof.
  induction k; intros L; [reflexivity|]. pose proof (settling_units k) as I.
  cbn [settling_at]. rewrite IHk in * by lia. cbn [snd] in I.
  assert (E : map (turn r leave forgets (settlement r leave) k (c_level (loop k))) (table k) = table (S k)).
  { change (table (S k)) with (map (turn w (left_in (S k)) forgets
      (settlement (cut_execution w g (left_in (S k)) (starts k)) (left_in (S k))) k (c_level (loop k))) (table k)).
    apply map_ext_in. intros [u t] Hu. cbn [turn]. f_equal.
    assert (N : nobody_left r leave k = nobody_left w (left_in (S k)) k).
    { apply forallb_eq. intros z. cbn [ready with_cost load exec cancel_run]. f_equal. symmetry.
      apply has_left_now. lia. }
    unfold tag_when_forgotten. rewrite N.
    assert (Et : tag_on_leave r leave (settlement r leave) k u (tag_on_arrival r k (c_level (loop k)) u t)
      = tag_on_leave w (left_in (S k)) (settlement (cut_execution w g (left_in (S k)) (starts k)) (left_in (S k))) k u
          (tag_on_arrival w k (c_level (loop k)) u t)); [|rewrite Et; reflexivity].
    unfold tag_on_leave, tag_on_arrival.
    cbn [ready predicted with_cost load exec cancel_run]. unfold cancel_leave at 1. rewrite (leaves_in_now T) by auto.
    destruct (leaves_in (left_in (S k)) u k) eqn:Lk; auto. rewrite settlement_now; auto.
    unfold cancel_leave. rewrite (leaves_in_now T) by auto. exact Lk. }
  rewrite E. rewrite <- (delivered_now k) by lia. reflexivity.
Qed.

Lemma loop_level k : (k <= T)%nat -> settled_level r leave forgets k = c_level (loop k).
Proof. intros L. unfold settled_level, settling_level. rewrite loop_settling by auto. reflexivity. Qed.

Lemma loop_table k : (k < T)%nat -> table (S k) = map (fun u => (u, settled_tag r leave forgets k u)) (units w).
Proof.
  intros L. pose proof (settling_table r leave forgets (settlement r leave) (delivered r) k) as E.
  rewrite loop_settling in E by lia. exact E.
Qed.

Lemma loop_tag k u : (k < T)%nat -> In u (units w) -> tag_of (table (S k)) u = settled_tag r leave forgets k u.
Proof. intros L Hu. unfold tag_of. rewrite loop_table, find_in_map by auto. reflexivity. Qed.

(** ** What is delivered *)
Hypothesis valid : valid_engine w g.

Lemma cut_nonneg x k : In x (inferences w) -> 0 <= served x k.
Proof.
  intros Hx. unfold cut_service. destruct (cancel_starts w g rule forgets T x); [|lra].
  destruct (_ && _); [apply (work_nonneg w g valid); auto|lra].
Qed.

Lemma cut_unstarted x k : started_before r x (S k) = false -> served x k == 0.
Proof.
  unfold cut_service, started_before. cbn. destruct (cancel_starts w g rule forgets T x) as [s|]; [|reflexivity].
  intros H. apply Nat.leb_gt in H. destruct (Nat.leb_spec s k); [lia|reflexivity].
Qed.

Lemma cut_left x l k : leave (unit_of w x) = Some l -> (l <= k)%nat -> served x k == 0.
Proof.
  intros E L. unfold cut_service, has_left. rewrite E. destruct (cancel_starts w g rule forgets T x); [|reflexivity].
  destruct (Nat.leb_spec l k); [|lia]. rewrite andb_false_r. reflexivity.
Qed.

Lemma cut_upto st x n : In x (inferences w) -> upto (cut_service w g leave st x) n <= upto (service_of g st x) n.
Proof.
  intros Hx. apply sumq_le. intros k _. unfold cut_service, service_of. destruct (st x) as [s|]; [|lra].
  destruct (s <=? k)%nat; cbn [andb]; [|lra]. destruct (negb _); [lra|]. apply (work_nonneg w g valid). auto.
Qed.

Lemma service_upto st x n : In x (inferences w) -> upto (service_of g st x) n <= cost w x.
Proof.
  intros Hx. pose proof (got_of w g st x n) as E. unfold got in E. cbn [service execution_of] in E. rewrite E.
  destruct (st x); [apply (work_within_cost w g valid); auto|apply (work_within_cost w g valid x 0 Hx)].
Qed.

Lemma cut_within x n : In x (inferences w) -> upto (served x) n <= real_cost w g rule forgets T x.
Proof.
  intros Hx. unfold real_cost. destruct (leave (unit_of w x)) as [l|] eqn:E.
  - unfold got. cbn [service cut_execution]. destruct (Nat.le_gt_cases n l) as [L|L].
    + apply upto_mono; auto. intros k. apply cut_nonneg. auto.
    + induction n; [lia|]. rewrite upto_S, (cut_left x l n E) by lia.
      destruct (Nat.eq_dec l n) as [<-|]; [lra|]. specialize (IHn ltac:(lia)). lra.
  - apply Qle_trans with (upto (service_of g (cancel_starts w g rule forgets T) x) n);
      [apply cut_upto|apply service_upto]; auto.
Qed.
End Run.
End Loop.
