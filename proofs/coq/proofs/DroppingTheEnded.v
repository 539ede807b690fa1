(** * Dropping an agent when it really ends has no bound

    One inference of cost 1 at a time. Agents 0 and 1 arrive in step 0 with L = 4 m inferences each, and
    run one after the other. A mouse of one inference arrives in step A = 6 m. The true level is then 3
    m, so that the mouse's tag would be smaller than theirs; the reference is through with it three steps
    later. The clock that dropped agent 0 in step L has risen twice as fast since then, to 4 m: the mouse
    is last in line and starts in step 2 L = 8 m. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts OrderFacts LevelByHand NegativeResults.
Import ListNotations.

Section Dropped.
Variables m L A : nat.
Hypothesis L_is : L = (4 * m)%nat.
Hypothesis A_is : A = (6 * m)%nat.
Hypothesis m_two : (2 <= m)%nat.

(** Inference [x] runs in step [x]. *)
Definition crowd_unit (x : nat) : nat :=
  if (x <? L)%nat then 0%nat else if (x <? L + L)%nat then 1%nat else 2%nat.
Definition crowd : workload := Workload (seq 0 (L + L + 1)) [0; 1; 2]%nat [0; 1;
  2]%nat crowd_unit (fun u => u)
  (fun _ => 1%nat) (fun _ => 1)
  (fun u => if (u =? 2)%nat then 1 else q L) (fun u => if (u =? 2)%nat then A else 0%nat)
  (fun u => u).
Definition crowd_run : run :=
  Run (Execution crowd (fun x k => if (x =? k)%nat then 1 else 0)) (fun x => Some x).
Local Notation r := crowd_run.
Local Notation f := (reference_of r).

Lemma in_crowd x : In x (inferences r) <-> (x <= L + L)%nat.
Proof. change (inferences r) with (seq 0 (L + L + 1)). rewrite in_seq. lia. Qed.

Lemma crowd_got x k : got r x k == if (x <? k)%nat then 1 else 0.
Proof.
  induction k; [reflexivity|]. unfold got in *. rewrite upto_S, IHk. simpl service.
  destruct (Nat.ltb_spec x k), (Nat.ltb_spec x (S k)), (Nat.eqb_spec x k); try lia; lra.
Qed.

Lemma crowd_delivered k : delivered r k == if (k <=? L + L)%nat then 1 else 0.
Proof.
  unfold delivered. change (inferences r) with (seq 0 (L + L + 1)). simpl service. rewrite sum_one. simpl.
  destruct (Nat.ltb_spec k (L + L + 1)), (Nat.leb_spec k (L + L)); try lia; reflexivity.
Qed.

Lemma crowd_nonneg k : 0 <= delivered r k.
Proof. rewrite crowd_delivered. destruct (k <=? L + L)%nat; lra. Qed.

Lemma crowd_total k : (k <= L + L)%nat -> total r k == q k.
Proof.
  induction k; intros H; [reflexivity|]. unfold total in *. rewrite upto_S, IHk, crowd_delivered, q_S by lia.
  destruct (Nat.leb_spec k (L + L)); [lra|lia].
Qed.

Lemma sum_constant_on (g : nat -> Q) v i n : (forall x, (i <= x < i + n)%nat -> g x == v) ->
  sumq g (seq i n) == q n * v.
Proof.
  intros H. rewrite (sumq_ext g (fun _ => v)); [rewrite sumq_const, seq_length; reflexivity|].
  intros x Hx. apply in_seq in Hx. auto.
Qed.

Lemma crowd_true_cost u : In u (units r) -> true_cost r u == predicted r u.
Proof.
  intros Hu. unfold true_cost. change (inferences r) with (seq 0 (L + L + 1)).
  rewrite seq_app, sumq_app, seq_app, sumq_app.
  rewrite (sum_constant_on _ (if (0 =? u)%nat then 1 else 0) 0 L),
          (sum_constant_on _ (if (1 =? u)%nat then 1 else 0) (0 + L) L),
          (sum_constant_on _ (if (2 =? u)%nat then 1 else 0) (0 + (L + L)) 1);
    try (intros x Hx; simpl; unfold crowd_unit; destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L));
      try lia; reflexivity).
  destruct Hu as [<-|[<-|[<-|[]]]]; simpl; rewrite q_1; lra.
Qed.

Lemma crowd_form : well_formed r.
Proof.
  split; simpl.
  - repeat constructor; simpl; intuition discriminate.
  - repeat constructor; simpl; intuition discriminate.
  - intros x _. unfold crowd_unit. destruct (x <? L)%nat, (x <? L + L)%nat; simpl; auto.
  - auto.
  - lia.
  - intros u _. pose proof (q_nonneg L). destruct (u =? 2)%nat; lra.
Qed.

Lemma crowd_plain : plain r.
Proof. split; auto. Qed.

Lemma crowd_valid : valid_run r.
Proof.
  split; [split|..].
  - intros x k _. simpl. destruct (x =? k)%nat; lra.
  - intros x k _. rewrite crowd_got. simpl cost. destruct (x <? k)%nat; lra.
  - intros x k _ H. unfold started_before in H. simpl in H. apply Nat.ltb_ge in H. simpl.
    destruct (Nat.eqb_spec x k); [lia|reflexivity].
  - intros x s Hx E. injection E as <-. apply in_crowd in Hx. simpl. unfold crowd_unit.
    destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L)); simpl; lia.
Qed.

(** ** The clock that drops *)
Lemma ended_iff u k : ended r u k = true <-> forall x, (x <= L + L)%nat -> crowd_unit x = u -> (x < k)%nat.
Proof.
  unfold ended. rewrite forallb_forall. split; intros H x Hx.
  - intros E. specialize (H x (proj2 (in_crowd x) Hx)). simpl in H. rewrite E, Nat.eqb_refl in H.
    apply Qle_bool_iff in H. rewrite crowd_got in H. destruct (Nat.ltb_spec x k); [auto|lra].
  - simpl. destruct (Nat.eqb_spec (crowd_unit x) u) as [E|]; auto. apply in_crowd in Hx.
    specialize (H x Hx E).
    apply Qle_bool_iff. rewrite crowd_got. destruct (Nat.ltb_spec x k); [lra|lia].
Qed.

Lemma not_ended u k x : (x <= L + L)%nat -> crowd_unit x = u -> (k <= x)%nat -> ended r u k = false.
Proof.
  intros H1 H2 H3. destruct (ended r u k) eqn:E; auto. rewrite ended_iff in E. specialize (E x H1 H2). lia.
Qed.

Lemma crowd_unit_0 x : (x < L)%nat -> crowd_unit x = 0%nat.
Proof. intros H. unfold crowd_unit. destruct (Nat.ltb_spec x L); [auto|lia]. Qed.
Lemma crowd_unit_1 x : (L <= x < L + L)%nat -> crowd_unit x = 1%nat.
Proof. intros H. unfold crowd_unit. destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L)); auto; lia. Qed.
Lemma crowd_unit_2 x : (L + L <= x)%nat -> crowd_unit x = 2%nat.
Proof. intros H. unfold crowd_unit. destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L)); auto; lia. Qed.

Lemma unfinished_both k : (k < L)%nat -> unfinished r k = [0; 1]%nat.
Proof.
  intros H. unfold unfinished. change (units r) with [0; 1; 2]%nat. cbn [filter].
  change (ready r 2) with A. rewrite (not_ended 0 k k) by (try lia; apply crowd_unit_0; lia).
  rewrite (not_ended 1 k L) by (try lia; apply crowd_unit_1; lia).
  destruct (Nat.leb_spec A k); [lia|reflexivity].
Qed.

Lemma unfinished_one k : (L <= k < A)%nat -> unfinished r k = [1]%nat.
Proof.
  intros H. unfold unfinished. change (units r) with [0; 1; 2]%nat. cbn [filter]. change (ready r 2) with A.
  assert (E : ended r 0 k = true).
  { apply ended_iff. intros x Hx Eu. unfold crowd_unit in Eu.
    destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L)); try discriminate; lia. }
  rewrite E, (not_ended 1 k (L + L - 1)) by (try lia; apply crowd_unit_1; lia).
  destruct (Nat.leb_spec A k); [lia|reflexivity].
Qed.

Lemma dropping_first k : (k <= L)%nat -> dropping_level r k == (1 # 2) * q k.
Proof.
  induction k; intros H; [reflexivity|]. cbn [dropping_level].
  rewrite IHk, unfinished_both, crowd_delivered, q_S by lia. change (q (length [0; 1]%nat)) with 2.
  destruct (Nat.leb_spec k (L + L)); [field|lia].
Qed.

Lemma dropping_then k : (L + k <= A)%nat -> dropping_level r (L + k) == (1 # 2) * q L + q k.
Proof.
  induction k; intros H; [rewrite Nat.add_0_r, dropping_first, q_0 by lia; lra|].
  rewrite Nat.add_succ_r. cbn [dropping_level].
  rewrite IHk, unfinished_one, crowd_delivered, q_S by lia. change (q (length [1]%nat)) with 1.
  destruct (Nat.leb_spec (L + k) (L + L)); [field|lia].
Qed.

Lemma dropping_tag_old u : (u < 2)%nat -> dropping_tag r u == q L.
Proof.
  intros H. unfold dropping_tag. destruct u as [|[|u]]; [| |lia]; simpl; lra.
Qed.

Lemma dropping_tag_mouse : dropping_tag r 2 == q L + 1.
Proof.
  unfold dropping_tag. change (ready r 2) with A. change (predicted r 2) with 1.
  pose proof (dropping_then (2 * m) ltac:(lia)) as E. replace (L + 2 * m)%nat with A in E by lia.
  rewrite E. assert (E1 : q L == 4 * q m) by (rewrite L_is, q_mult; reflexivity).
  assert (E2 : q (2 * m) == 2 * q m) by apply q_mult. rewrite E2, E1. lra.
Qed.

Lemma never_behind u v : (v < 2)%nat \/ u = v -> (v <= u <= 2)%nat -> before r (dropping_tag r) u v = false.
Proof.
  intros H L1. destruct (before r (dropping_tag r) u v) eqn:B; auto. exfalso. apply before_true in B.
  destruct (Nat.eq_dec u v) as [->|Hne]; [destruct B as [B|[_ B]]; [lra|lia]|].
  rewrite (dropping_tag_old v) in B by lia. destruct (Nat.eq_dec u 2) as [->|].
  - rewrite dropping_tag_mouse in B. destruct B as [B|[B _]]; lra.
  - rewrite dropping_tag_old in B by lia. destruct B as [B|[_ B]]; [lra|simpl in B; lia].
Qed.

Lemma crowd_unit_mono x y : (x <= y)%nat -> (crowd_unit x <= crowd_unit y <= 2)%nat.
Proof.
  intros H. unfold crowd_unit.
  destruct (Nat.ltb_spec x L), (Nat.ltb_spec y L), (Nat.ltb_spec x (L + L)), (Nat.ltb_spec y (L + L)); lia.
Qed.

Lemma crowd_order : keeps_order r (dropping_tag r).
Proof.
  intros x y s Hx Hy E [_ W]. injection E as <-. unfold started_before in W. simpl in W.
  apply Nat.ltb_ge in W.
  apply never_behind; simpl unit_of.
  - apply in_crowd in Hx, Hy. unfold crowd_unit. destruct (Nat.ltb_spec x L), (Nat.ltb_spec x (L + L)); lia.
  - apply crowd_unit_mono. lia.
Qed.

Lemma crowd_quiet : quiet r (dropping_tag r) 2 0 (L + L).
Proof.
  split; [lia|]. split; [|discriminate]. intros k Hk (z & Hz & E & B). injection E as ->.
  assert (C : before r (dropping_tag r) 2 (unit_of r k) = false); [|congruence].
  apply never_behind; simpl unit_of; unfold crowd_unit;
    destruct (Nat.ltb_spec k L), (Nat.ltb_spec k (L + L)); lia.
Qed.

(** ** The reference *)
Lemma values : q L == 4 * q m /\ q A == 6 * q m /\ 2 <= q m.
Proof.
  rewrite L_is, A_is, !q_mult. repeat split. change 2 with (q 2). apply q_le. auto.
Qed.

Lemma tag_old u : (u < 2)%nat -> tag r f u == 4 * q m.
Proof.
  intros H. destruct values as (E & _). rewrite (tag_by_hand r crowd_form crowd_plain crowd_nonneg).
  - rewrite <- E. destruct u as [|[|u]]; [| |lia]; simpl; lra.
  - destruct u as [|[|u]]; simpl; auto; lia.
Qed.

Lemma step_delivers k : (k <= L + L)%nat -> delivered r k == 1.
Proof. intros H. rewrite crowd_delivered. destruct (Nat.leb_spec k (L + L)); [reflexivity|lia]. Qed.

Lemma level_before k : (k <= A)%nat -> V f k == (1 # 2) * q k.
Proof.
  induction k; intros H; [reflexivity|]. specialize (IHk ltac:(lia)). destruct values as (_ & EA & Em).
  assert (Hk : q k + 1 <= 6 * q m) by (rewrite <- q_S, <- EA; apply q_le; lia).
  pose proof (q_nonneg k). pose proof (step_delivers k ltac:(lia)) as D.
  pose proof (tag_old 0 ltac:(lia)) as T0. pose proof (tag_old 1 ltac:(lia)) as T1.
  rewrite (level_by_hand r crowd_form crowd_plain crowd_nonneg k [0; 1]%nat).
  - rewrite IHk, D, q_S. change (q (length [0; 1]%nat)) with 2. field.
  - repeat constructor; simpl; intuition discriminate.
  - discriminate.
  - intros u. split.
    + intros [<-|[<-|[]]]; (split; [simpl; auto|]; split; [simpl; lia|]); rewrite IHk;
        [rewrite T0|rewrite T1]; lra.
    + intros ([<-|[<-|[<-|[]]]] & R & _); simpl in R |- *; auto. lia.
  - intros u Hu. rewrite IHk, D. change (q (length [0; 1]%nat)) with 2.
    assert (E : 1 / 2 == 1 # 2) by reflexivity.
    rewrite E. destruct Hu as [<-|[<-|[]]]; [rewrite T0|rewrite T1]; lra.
Qed.

Lemma tag_mouse : tag r f 2 == 3 * q m + 1.
Proof.
  rewrite (tag_by_hand r crowd_form crowd_plain crowd_nonneg) by (simpl; auto).
  change (ready r 2) with A. change (predicted r 2) with 1. rewrite level_before by lia.
  destruct values as (_ & EA & _). rewrite EA. lra.
Qed.

Lemma level_after k : (k <= 3)%nat -> V f (A + k) == 3 * q m + (1 # 3) * q k.
Proof.
  destruct values as (_ & EA & Em).
  induction k; intros H; [rewrite Nat.add_0_r, level_before, EA, q_0 by lia; lra|].
  specialize (IHk ltac:(lia)).
  assert (Hk : q k <= 2) by (change 2 with (q 2); apply q_le; lia).
  pose proof (q_nonneg k). pose proof (step_delivers (A + k) ltac:(lia)) as D.
  pose proof (tag_old 0 ltac:(lia)) as T0. pose proof (tag_old 1 ltac:(lia)) as T1.
  pose proof tag_mouse as T2.
  rewrite Nat.add_succ_r.
  rewrite (level_by_hand r crowd_form crowd_plain crowd_nonneg (A + k) [0; 1; 2]%nat).
  - rewrite IHk, D, q_S. change (q (length [0; 1; 2]%nat)) with 3. field.
  - repeat constructor; simpl; intuition discriminate.
  - discriminate.
  - intros u. split.
    + intros Hu. split; [exact Hu|]. split; [simpl; destruct (u =? 2)%nat; lia|].
      rewrite IHk. destruct Hu as [<-|[<-|[<-|[]]]]; [rewrite T0|rewrite T1|rewrite T2]; lra.
    + intros (Hu & _). exact Hu.
  - intros u Hu. rewrite IHk, D. change (q (length [0; 1; 2]%nat)) with 3.
    assert (E : 1 / 3 == 1 # 3) by reflexivity. rewrite E.
    destruct Hu as [<-|[<-|[<-|[]]]]; [rewrite T0|rewrite T1|rewrite T2]; lra.
Qed.

Lemma mouse_finish : finishes r f 2 (A + 3) /\ G r f 2 (A + 3) == total r (A + 3).
Proof.
  apply (finish_at_step r crowd_nonneg); [simpl; auto|simpl; lia|].
  pose proof (level_after 3 (le_n 3)) as E. pose proof tag_mouse as T. change (q 3) with 3 in E.
  rewrite E, T. lra.
Qed.

Lemma mouse_exceeds K : (K < m)%nat -> exceeds r f (L + L) (L + L) 0 (A + 3) K.
Proof.
  intros HK. unfold exceeds. simpl unit_of. rewrite crowd_unit_2 by lia. destruct mouse_finish as [_ ->].
  assert (I : inflight r 0 == 0).
  { unfold inflight. rewrite <- (sumq_0 (inferences r)). apply sumq_ext. intros x _. reflexivity. }
  rewrite I, !crowd_total by lia. simpl cost. destruct values as (EL & EA & Em).
  rewrite !q_plus, EL, EA. change (q 3) with 3. apply q_lt in HK. lra.
Qed.
End Dropped.

Theorem dropping_the_ended_is_unbounded_holds : dropping_the_ended_is_unbounded.
Proof.
  intros K. set (m := (K + 2)%nat). set (L := (4 * m)%nat). set (A := (6 * m)%nat).
  assert (HL : L = (4 * m)%nat) by reflexivity. assert (HA : A = (6 * m)%nat) by reflexivity.
  assert (Hm : (2 <= m)%nat) by (unfold m; lia).
  exists (crowd_run L A), (L + L)%nat, (L + L)%nat, 0%nat, (A + 3)%nat. cbv zeta.
  assert (E : unit_of (crowd_run L A) (L + L) = 2%nat)
    by (apply (crowd_unit_2 m L A HL HA Hm); lia). rewrite E.
  split; [apply (crowd_form m L A HL HA Hm)|]. split; [apply (crowd_valid m L A HL HA Hm)|]. split.
  { intros u Hu. rewrite (crowd_true_cost m L A HL HA Hm) by auto. lra. }
  split; [apply (crowd_order m L A HL HA Hm)|]. split; [apply (in_crowd m L A HL HA Hm); lia|].
  split; [reflexivity|]. split; [apply (crowd_quiet m L A HL HA Hm)|].
  split; [apply (mouse_finish m L A HL HA Hm)|]. apply (mouse_exceeds m L A HL HA Hm). unfold m. lia.
Qed.
