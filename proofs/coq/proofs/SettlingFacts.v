(** * What the settling clock gives to each unit

    A unit has one tag from its arrival to its leave, and a smaller one from then on. Whatever the level was when
    it left, it has been given what it is settled at by the time the level reaches the tag that it was first
    given ([given_enough]). *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts.
From Justitia Require Export Settling.
Import ListNotations.

Section Settling.
Variable w : workload.
Variable leave : nat -> option nat.
Variable forgets : bool.
Variable kept : nat -> Q.
Variable s : nat -> Q.
Notation uw := (unit_weight w).
Notation level := (settling_level w leave forgets kept s).
Notation tag_now := (tag_in_step w leave forgets kept s).
Notation first := (first_tag w leave forgets kept s).
Notation left_by := (has_left leave).

(** What the reference gives [u] in step [k] until the level is [v], and what it has given before step [k]. *)
Definition part (u k : nat) (v : Q) : Q := uw u * (Qmin (tag_now k u) v - Qmin (tag_now k u) (level k)).
Definition given (u k : nat) : Q := upto (fun k' => part u k' (level (S k'))) k.

Definition table_in (k : nat) : list (nat * Q) := map (fun u => (u, tag_now k u)) (units w).

Lemma settling_table k : snd (settling_at w leave forgets kept s (S k)) = table_in k.
Proof.
  induction k.
  - cbn [settling_at snd]. rewrite map_map. reflexivity.
  - assert (E : snd (settling_at w leave forgets kept s (S (S k))) =
                map (turn w leave forgets kept (S k) (level (S k))) (snd (settling_at w leave forgets kept s (S k)))).
    { unfold settling_level. remember (S k) as m. cbn [settling_at].
      destruct (settling_at w leave forgets kept s m). reflexivity. }
    rewrite E, IHk. unfold table_in. rewrite map_map. apply map_ext. intros u. reflexivity.
Qed.

Lemma level_S k : level (S k) =
  advance (length (table_bag w (table_in k))) (table_bag w (table_in k)) (level k) (s k).
Proof. rewrite <- settling_table. unfold settling_level. cbn [settling_at]. destruct (settling_at _ _ _ _ _ k).
reflexivity. Qed.

Hypothesis form : well_formed w.
Hypothesis s_nonneg : forall k, 0 <= s k.
Hypothesis leave_ready : forall u l, In u (units w) -> leave u = Some l -> (ready w u <= l)%nat.
Hypothesis kept_range : forall u, In u (units w) -> 0 <= kept u /\ kept u <= predicted w u.

Lemma level_step k : level k <= level (S k).
Proof. rewrite level_S. apply advance_ge. auto. Qed.

Lemma level_mono a b : (a <= b)%nat -> level a <= level b.
Proof.
  induction b; intros H; [replace a with 0%nat by lia; lra|].
  destruct (Nat.eq_dec a (S b)) as [->|]; [lra|].
  apply Qle_trans with (level b); [apply IHb; lia|apply level_step].
Qed.

Lemma level_nonneg k : 0 <= level k.
Proof. apply (level_mono 0 k). lia. Qed.

Lemma weight_of_pos u : In u (units w) -> 0 < uw u.
Proof.
  intros H. unfold unit_weight. rewrite <- q_0. apply q_lt.
  pose proof (weight_positive w form _ (agent_known w form u H)). lia.
Qed.

Lemma times_over u x : In u (units w) -> uw u * (x / uw u) == x.
Proof. intros Hu. apply mul_div, weight_of_pos. auto. Qed.

(** ** Never back, nothing before the arrival, and in a step no more than it delivers *)
Lemma part_nonneg u k v : In u (units w) -> level k <= v -> 0 <= part u k v.
Proof.
  intros Hu Hv. unfold part. apply Qmult_le_0_compat; [pose proof (weight_of_pos u Hu); lra|].
  pose proof (Q.min_le_compat_l (level k) v (tag_now k u) Hv). lra.
Qed.

Lemma given_S u k : given u (S k) == given u k + part u k (level (S k)).
Proof. apply upto_S. Qed.

Lemma given_step u k : In u (units w) -> given u k <= given u (S k).
Proof. intros Hu. rewrite given_S. pose proof (part_nonneg u k _ Hu (level_step k)). lra. Qed.

Lemma fill_table k x v : fill (table_bag w (table_in k)) x v
  == sumq (fun u => uw u * (Qmin (tag_now k u) v - Qmin (tag_now k u) x)) (units w).
Proof.
  unfold fill, table_bag, table_in. generalize (units w). intros us.
  induction us as [|a l IH]; cbn [map flat_map sumq]; [reflexivity|].
  rewrite sumq_app, IH. cbn [fst snd]. rewrite (sumq_repeat (fun y => Qmin y v - Qmin y x)). reflexivity.
Qed.

Lemma given_by_step k : sumq (fun u => given u (S k) - given u k) (units w)
  == fill (table_bag w (table_in k)) (level k) (level (S k)).
Proof. rewrite fill_table. apply sumq_ext. intros u _. rewrite given_S. unfold part. lra. Qed.

Lemma given_rate k : sumq (fun u => given u (S k) - given u k) (units w) <= s k.
Proof. rewrite given_by_step, level_S. apply advance_rate. auto. Qed.

Lemma fill_conserves k : fill (table_bag w (table_in k)) (level k) (level (S k)) == s k \/
  (forall u, In u (units w) -> tag_now k u <= level (S k)).
Proof.
  rewrite level_S.
  destruct (advance_exact (length (table_bag w (table_in k))) (table_bag w (table_in k)) (level k) (s k))
    as [E|E]; auto.
  - generalize (table_bag w (table_in k)). intros bag.
    induction bag as [|x l IH]; simpl; [lia|]. destruct (qltb (level k) x); simpl; lia.
  - right. intros u Hu. apply E. unfold table_bag, table_in. apply in_flat_map. exists (u, tag_now k u).
    split; [apply in_map_iff; exists u; auto|]. cbn [fst snd].
    pose proof (weight_positive w form _ (agent_known w form u Hu)).
    destruct (weight w (agent_of w u)); [lia|simpl; auto].
Qed.

(** ** The tag of a unit over time *)
Lemma tag_before u k : In u (units w) -> (k < ready w u)%nat -> tag_now k u = 0.
Proof.
  intros Hu.
  assert (E : forall k t, (k < ready w u)%nat ->
    tag_when_forgotten w leave forgets k (level k) u
      (tag_on_leave w leave kept k u (tag_on_arrival w k (level k) u t)) = t).
  { intros k' t L. unfold tag_when_forgotten. destruct (Nat.ltb_spec (ready w u) k'); [lia|].
    rewrite andb_false_r. unfold tag_on_leave, tag_on_arrival, leaves_in.
    destruct (Nat.eqb_spec (ready w u) k'); [lia|].
    destruct (leave u) as [l|] eqn:El; auto. pose proof (leave_ready u l Hu El).
    destruct (Nat.eqb_spec l k'); [lia|auto]. }
  induction k; intros L; cbn [tag_in_step]; rewrite E by lia; auto. apply IHk. lia.
Qed.

(** Its debt was not forgotten by step [k]. *)
Definition remembered (u k : nat) : Prop :=
  forall f, (ready w u < f <= k)%nat -> forgets && nobody_left w leave f = false.

Lemma remembered_before u k k' : (k' <= k)%nat -> remembered u k -> remembered u k'.
Proof. intros L H f Hf. apply H. lia. Qed.

(** Who is still there is remembered. *)
Lemma here_remembered u k : In u (units w) -> left_by u k = false -> remembered u k.
Proof.
  intros Hu H f Hf. apply andb_false_intro2. destruct (nobody_left w leave f) eqn:E; auto. exfalso.
  unfold nobody_left in E. rewrite forallb_forall in E. specialize (E u Hu).
  destruct (Nat.ltb_spec (ready w u) f); [|lia]. cbn [negb orb] in E. unfold has_left in *.
  destruct (leave u) as [l|]; [|discriminate]. apply Nat.leb_le in E. apply Nat.leb_gt in H. lia.
Qed.

Lemma not_forgotten u k v t : remembered u k -> tag_when_forgotten w leave forgets k v u t = t.
Proof.
  intros R. unfold tag_when_forgotten. destruct (Nat.ltb_spec (ready w u) k) as [L|L].
  - specialize (R k ltac:(lia)). rewrite andb_true_r, R. reflexivity.
  - rewrite andb_false_r. reflexivity.
Qed.

Lemma tag_after u k : In u (units w) -> (ready w u <= k)%nat -> remembered u k ->
  tag_now k u == first u - (if left_by u k then (predicted w u - kept u) / uw u else 0).
Proof.
  intros Hu L R. induction k.
  - cbn [tag_in_step]. rewrite not_forgotten by auto.
    unfold tag_on_leave, tag_on_arrival, first_tag, leaves_in, has_left.
    assert (E : ready w u = 0%nat) by lia. rewrite E, Nat.eqb_refl.
    destruct (leave u) as [l|]; [|rewrite Qred_correct; lra].
    destruct (Nat.eqb_spec l 0), (Nat.leb_spec l 0); try lia; rewrite !Qred_correct; lra.
  - cbn [tag_in_step]. rewrite not_forgotten by auto. unfold tag_on_leave, tag_on_arrival, leaves_in, has_left in *.
    destruct (Nat.eqb_spec (ready w u) (S k)) as [E|E].
    + unfold first_tag. rewrite E. destruct (leave u) as [l|] eqn:El; [|rewrite Qred_correct; lra].
      pose proof (leave_ready u l Hu El).
      destruct (Nat.eqb_spec l (S k)), (Nat.leb_spec l (S k)); try lia; rewrite !Qred_correct; lra.
    + specialize (IHk ltac:(lia) (remembered_before u (S k) k ltac:(lia) R)). destruct (leave u) as [l|]; [|lra].
      destruct (Nat.eqb_spec l (S k)), (Nat.leb_spec l (S k)), (Nat.leb_spec l k); try lia; rewrite ?Qred_correct; lra.
Qed.

Lemma given_zero u k : In u (units w) -> (k <= ready w u)%nat -> given u k == 0.
Proof.
  intros Hu L. apply upto_zero. intros k' Hk. unfold part. rewrite tag_before by (auto; lia).
  pose proof (level_nonneg k'). pose proof (level_nonneg (S k')). rewrite !Q.min_l by lra. lra.
Qed.

Lemma first_ge u : In u (units w) -> level (ready w u) <= first u.
Proof.
  intros Hu. unfold first_tag.
  pose proof (div_nonneg (uw u) (predicted w u) (weight_of_pos u Hu) (predicted_nonneg w form u Hu)). lra.
Qed.

(** ** What has been given, in closed form *)
Lemma given_while_here u k : In u (units w) -> (ready w u <= k)%nat -> remembered u k ->
  (forall k', (k' < k)%nat -> left_by u k' = false) ->
  given u k == uw u * (Qmin (first u) (level k) - level (ready w u)).
Proof.
  intros Hu L R N. induction k.
  - rewrite given_zero by (auto; lia). pose proof (first_ge u Hu).
    replace (ready w u) with 0%nat in * by lia. rewrite Q.min_r by lra. lra.
  - destruct (Nat.eq_dec (ready w u) (S k)) as [E|E].
    + rewrite given_zero by (auto; lia). pose proof (first_ge u Hu). rewrite E in *.
      rewrite Q.min_r by lra. lra.
    + assert (R' : remembered u k) by (apply (remembered_before u (S k)); auto).
      rewrite given_S, IHk by (auto; lia). unfold part. pose proof (tag_after u k Hu ltac:(lia) R') as T.
      rewrite (N k) in T by lia. assert (T' : tag_now k u == first u) by lra. rewrite T'. lra.
Qed.

Lemma given_after_leave u l k F : In u (units w) -> leave u = Some l -> (l <= k)%nat -> remembered u k ->
  F == first u - (predicted w u - kept u) / uw u ->
  given u k == given u l + uw u * (Qmin F (level k) - Qmin F (level l)).
Proof.
  intros Hu El L R EF. induction k.
  - replace l with 0%nat by lia. lra.
  - destruct (Nat.eq_dec l (S k)) as [->|]; [lra|].
    assert (R' : remembered u k) by (apply (remembered_before u (S k)); auto).
    rewrite given_S, IHk by (auto; lia). unfold part.
    pose proof (leave_ready u l Hu El). pose proof (tag_after u k Hu ltac:(lia) R') as T.
    unfold has_left in T. rewrite El in T.
    destruct (Nat.leb_spec l k); [|lia]. assert (T' : tag_now k u == F) by lra. rewrite T'. lra.
Qed.

(** ** When the level has reached the first tag of [u], it has been given what it is settled at *)
Lemma given_enough u n v : In u (units w) -> remembered u n -> level n <= v -> v <= level (S n) -> first u <= v ->
  (if left_by u n then kept u else predicted w u) <= given u n + part u n v.
Proof.
  intros Hu R H1 H2 H3. pose proof (weight_of_pos u Hu) as W. pose proof (kept_range u Hu) as [K1 K2].
  assert (EF : forall x, uw u * (level (ready w u) + x / uw u) == uw u * level (ready w u) + x).
  { intros x. rewrite Qmult_plus_distr_r, (times_over u x) by auto. reflexivity. }
  destruct (Nat.le_gt_cases (ready w u) n) as [A|A].
  2: { (* it is not there yet: then it costs nothing *)
    pose proof (level_mono (S n) (ready w u) A) as M.
    assert (Z : predicted w u <= 0).
    { rewrite <- (times_over u (predicted w u) Hu). unfold first_tag in H3.
      assert (0 <= uw u * (0 - predicted w u / uw u)) by (apply Qmult_le_0_compat; lra). lra. }
    pose proof (part_nonneg u n v Hu H1). rewrite (given_zero u n) by (auto; lia).
    destruct (left_by u n); lra. }
  pose proof (tag_after u n Hu A R) as T. unfold part.
  destruct (left_by u n) eqn:Le.
  - unfold has_left in Le. destruct (leave u) as [l|] eqn:El; [|discriminate]. apply Nat.leb_le in Le.
    rewrite T. set (F := first u - (predicted w u - kept u) / uw u).
    rewrite (given_after_leave u l n F Hu El Le R) by reflexivity.
    rewrite (given_while_here u l Hu (leave_ready u l Hu El) (remembered_before u n l Le R)).
    2: { intros k' Hk. unfold has_left. rewrite El. apply Nat.leb_gt. auto. }
    assert (E : F == level (ready w u) + kept u / uw u) by (unfold F, first_tag, Qdiv; ring).
    pose proof (EF (kept u)) as EK. rewrite <- E in EK.
    assert (FG : F <= first u).
    { unfold F. pose proof (div_nonneg (uw u) (predicted w u - kept u) W ltac:(lra)). lra. }
    assert (C : F - level (ready w u) <= Qmin (first u) (level l) - level (ready w u)
                 + (Qmin F (level n) - Qmin F (level l)) + (Qmin F v - Qmin F (level n))).
    { rewrite (Q.min_l F v) by lra. destruct (Qlt_le_dec (level l) F) as [D|D].
      - rewrite (Q.min_r F (level l)), (Q.min_r (first u)) by lra. lra.
      - rewrite (Q.min_l F (level l)) by lra. pose proof (Q.min_glb (first u) (level l) F FG D). lra. }
    assert (P : 0 <= uw u * (Qmin (first u) (level l) - level (ready w u)
                 + (Qmin F (level n) - Qmin F (level l)) + (Qmin F v - Qmin F (level n))
                 - (F - level (ready w u)))) by (apply Qmult_le_0_compat; lra).
    lra.
  - assert (N : forall k', (k' < n)%nat -> left_by u k' = false).
    { intros k' Hk. unfold has_left in *. destruct (leave u); auto. apply Nat.leb_gt in Le. apply Nat.leb_gt. lia. }
    rewrite (given_while_here u n Hu A R N). assert (T' : tag_now n u == first u) by lra.
    rewrite T', (Q.min_l (first u) v) by lra. pose proof (EF (predicted w u)) as EP.
    fold (first_tag w leave forgets kept s u) in EP. lra.
Qed.
End Settling.
