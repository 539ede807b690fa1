(** * What one step of the scheduler starts *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums OrderFacts.
From Justitia Require Export ClosedLoop.
Import ListNotations.

(** ** The head of the line *)
Section Head.
Variable w : workload.

Lemma head_In bf l : forall x, head w bf l = Some x -> In x l.
Proof.
  induction l as [|a l IH]; simpl; intros x Hx; [discriminate|].
  destruct (head w bf l) as [y|]; [destruct (bf _ _)|]; injection Hx as <-; auto.
Qed.

Lemma head_spec tag l : forall x, head w (before w tag) l = Some x ->
  In x l /\ forall y, In y l -> before w tag (unit_of w y) (unit_of w x) = false.
Proof.
  induction l as [|a l IH]; simpl; intros x H; [discriminate|].
  destruct (head w (before w tag) l) as [y|] eqn:E.
  - destruct (IH y eq_refl) as [H1 H2].
    destruct (before w tag (unit_of w y) (unit_of w a)) eqn:B; injection H as <-.
    + split; auto. intros z [<-|Hz]; auto. apply before_asym. auto.
    + split; auto. intros z [<-|Hz]; [apply before_irrefl|].
      destruct (before w tag (unit_of w z) (unit_of w a)) eqn:B2; auto.
      rewrite (before_trans w tag _ _ _ (H2 z Hz) B2) in B. discriminate.
  - injection H as <-. split; auto. intros z [<-|Hz]; [apply before_irrefl|].
    destruct l as [|b l]; [destruct Hz|]. simpl in E. destruct (head w (before w tag) l);
      [destruct (before _ _ _ _)|]; discriminate.
Qed.
End Head.

(** ** Admission *)
Section Admit.
Variable w : workload.
Variable g : engine.
Notation admit := (admit w g).

Lemma admit_keeps fuel k bf : forall st x s, st x = Some s -> admit fuel k bf st x = Some s.
Proof.
  induction fuel; simpl; intros st x s H; auto.
  destruct (head w bf (filter (in_line w st k) (inferences w))) as [y|] eqn:E; auto.
  destruct (fits g st k y); auto. apply IHfuel. unfold start_in. destruct (Nat.eqb_spec x y); auto. subst.
  exfalso. apply head_In, filter_In in E as [_ E]. unfold in_line in E. rewrite H, andb_false_r in E. discriminate.
Qed.

(** What is newly started in step [k] starts in step [k], is ready, and leaves nobody behind who is ahead. *)
Lemma admit_new fuel k tag : forall st x s, let st' := admit fuel k (before w tag) st in
  st x = None -> st' x = Some s ->
  s = k /\ In x (inferences w) /\ (ready w (unit_of w x) <= k)%nat /\
  forall y, In y (inferences w) -> (ready w (unit_of w y) <= k)%nat -> st' y = None ->
    before w tag (unit_of w y) (unit_of w x) = false.
Proof.
  induction fuel; simpl; intros st x s H0 H1; [congruence|].
  destruct (head w (before w tag) (filter (in_line w st k) (inferences w))) as [z|] eqn:E; [|congruence].
  destruct (fits g st k z); [|congruence].
  destruct (Nat.eq_dec x z) as [->|Hne].
  - apply head_spec in E as [E1 E2]. apply filter_In in E1 as [E1 E3].
    assert (K : start_in k z st z = Some k) by (unfold start_in; rewrite Nat.eqb_refl; reflexivity).
    rewrite (admit_keeps fuel k _ _ z k K) in H1. injection H1 as <-.
    unfold in_line in E3. apply andb_prop in E3 as [E3 _]. apply Nat.leb_le in E3.
    repeat split; auto. intros y Hy Ha Hn. apply E2. apply filter_In. split; auto. unfold in_line.
    assert (Sy : start_in k z st y = None).
    { destruct (start_in k z st y) as [t|] eqn:E4; auto. rewrite (admit_keeps fuel k _ _ y t E4) in Hn. discriminate. }
    unfold start_in in Sy. destruct (y =? z)%nat; [discriminate|]. rewrite Sy.
    apply Nat.leb_le in Ha. rewrite Ha. reflexivity.
  - apply (IHfuel (start_in k z st) x s); auto. unfold start_in. destruct (Nat.eqb_spec x z); [congruence|auto].
Qed.

(** A property of the starts that each admitted start preserves. *)
Lemma admit_preserves (P : (nat -> option nat) -> Prop) k bf :
  (forall st x, P st -> In x (inferences w) -> st x = None -> fits g st k x = true -> P (start_in k x st)) ->
  forall fuel st, P st -> P (admit fuel k bf st).
Proof.
  intros H. induction fuel; simpl; intros st Hst; auto.
  destruct (head w bf (filter (in_line w st k) (inferences w))) as [x|] eqn:E; auto.
  destruct (fits g st k x) eqn:F; auto. apply IHfuel, H; auto; apply head_In, filter_In in E as [E1 E2]; auto.
  unfold in_line in E2. apply andb_prop in E2 as [_ E2]. destruct (st x); [discriminate|auto].
Qed.
End Admit.
