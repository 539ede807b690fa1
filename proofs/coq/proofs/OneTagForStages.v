(** * One tag for a staged agent has no bound

    Room for three tokens. Agent 0 is a chain of 3 m stages, one inference of cost 1 in each; agent 1 has
    3 m inferences of cost 2. Both arrive in step 0; their tags are 3 m and 6 m. Each step runs one
    inference of each, for the next stage of agent 0 is not ready sooner. So 3 (3 m - 1) has been
    delivered when the last stage starts. The reference serves both alike and is through with agent 0 in
    step 2 m, when it has handed out 6 m. *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts OrderFacts LevelByHand NegativeResults.
Import ListNotations.

Section Staged.
Variables m n : nat.
Hypothesis n_three : n = (3 * m)%nat.
Hypothesis m_two : (2 <= m)%nat.

(** Inference [k < n] is stage [k] of agent 0; inference [n + k] belongs to agent 1. Both run in step
    [k]. *)
Definition step_run (x : nat) : nat := if (x <? n)%nat then x else (x - n)%nat.
Definition staged_unit (x : nat) : nat := if (x <? n)%nat then 0%nat else 1%nat.
Definition staged_cost (x : nat) : Q := if (x <? n)%nat then 1 else 2.
Definition staged : workload := Workload (seq 0 (n + n)) [0; 1]%nat [0; 1]%nat staged_unit (fun u => u)
  (fun _ => 1%nat) staged_cost (fun u => if (u =? 0)%nat then q n else 2 * q n) (fun _ => 0%nat) (fun u => u).
Definition staged_run : run :=
  Run (Execution staged (fun x k => if (step_run x =? k)%nat then staged_cost x else 0))
      (fun x => Some (step_run x)).
Local Notation r := staged_run.
Local Notation f := (reference_of r).

Lemma cost_pos x : 0 < staged_cost x.
Proof. unfold staged_cost. destruct (x <? n)%nat; reflexivity. Qed.

Lemma staged_got x k : got r x k == if (step_run x <? k)%nat then staged_cost x else 0.
Proof.
  induction k; [reflexivity|]. unfold got in *. rewrite upto_S, IHk. simpl service.
  destruct (Nat.ltb_spec (step_run x) k), (Nat.ltb_spec (step_run x) (S k)), (Nat.eqb_spec (step_run x) k);
    try lia; lra.
Qed.

Lemma staged_done x k : done r x k <-> (step_run x < k)%nat.
Proof.
  unfold done. rewrite staged_got. simpl cost. pose proof (cost_pos x).
  destruct (Nat.ltb_spec (step_run x) k); split; intros; try lia; lra.
Qed.

Lemma sum_both (g : nat -> Q) : sumq g (inferences r) == sumq (fun k => g k + g (n + k)%nat) (seq 0 n).
Proof.
  change (inferences r) with (seq 0 (n + n)). rewrite seq_app, sumq_app, sumq_plus.
  apply Qplus_comp; [reflexivity|]. generalize n. intros a. simpl.
  assert (H : forall i b, sumq g (seq (a + i) b) == sumq (fun k => g (a + k)%nat) (seq i b)); [|].
  - intros i b. revert i. induction b; intros i; simpl; [reflexivity|].
    rewrite <- IHb. replace (S (a + i)) with (a + S i)%nat by lia. reflexivity.
  - specialize (H 0%nat a). rewrite Nat.add_0_r in H. exact H.
Qed.

Lemma left_side k : (k < n)%nat -> step_run k = k /\ staged_cost k = 1 /\ staged_unit k = 0%nat.
Proof. intros H. unfold step_run, staged_cost, staged_unit. destruct (Nat.ltb_spec k n); [auto|lia]. Qed.

Lemma right_side k : step_run (n + k) = k /\ staged_cost (n + k) = 2 /\ staged_unit (n + k) = 1%nat.
Proof.
  unfold step_run, staged_cost, staged_unit. destruct (Nat.ltb_spec (n + k) n); [lia|]. repeat split. lia.
Qed.

Lemma staged_delivered k : delivered r k == if (k <? n)%nat then 3 else 0.
Proof.
  unfold delivered. rewrite sum_both.
  rewrite (sumq_ext _ (fun i => if (i =? k)%nat then 3 else 0)).
  - rewrite sum_one. simpl. destruct (k <? n)%nat; reflexivity.
  - intros i Hi. apply in_seq in Hi. simpl service.
    destruct (left_side i) as (-> & -> & _); [lia|]. destruct (right_side i) as (-> & -> & _).
    destruct (i =? k)%nat; lra.
Qed.

Lemma staged_nonneg k : 0 <= delivered r k.
Proof. rewrite staged_delivered. destruct (k <? n)%nat; lra. Qed.

Lemma staged_total k : (k <= n)%nat -> total r k == 3 * q k.
Proof.
  induction k; intros H; [reflexivity|]. unfold total in *. rewrite upto_S, IHk, staged_delivered, q_S by lia.
  destruct (Nat.ltb_spec k n); [lra|lia].
Qed.

Lemma staged_true_cost u : In u (units r) -> true_cost r u == predicted r u.
Proof.
  intros Hu. unfold true_cost. rewrite sum_both. destruct Hu as [<-|[<-|[]]].
  - rewrite (sumq_ext _ (fun _ => 1)); [rewrite sumq_const, seq_length; simpl predicted; lra|].
    intros k Hk. apply in_seq in Hk. simpl. destruct (left_side k) as (_ & -> & ->); [lia|].
    destruct (right_side k) as (_ & _ & E). simpl in E. rewrite E. simpl. lra.
  - rewrite (sumq_ext _ (fun _ => 2)); [rewrite sumq_const, seq_length; simpl predicted; lra|].
    intros k Hk. apply in_seq in Hk. simpl. destruct (left_side k) as (_ & _ & ->); [lia|].
    destruct (right_side k) as (_ & E1 & E2). simpl in E1, E2. rewrite E1, E2. simpl. lra.
Qed.

Lemma staged_form : well_formed r.
Proof.
  split; simpl.
  - repeat constructor; simpl; intuition discriminate.
  - repeat constructor; simpl; intuition discriminate.
  - intros x _. unfold staged_unit. destruct (x <? n)%nat; simpl; auto.
  - auto.
  - lia.
  - intros u _. pose proof (q_nonneg n). destruct (u =? 0)%nat; simpl in *; lra.
Qed.

Lemma staged_plain : plain r.
Proof. split; auto. Qed.

Lemma staged_valid : valid_run r.
Proof.
  split; [split|..].
  - intros x k _. simpl. pose proof (cost_pos x). destruct (step_run x =? k)%nat; lra.
  - intros x k _. rewrite staged_got. simpl cost. pose proof (cost_pos x).
    destruct (step_run x <? k)%nat; lra.
  - intros x k _ H. unfold started_before in H. simpl in H. apply Nat.ltb_ge in H. simpl.
    destruct (Nat.eqb_spec (step_run x) k); [lia|reflexivity].
  - intros x s _ _. simpl. lia.
Qed.

(** ** The reference *)
Lemma q_n : q n == 3 * q m.
Proof. rewrite n_three, q_mult. reflexivity. Qed.

Lemma tag_0 : tag r f 0 == q n.
Proof. rewrite (tag_by_hand r staged_form staged_plain staged_nonneg 0) by (simpl; auto). simpl. lra. Qed.

Lemma tag_1 : tag r f 1 == 2 * q n.
Proof. rewrite (tag_by_hand r staged_form staged_plain staged_nonneg 1) by (simpl; auto). simpl. lra. Qed.

Lemma staged_level k : (k <= 2 * m)%nat -> V f k == (3 # 2) * q k.
Proof.
  induction k; intros H; [reflexivity|]. specialize (IHk ltac:(lia)).
  assert (Hk : q k + 1 <= 2 * q m).
  { rewrite <- q_S. change 2 with (q 2). rewrite <- q_mult. apply q_le. lia. }
  pose proof (q_nonneg k). pose proof q_n as Q. pose proof tag_0 as T0. pose proof tag_1 as T1.
  assert (D : delivered r k == 3) by (rewrite staged_delivered; destruct (Nat.ltb_spec k n);
    [reflexivity|lia]).
  rewrite (level_by_hand r staged_form staged_plain staged_nonneg k [0; 1]%nat).
  - rewrite IHk, D, q_S. change (q (length [0; 1]%nat)) with 2. field.
  - repeat constructor; simpl; intuition discriminate.
  - discriminate.
  - intros u. split.
    + intros Hu. split; [exact Hu|]. split; [simpl; lia|]. rewrite IHk.
      destruct Hu as [<-|[<-|[]]]; [rewrite T0|rewrite T1]; lra.
    + intros (Hu & _). exact Hu.
  - intros u Hu. rewrite IHk, D. change (q (length [0; 1]%nat)) with 2.
    assert (E : 3 / 2 == 3 # 2) by reflexivity. rewrite E.
    destruct Hu as [<-|[<-|[]]]; [rewrite T0|rewrite T1]; lra.
Qed.

Lemma staged_finish : finishes r f 0 (2 * m) /\ G r f 0 (2 * m) == total r (2 * m).
Proof.
  apply (finish_at_step r staged_nonneg); [left; reflexivity|apply Nat.le_0_l|].
  pose proof (staged_level (2 * m) (le_n _)) as L. pose proof tag_0 as T. pose proof q_n as E.
  assert (M : q (2 * m) == 2 * q m) by apply q_mult. rewrite L, T, E, M. lra.
Qed.

(** ** The engine *)
Definition stage (x : nat) : nat := if (x <? n)%nat then x else 0%nat.

Lemma in_bounds x : In x (inferences r) -> (x < n + n)%nat.
Proof. intros H. change (inferences r) with (seq 0 (n + n)) in H. apply in_seq in H. lia. Qed.

Lemma staged_ready : ready_by_stages r stage stage.
Proof.
  intros y t Hy. apply in_bounds in Hy. split.
  - intros L. split; [simpl; lia|]. intros x Hx Eu Es. apply staged_done. apply in_bounds in Hx.
    simpl unit_of in Eu. unfold staged_unit, stage, step_run in *.
    destruct (Nat.ltb_spec x n), (Nat.ltb_spec y n); try discriminate; lia.
  - intros (_ & H). unfold stage. destruct (Nat.ltb_spec y n) as [Ly|Ly]; [|lia].
    destruct (Nat.eq_dec y 0) as [->|Ny]; [lia|].
    assert (D : done r (y - 1) t).
    { apply H.
      - change (inferences r) with (seq 0 (n + n)). apply in_seq. lia.
      - simpl. unfold staged_unit. destruct (Nat.ltb_spec (y - 1) n), (Nat.ltb_spec y n); auto; lia.
      - unfold stage. destruct (Nat.ltb_spec (y - 1) n), (Nat.ltb_spec y n); lia. }
    apply staged_done in D. unfold step_run in D. destruct (Nat.ltb_spec (y - 1) n); lia.
Qed.

Lemma staged_order : keeps_order_of_ready r stage (tag r f).
Proof.
  intros x y s Hx Hy Es Hs Hw. injection Es as <-. simpl unit_of.
  unfold started_before in Hw. simpl in Hw. apply Nat.ltb_ge in Hw.
  destruct (before r (tag r f) (staged_unit y) (staged_unit x)) eqn:B; auto. exfalso.
  apply before_true in B. unfold staged_unit, stage, step_run in *.
  pose proof tag_0. pose proof tag_1. assert (0 < q n) by (rewrite <- q_0; apply q_lt; lia).
  destruct (Nat.ltb_spec x n), (Nat.ltb_spec y n); try lia; destruct B as [B|[B1 B2]]; simpl in *; try lia;
    lra.
Qed.

Lemma staged_quiet : quiet r (tag r f) 0 (n - 1) (n - 1).
Proof.
  split; [lia|]. split; [intros; lia|]. intros t0 E. exists (n + t0)%nat.
  destruct (right_side t0) as (E1 & _ & E2). split; [|split].
  - change (inferences r) with (seq 0 (n + n)). apply in_seq. lia.
  - simpl start. f_equal. exact E1.
  - simpl unit_of. rewrite E2. apply before_true. left. rewrite tag_0, tag_1.
    assert (0 < q n) by (rewrite <- q_0; apply q_lt; lia). lra.
Qed.

Lemma nothing_in_flight b : inflight r b == 0.
Proof.
  unfold inflight. rewrite <- (sumq_0 (inferences r)). apply sumq_ext. intros x _.
  destruct (started_before r x b) eqn:E; [|reflexivity]. rewrite staged_got. unfold started_before in E.
  simpl in E.
  rewrite E. simpl cost. lra.
Qed.

Lemma staged_compared : comparison r f (n - 1) (n - 1) (n - 1) (2 * m).
Proof.
  destruct (left_side (n - 1)) as (E1 & _ & E2); [lia|]. split.
  - change (inferences r) with (seq 0 (n + n)). apply in_seq. lia.
  - simpl start. f_equal. exact E1.
  - simpl unit_of. rewrite E2. exact staged_quiet.
  - simpl unit_of. rewrite E2. apply staged_finish.
Qed.

Lemma staged_exceeds : exceeds r f (n - 1) (n - 1) (n - 1) (2 * m) m.
Proof.
  destruct (left_side (n - 1)) as (_ & E1 & E2); [lia|].
  unfold exceeds. simpl unit_of. rewrite E2. destruct staged_finish as [_ ->]. simpl cost. rewrite E1.
  rewrite nothing_in_flight, !staged_total by lia.
  assert (A : q (2 * m) == 2 * q m) by apply q_mult.
  assert (B : q n == q (n - 1) + 1) by (rewrite <- q_S; replace (S (n - 1)) with n by lia; reflexivity).
  rewrite q_n in B. assert (2 <= q m) by (change 2 with (q 2); apply q_le; lia). lra.
Qed.
End Staged.

Theorem one_tag_for_stages_is_unbounded_holds : one_tag_for_stages_is_unbounded.
Proof.
  intros K. set (m := (K + 2)%nat). set (n := (3 * m)%nat).
  assert (Hn : n = (3 * m)%nat) by reflexivity. assert (Hm : (2 <= m)%nat) by (unfold m; lia).
  exists (staged_run n), (stage n), (stage n), (n - 1)%nat, (n - 1)%nat, (n - 1)%nat, (2 * m)%nat. cbv zeta.
  split; [apply (staged_form m n Hn Hm)|]. split; [apply (staged_valid m n Hn Hm)|]. split.
  { intros u Hu. rewrite (staged_true_cost m n Hn Hm) by auto. lra. }
  split; [apply (staged_ready m n Hn Hm)|]. split.
  { intros y t _ E. injection E as <-. unfold stage, step_run. destruct (y <? n)%nat; lia. }
  split; [apply (staged_order m n Hn Hm)|]. split; [apply (staged_compared m n Hn Hm)|].
  pose proof (staged_exceeds m n Hn Hm) as E.
  unfold exceeds in *. assert (q K <= q m) by (apply q_le; unfold m; lia). lra.
Qed.
