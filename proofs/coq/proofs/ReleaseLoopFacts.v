(** * The loop with releases over time

    What is decided stays decided; so the run is one in which the steps of release that came out of it had been
    given beforehand, and the clock in the loop is the clock of that run. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ServiceFacts ReferenceFacts ClockFacts LoopFacts.
From Justitia Require Export ReleaseLoop AdmitFacts MarkFacts.
Import ListNotations.

Section Loop.
Variable w : workload.
Variable g : engine.
Variable rule : release_rule.
Notation loop k := (release_loop w g rule k).
Notation ready_in k := (r_ready (release_loop w g rule k)).
Notation starts k := (r_starts (release_loop w g rule k)).
Notation clock_in k := (r_clock (release_loop w g rule k)).

(** ** Releases *)
Definition opening (k : nat) : list nat := filter (opens rule (loop k) k) (units w).

(** The clock by whose tags step [k] starts inferences. *)
Definition clock_opened (k : nat) : clock := fold_left (release w) (opening k) (clock_in k).

Lemma ready_S k : ready_in (S k) = mark_all k (opening k) (ready_in k).
Proof. reflexivity. Qed.

Lemma opening_spec k u : In u (opening k) -> In u (units w) /\ ready_in k u = None.
Proof.
  unfold opening. rewrite filter_In. unfold opens, marked. intros [H1 H2]. split; auto.
  destruct (ready_in k u); [discriminate|auto].
Qed.

Lemma ready_keeps k T u n : (k <= T)%nat -> ready_in k u = Some n -> ready_in T u = Some n.
Proof.
  intros L H. induction T; [replace k with 0%nat in H by lia; auto|].
  destruct (Nat.eq_dec k (S T)) as [<-|]; auto. rewrite ready_S.
  destruct (in_dec Nat.eq_dec u (opening T)) as [I|I]; [|rewrite mark_all_other by auto; apply IHT; lia].
  apply opening_spec in I as [_ I]. rewrite IHT in I by lia. discriminate.
Qed.

Lemma ready_spec T u n : ready_in T u = Some n -> (n < T)%nat /\ In u (opening n) /\ ready_in (S n) u = Some n.
Proof.
  induction T; intros H; [discriminate|]. rewrite ready_S in H.
  destruct (in_dec Nat.eq_dec u (opening T)) as [I|I].
  - rewrite mark_all_in in H by auto. injection H as <-. repeat split; auto. rewrite ready_S. apply mark_all_in. auto.
  - rewrite mark_all_other in H by auto. destruct (IHT H) as (A & B). split; [lia|auto].
Qed.

(** ** Starts *)
Lemma rstarts_S k : starts (S k) =
  admit (with_ready w (ready_by (ready_in (S k)) k)) g (length (inferences w)) k
        (before w (clock_tag w (clock_opened k))) (starts k).
Proof. reflexivity. Qed.

Lemma rstarts_keep k T x s : (k <= T)%nat -> starts k x = Some s -> starts T x = Some s.
Proof.
  induction T; intros L H; [replace 0%nat with k by lia; auto|].
  destruct (Nat.eq_dec k (S T)) as [<-|]; auto. rewrite rstarts_S. apply admit_keeps, IHT; auto. lia.
Qed.

Lemma rstarts_spec T : forall x s, starts T x = Some s ->
  (s < T)%nat /\ In x (inferences w) /\ (exists n, ready_in (S s) (unit_of w x) = Some n) /\ starts (S s) x = Some s /\
  forall y n, In y (inferences w) -> ready_in (S s) (unit_of w y) = Some n -> starts (S s) y = None ->
    before w (clock_tag w (clock_opened s)) (unit_of w y) (unit_of w x) = false.
Proof.
  induction T; intros x s H; [discriminate|]. destruct (starts T x) as [s'|] eqn:E.
  - assert (s' = s) by (pose proof (rstarts_keep T (S T) x s' ltac:(lia) E); congruence). subst.
    destruct (IHT x s E) as (A & B). split; [lia|auto].
  - pose proof H as H'. rewrite rstarts_S in H.
    apply (admit_new (with_ready w (ready_by (ready_in (S T)) T))) in H as (-> & H2 & H3 & H4); auto.
    rewrite <- rstarts_S in H4. cbn [ready with_ready unit_of inferences] in H2, H3, H4.
    split; [auto|]. split; auto. split.
    + unfold ready_by in H3. destruct (ready_in (S T) (unit_of w x)) as [n|]; [eauto|lia].
    + split; auto. intros y n Hy Hn Ny. apply (H4 y Hy); auto. unfold ready_by. rewrite Hn.
      apply ready_spec in Hn. lia.
Qed.

Lemma rstarts_none k T x : (k <= T)%nat -> starts k x = None ->
  starts T x = None \/ exists s, starts T x = Some s /\ (k <= s)%nat.
Proof.
  intros L H. destruct (starts T x) as [s|] eqn:E; auto. right. exists s. split; auto.
  destruct (rstarts_spec T x s E) as (_ & _ & _ & H5 & _).
  destruct (Nat.le_gt_cases k s) as [|L2]; auto. rewrite (rstarts_keep (S s) k x s) in H by (auto; lia). discriminate.
Qed.

(** ** The whole run, seen from one of its steps *)
Section Run.
Variable T : nat.
Notation r := (release_run w g rule T).
Notation f := (reference_of r).

Lemma released_ready k u n : (k <= T)%nat -> ready_in k u = Some n -> ready r u = n.
Proof. intros L E. cbn. unfold released_in. rewrite (ready_keeps k T u n L E). auto. Qed.

Lemma ready_released u : (ready r u < T)%nat -> ready_in (S (ready r u)) u = Some (ready r u).
Proof.
  cbn. unfold released_in. destruct (ready_in T u) as [n|] eqn:E; [|lia]. intros _. apply ready_spec in E. tauto.
Qed.

Lemma opening_newly_ready k : (k < T)%nat -> opening k = newly_ready r k.
Proof.
  intros L. unfold opening, newly_ready. cbn [units]. apply filter_ext_in. intros u Hu.
  destruct (opens rule (loop k) k u) eqn:N.
  - assert (I : In u (opening k)) by (apply filter_In; auto).
    symmetry. apply Nat.eqb_eq, (released_ready (S k)); [lia|]. rewrite ready_S. apply mark_all_in. auto.
  - symmetry. apply Nat.eqb_neq. intros E. pose proof (ready_released u ltac:(lia)) as R. rewrite E in R.
    apply ready_spec in R as (_ & I & _). apply filter_In in I as [_ I]. congruence.
Qed.

Lemma rdelivered_now k : (k < T)%nat -> delivered (execution_of w g (starts (S k))) k = delivered r k.
Proof.
  intros L. apply sumq_eq. intros x _. cbn [service execution_of exec release_run]. unfold service_of.
  destruct (starts (S k) x) as [s|] eqn:E; [rewrite (rstarts_keep (S k) T x s L E); reflexivity|].
  destruct (rstarts_none (S k) T x L E) as [->|(s & -> & Hs)]; auto. destruct (Nat.leb_spec s k); [lia|auto].
Qed.

(** The clock in the loop is that of the whole run. *)
Lemma loop_clock_at k : (k <= T)%nat -> clock_in k = clock_at r (delivered r) k.
Proof.
  induction k; intros L; [reflexivity|].
  change (clock_in (S k)) with (serve w (delivered (execution_of w g (starts (S k))) k) (clock_opened k)).
  rewrite rdelivered_now by lia. cbn [clock_at]. unfold clock_opened, release_all.
  rewrite IHk, opening_newly_ready by lia. reflexivity.
Qed.

Lemma level_opened k : level (clock_opened k) = level (clock_in k).
Proof. apply release_level. Qed.

(** Once a unit is ready, the tag that the loop has for it is final. *)
Lemma opened_tag k u n : (k < T)%nat -> ready_in (S k) u = Some n -> clock_tag w (clock_opened k) u = tag r f u.
Proof.
  intros L E. pose proof (ready_spec _ _ _ E) as (Ln & _ & _).
  assert (R : ready r u = n) by (apply (released_ready (S k)); auto).
  assert (B : bases (clock_opened k) u = bases (clock_at r (delivered r) (S k)) u).
  { rewrite <- loop_clock_at by lia. reflexivity. }
  unfold clock_tag. rewrite B. rewrite (bases_stay r (delivered r) u (S k)) by (cbn in *; lia). reflexivity.
Qed.

Lemma loop_tag k u n : (k <= T)%nat -> ready_in k u = Some n -> clock_tag w (clock_in k) u = tag r f u.
Proof.
  intros L E. pose proof (ready_spec _ _ _ E) as (Ln & _ & _).
  assert (R : ready r u = n) by (apply (released_ready k); auto).
  unfold clock_tag. rewrite loop_clock_at by auto.
  rewrite (bases_stay r (delivered r) u k) by (cbn in *; lia). reflexivity.
Qed.

Lemma rloop_total k : (k <= T)%nat -> r_total (loop k) == total r k.
Proof.
  induction k; intros L; [reflexivity|]. rewrite total_S, <- IHk by lia.
  cbn [release_loop release_step r_total]. rewrite Qred_correct. rewrite <- (rdelivered_now k) by lia. reflexivity.
Qed.

Lemma finished_S k : let c := clock_opened k in let now :=
    filter (newly_finished w c (ready_in (S k)) (r_finished (loop k)) (level (clock_in (S k)))) (units w) in
  r_finished (loop (S k)) =
  map (fun u => (u, Qred (r_total (loop k) + fill (tagbag w c) (level c) (clock_tag w c u)))) now
  ++ r_finished (loop k).
Proof. reflexivity. Qed.
End Run.
End Loop.
