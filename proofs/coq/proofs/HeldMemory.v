(** * Counting held memory as service has no bound

    Two agents, each one inference with a prompt of C - 1 tokens and one token to decode, so of cost C;
    one runs at a time. Prompts are computed one token a step: an inference holds 1, 2, ..., C tokens in
    its C steps, C (C + 1) / 2 in all. The second starts when all of that has been "delivered". The
    reference, driven by it, was through with both agents when it had handed out 2 C, in step 4 u - 1
    when C = u (4 u - 1). *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts ClockFacts OrderFacts LevelByHand NegativeResults.
Import ListNotations.

Section Held.
Variables u h C : nat.
Hypothesis u_two : (2 <= u)%nat.
Hypothesis h_is : (h + 1 = 4 * u)%nat.
Hypothesis C_is : C = (u * h)%nat.

Definition prompt_tokens (_ : nat) : nat := (C - 1)%nat.
Definition decode_tokens (_ : nat) : nat := 1%nat.
Definition twins : workload := Workload [0; 1]%nat [0; 1]%nat [0; 1]%nat (fun x => x) (fun i => i)
  (fun _ => 1%nat) (fun _ => q C) (fun _ => q C) (fun _ => 0%nat) (fun i => i).
Definition twin_start (x : nat) : nat := if (x =? 0)%nat then 0%nat else C.
Definition twins_run : run :=
  Run (Execution twins (fun x k =>
        if (twin_start x <=? k)%nat
        then held_with_prefill (prompt_tokens x) (decode_tokens x) (k - twin_start x) else 0))
      (fun x => Some (twin_start x)).
Local Notation r := twins_run.
Local Notation f := (reference_of r).

Lemma C_large : (h < C)%nat /\ (u <= C)%nat.
Proof. rewrite C_is. nia. Qed.

Lemma held_nonneg p d n : 0 <= held_with_prefill p d n.
Proof. unfold held_with_prefill. destruct (n <? p + d)%nat; [apply q_nonneg|lra]. Qed.

Lemma twins_nonneg k : 0 <= delivered r k.
Proof.
  apply sumq_nonneg. intros x _. simpl. destruct (twin_start x <=? k)%nat; [apply held_nonneg|lra].
Qed.

Lemma twins_delivered k : (k < C)%nat -> delivered r k == q (k + 1).
Proof.
  intros H. unfold delivered. simpl. unfold held_with_prefill, prompt_tokens, decode_tokens.
  change (twin_start 1) with C. destruct (Nat.leb_spec C k); [lia|]. rewrite Nat.sub_0_r.
  destruct (Nat.ltb_spec k (C - 1 + 1)); [lra|lia].
Qed.

Lemma twins_total k : (k <= C)%nat -> total r k == (1 # 2) * (q k * (q k + 1)).
Proof.
  induction k; intros H; [reflexivity|]. unfold total in *.
  rewrite upto_S, IHk, twins_delivered, q_plus, q_1, q_S by lia. ring.
Qed.

Lemma twins_form : well_formed r.
Proof.
  split; simpl; auto.
  - repeat constructor; simpl; intuition discriminate.
  - repeat constructor; simpl; intuition discriminate.
  - intros _ _. apply q_nonneg.
Qed.

Lemma twins_plain : plain r.
Proof. split; auto. Qed.

Lemma twins_costs : kv_costs r prompt_tokens decode_tokens.
Proof.
  intros x _. simpl. unfold kv_cost, prompt_tokens, decode_tokens. simpl. pose proof C_large.
  replace (C - 1 + 0 + 1 + 0)%nat with C by lia. reflexivity.
Qed.

Lemma twins_predicted : never_underestimated r.
Proof. intros i [<-|[<-|[]]]; unfold true_cost; simpl; lra. Qed.

Lemma twins_tag i : In i (units r) -> tag r f i == q C.
Proof.
  intros Hi. rewrite (tag_by_hand r twins_form twins_plain twins_nonneg i Hi). simpl. lra.
Qed.

(** ** The reference *)
Lemma total_h : total r h == 2 * q C.
Proof.
  rewrite twins_total by (pose proof C_large; lia). rewrite <- q_1, <- q_plus, h_is, C_is, !q_mult.
  change (q 4) with 4.
  lra.
Qed.

Lemma total_below k : (k < h)%nat -> total r k < 2 * q C /\ total r k + delivered r k <= 2 * q C.
Proof.
  intros H. pose proof C_large as [HC _]. rewrite <- total_h.
  assert (M : total r (S k) <= total r h).
  { unfold total. apply upto_mono; [apply twins_nonneg|lia]. }
  unfold total in *. rewrite upto_S in M.
  assert (0 < delivered r k); [|lra]. rewrite twins_delivered by lia. rewrite <- q_0. apply q_lt. lia.
Qed.

Lemma twins_level k : (k <= h)%nat -> V f k == (1 # 2) * total r k.
Proof.
  induction k; intros H; [reflexivity|]. specialize (IHk ltac:(lia)).
  destruct (total_below k ltac:(lia)) as [B1 B2].
  rewrite (level_by_hand r twins_form twins_plain twins_nonneg k [0; 1]%nat).
  - unfold total in *. rewrite IHk, upto_S. change (q (length [0; 1]%nat)) with 2. field.
  - repeat constructor; simpl; intuition discriminate.
  - discriminate.
  - intros i. split; [|intros (Hi & _); exact Hi]. intros Hi. split; [exact Hi|]. split; [simpl; lia|].
    rewrite (twins_tag i Hi), IHk. lra.
  - intros i Hi. rewrite (twins_tag i Hi), IHk. change (q (length [0; 1]%nat)) with 2.
    setoid_replace (delivered r k / 2) with ((1 # 2) * delivered r k) by field. lra.
Qed.

Lemma twins_finish : finishes r f 1 h /\ G r f 1 h == total r h.
Proof.
  apply (finish_at_step r twins_nonneg); [simpl; auto|simpl; lia|].
  rewrite twins_level, total_h, (twins_tag 1) by (simpl; auto). lra.
Qed.

(** ** The engine *)
Lemma twins_order : keeps_order r (tag r f).
Proof.
  intros x y s Hx Hy E [_ W]. injection E as <-. unfold started_before in W. cbn in W.
  destruct (before r (tag r f) (unit_of r y) (unit_of r x)) eqn:B; auto. exfalso. apply before_true in B.
  rewrite !twins_tag in B by auto. destruct B as [B|[_ B]]; [lra|]. simpl in B.
  destruct Hx as [<-|[<-|[]]], Hy as [<-|[<-|[]]]; try lia. simpl in W. discriminate.
Qed.

Lemma twins_compared : comparison r f 1 C 0 h.
Proof.
  split; [simpl; auto|reflexivity| |apply twins_finish].
  split; [lia|]. split; [|discriminate]. intros k _ (z & Hz & _ & B). apply before_true in B.
  change (unit_of r 1) with 1%nat in B. rewrite (twins_tag 1), (twins_tag (unit_of r z)) in B by (simpl;
    auto).
  destruct B as [B|[_ B]]; [lra|]. destruct Hz as [<-|[<-|[]]]; simpl in B; lia.
Qed.

Lemma twins_exceeds K : (K < u)%nat -> exceeds r f 1 C 0 h K.
Proof.
  intros HK. unfold exceeds. change (unit_of r 1) with 1%nat. destruct twins_finish as [_ ->].
  assert (I : inflight r 0 == 0) by reflexivity. pose proof C_large as [HC Hu].
  rewrite I, total_h, twins_total by lia. change (cost r 1) with (q C).
  assert (A : q K + 1 <= q C) by (rewrite <- q_S; apply q_le; lia).
  assert (B : q 5 <= q C) by (apply q_le; lia). change (q 5) with 5 in B.
  assert (5 * q C <= q C * q C) by (apply Qmult_le_compat_r; lra). lra.
Qed.
End Held.

Theorem held_memory_is_unbounded_holds : held_memory_is_unbounded.
Proof.
  intros K. set (u := (K + 2)%nat). set (h := (4 * u - 1)%nat). set (C := (u * h)%nat).
  assert (Hu : (2 <= u)%nat) by (unfold u; lia). assert (Hh : (h + 1 = 4 * u)%nat) by (unfold h; lia).
  assert (HC : C = (u * h)%nat) by reflexivity.
  exists (twins_run C), (prompt_tokens C), decode_tokens, 1%nat, C, 0%nat, h. cbv zeta.
  split; [apply twins_form|]. split; [apply (twins_costs u h C Hu Hh HC)|]. split; [apply twins_predicted|].
  split; [intros x k _; reflexivity|]. split; [intros; simpl; lia|].
  split; [apply (twins_order u h C Hu Hh HC)|]. split; [apply (twins_compared u h C Hu Hh HC)|].
  apply (twins_exceeds u h C Hu Hh HC). unfold u. lia.
Qed.
