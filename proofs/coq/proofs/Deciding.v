(** * Hypotheses decided by computation

    On a concrete instance each hypothesis of the theorems is a finite check. A check is a boolean program with
    a proof that [true] implies the hypothesis; an example then only has to compute. *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums.
From Justitia Require Export Lag Completion ReadoutFacts.
Import ListNotations.


Definition member (x : nat) (l : list nat) : bool := existsb (Nat.eqb x) l.

Lemma member_In x l : member x l = true -> In x l.
Proof. unfold member. rewrite existsb_exists. intros (y & Hy & E). apply Nat.eqb_eq in E. subst. auto. Qed.

Fixpoint distinct (l : list nat) : bool :=
  match l with [] => true | x :: r => negb (member x r) && distinct r end.

Lemma distinct_NoDup l : distinct l = true -> NoDup l.
Proof.
  induction l as [|a l IH]; simpl; intros H; constructor; apply andb_prop in H as [H1 H2]; auto.
  apply negb_true_iff in H1. intros Hin. enough (member a l = true) by congruence.
  apply existsb_exists. exists a. split; auto. apply Nat.eqb_refl.
Qed.

(** ** The workload *)
Definition check_form (w : workload) : bool :=
  distinct (units w) && distinct (agents w)
  && forallb (fun x => member (unit_of w x) (units w)) (inferences w)
  && forallb (fun u => member (agent_of w u) (agents w) && Qle_bool 0 (predicted w u)) (units w)
  && forallb (fun i => 1 <=? weight w i)%nat (agents w).

Lemma form_checked w : check_form w = true -> well_formed w.
Proof.
  unfold check_form. rewrite !andb_true_iff, !forallb_forall. intros ((((H1 & H2) & H3) & H4) & H5).
  constructor; auto using distinct_NoDup, member_In.
  - intros u Hu. specialize (H4 u Hu). apply andb_prop in H4 as [H4 _]. auto using member_In.
  - intros i Hi. apply Nat.leb_le. auto.
  - intros u Hu. specialize (H4 u Hu). apply andb_prop in H4 as [_ H4]. apply Qle_bool_iff. auto.
Qed.

Definition check_predictions (w : workload) : bool :=
  forallb (fun u => Qle_bool (true_cost w u) (predicted w u)) (units w).

Lemma predictions_checked w : check_predictions w = true -> never_underestimated w.
Proof. unfold check_predictions. rewrite forallb_forall. intros H u Hu. apply Qle_bool_iff. auto. Qed.

(** ** The order *)
Definition is_waiting (r : run) (y k : nat) : bool :=
  (ready r (unit_of r y) <=? k)%nat && negb (started_before r y (S k)).

Definition check_order (r : run) (tag : nat -> Q) : bool :=
  forallb (fun x => match start r x with
                    | None => true
                    | Some s => forallb (fun y => negb (is_waiting r y s && before r tag (unit_of r y) (unit_of r x)))
                                        (inferences r)
                    end) (inferences r).

Lemma order_checked r tag : check_order r tag = true -> keeps_order r tag.
Proof.
  unfold check_order. rewrite forallb_forall. intros H x y s Hx Hy Hs [W1 W2]. specialize (H x Hx). rewrite Hs in H.
  rewrite forallb_forall in H. specialize (H y Hy). apply negb_true_iff in H. unfold is_waiting in H.
  rewrite W2 in H. apply Nat.leb_le in W1. rewrite W1 in H. exact H.
Qed.

(** ** A comparison *)
Definition check_quiet (r : run) (tag : nat -> Q) (j b s : nat) : bool :=
  (b <=? s)%nat && forallb (fun k => negb (overtakes r tag j k)) (seq b (s - b))
  && match b with O => true | S t0 => overtakes r tag j t0 end.

Lemma quiet_checked r tag j b s : check_quiet r tag j b s = true -> quiet r tag j b s.
Proof.
  unfold check_quiet. rewrite !andb_true_iff, forallb_forall, Nat.leb_le. intros ((H1 & H2) & H3).
  split; auto. split.
  - intros k Hk. rewrite <- overtakes_iff. specialize (H2 k ltac:(apply in_seq; lia)).
    apply negb_true_iff in H2. congruence.
  - intros t0 ->. apply overtakes_iff. auto.
Qed.

Definition check_comparison (r : run) (f : reference) (x s b n : nat) : bool :=
  member x (inferences r) && match start r x with Some s' => (s' =? s)%nat | None => false end
  && check_quiet r (tag r f) (unit_of r x) b s && check_finish r f (unit_of r x) n.

Lemma comparison_checked r f x s b n : check_comparison r f x s b n = true -> comparison r f x s b n.
Proof.
  unfold check_comparison. rewrite !andb_true_iff. intros (((H1 & H2) & H3) & H4).
  constructor; auto using member_In, quiet_checked, finish_checked.
  destruct (start r x); [|discriminate]. apply Nat.eqb_eq in H2. subst. auto.
Qed.

(** ** Rates and durations *)
Definition check_busy (r : run) (R : Q) : bool :=
  forallb (fun x => match start r x with
                    | None => true
                    | Some s => let a := ready r (unit_of r x) in
                                forallb (fun k => Qle_bool R (delivered r k)) (seq a (s - a))
                    end) (inferences r).

Lemma busy_checked r R : check_busy r R = true -> busy r R.
Proof.
  unfold check_busy. rewrite forallb_forall. intros H x s k Hx Hs Hk. specialize (H x Hx). rewrite Hs in H.
  cbv zeta in H. rewrite forallb_forall in H. apply Qle_bool_iff, H, in_seq. lia.
Qed.

Definition check_ends_within (r : run) (D : nat) : bool :=
  forallb (fun x => match start r x with
                    | None => true
                    | Some s => Qle_bool (cost r x) (got r x (s + D))
                    end) (inferences r).

Lemma ends_within_checked r D : check_ends_within r D = true -> ends_within r D.
Proof.
  unfold check_ends_within. rewrite forallb_forall. intros H x s Hx Hs. specialize (H x Hx). rewrite Hs in H.
  apply Qle_bool_iff. auto.
Qed.

(** ** Runs given as tables: what each inference receives, step by step *)
Definition table_run (w : workload) (row : nat -> list Q) (st : nat -> option nat) : run :=
  Run (Execution w (fun x k => nth k (row x) 0)) st.

Definition check_service (w : workload) (row : nat -> list Q) : bool :=
  forallb (fun x => forallb (Qle_bool 0) (row x) && Qle_bool (sumq (fun y => y) (row x)) (cost w x)) (inferences w).

Definition check_run (w : workload) (row : nat -> list Q) (st : nat -> option nat) : bool :=
  check_service w row
  && forallb (fun x => match st x with
                       | None => forallb (Qeq_bool 0) (row x)
                       | Some s => (ready w (unit_of w x) <=? s)%nat && forallb (Qeq_bool 0) (firstn s (row x))
                       end) (inferences w).

Lemma nth_nonneg l k : forallb (Qle_bool 0) l = true -> 0 <= nth k l 0.
Proof.
  rewrite forallb_forall. intros H. destruct (Nat.lt_ge_cases k (length l)) as [L|L].
  - apply Qle_bool_iff, H, nth_In. auto.
  - rewrite nth_overflow by auto. lra.
Qed.

Lemma nth_zero l k : forallb (Qeq_bool 0) l = true -> nth k l 0 == 0.
Proof.
  rewrite forallb_forall. intros H. destruct (Nat.lt_ge_cases k (length l)) as [L|L].
  - symmetry. apply Qeq_bool_iff, H, nth_In. auto.
  - rewrite nth_overflow by auto. reflexivity.
Qed.

Lemma nth_firstn {A} (l : list A) s k z : (k < s)%nat -> nth k (firstn s l) z = nth k l z.
Proof.
  revert l k. induction s; intros l k H; [lia|]. destruct l as [|a l]; [reflexivity|].
  destruct k as [|k]; [reflexivity|]. simpl. apply IHs. lia.
Qed.

Lemma table_total l n : forallb (Qle_bool 0) l = true -> upto (fun k => nth k l 0) n <= sumq (fun y => y) l.
Proof.
  unfold upto. revert n. induction l as [|a l IH]; intros n H.
  - rewrite (sumq_ext _ (fun _ => 0)) by (intros [|y] _; reflexivity). rewrite sumq_0. simpl. lra.
  - cbn [forallb] in H. apply andb_prop in H as [Ha Hl]. apply Qle_bool_iff in Ha. specialize (IH).
    destruct n as [|n]; cbn [seq sumq nth].
    + assert (0 <= sumq (fun y => y) l); [|lra].
      apply sumq_nonneg. rewrite forallb_forall in Hl. intros y Hy. apply Qle_bool_iff. auto.
    + rewrite <- seq_shift, sumq_map. cbn [nth]. specialize (IH n Hl). lra.
Qed.

Lemma service_checked w row : check_service w row = true ->
  valid_service (Execution w (fun x k => nth k (row x) 0)).
Proof.
  unfold check_service. rewrite forallb_forall. intros H.
  constructor; intros x k Hx; specialize (H x Hx); apply andb_prop in H as [H1 H2].
  - apply nth_nonneg. auto.
  - apply Qle_bool_iff in H2. pose proof (table_total (row x) k H1) as T. unfold got. cbn. lra.
Qed.

Lemma run_checked w row st : check_run w row st = true -> valid_run (table_run w row st).
Proof.
  unfold check_run. rewrite andb_true_iff, forallb_forall. intros [H1 H2].
  constructor; [apply service_checked; auto|..]; cbn; intros x k Hx; specialize (H2 x Hx).
  - unfold started_before. cbn. destruct (st x) as [s|]; intros L; [|apply nth_zero; auto].
    apply andb_prop in H2 as [_ H2]. apply Nat.leb_gt in L. rewrite <- (nth_firstn _ s) by lia. apply nth_zero. auto.
  - intros E. rewrite E in H2. apply andb_prop in H2 as [H2 _]. apply Nat.leb_le. auto.
Qed.

(** Proves a conjunction of hypotheses by computing their checks. *)
Ltac check :=
  repeat match goal with |- _ /\ _ => split end;
  first [ apply form_checked | apply predictions_checked | apply run_checked | apply service_checked
        | apply order_checked | apply comparison_checked | apply busy_checked | apply ends_within_checked ];
  vm_compute; reflexivity.

(** Proves a conjunction of equations by computing both sides. *)
Ltac compute_values := repeat match goal with |- _ /\ _ => split end; vm_compute; reflexivity.
