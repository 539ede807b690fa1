(** * Theorem B with agents that leave: proofs *)
Require Import List Arith Lia QArith Qminmax Lqa Bool.
From Justitia Require Import Sums LevelFacts OrderFacts ServiceFacts AheadFacts GivenLag SettlingFacts.
From Justitia Require Export SettledLag.
Import ListNotations.

Section Settled.
Variable r : run.
Variable leave : nat -> option nat.
Variable forgets : bool.
Hypothesis form : well_formed r.
Hypothesis valid : valid_run r.
Hypothesis leaves : valid_leaves r leave.
Notation kept := (settlement r leave).
Notation level := (settled_level r leave forgets).
Notation given := (given r leave forgets kept (delivered r)).
Notation part := (part r leave forgets kept (delivered r)).

Let account : valid_service r := valid_run_service r valid.
Let served_nonneg : forall k, 0 <= delivered r k := delivered_nonneg r account.

Lemma settlement_range u : In u (units r) -> 0 <= kept u /\ kept u <= predicted r u.
Proof.
  intros Hu. unfold settlement. pose proof (predicted_nonneg r form u Hu). destruct (leave u) as [l|]; [|lra].
  split; [|apply Q.le_min_l]. apply Q.min_glb; auto. apply sumq_nonneg. intros x Hx.
  pose proof (got_nonneg r account x l Hx). destruct (unit_of r x =? u)%nat; lra.
Qed.

Lemma settlement_true u l : leave u = Some l -> kept u == Qmin (predicted r u) (true_cost r u).
Proof.
  intros El. unfold settlement. rewrite El.
  assert (E : delivered_to r u l == true_cost r u).
  { apply sumq_ext. intros x Hx. destruct (Nat.eqb_spec (unit_of r x) u); [|lra].
    symmetry. apply (cost_before_leave r leave leaves); congruence. }
  rewrite E. reflexivity.
Qed.

Lemma settled_G_parts n v : settled_G r leave forgets n v ==
  total r n + sumq (fun u => (given u n + part u n v) - given u n) (units r).
Proof.
  unfold settled_G. apply Qplus_comp; [reflexivity|].
  pose proof (fill_table r leave forgets kept (delivered r) n (level n) v) as F. unfold table_in in F.
  unfold settled_tag. rewrite F. apply sumq_ext. intros u _. unfold SettlingFacts.part, settled_level. lra.
Qed.

Lemma present_order : keeps_order_of_present r leave (given_tag r leave forgets) ->
  keeps_order_of_started r (given_tag r leave forgets).
Proof.
  intros order x y s s' Hx Hy E1 E2 L. apply (order x y s); auto.
  - split; [lia|]. unfold started_before. rewrite E2. apply Nat.ltb_ge. lia.
  - unfold has_left. destruct (leave (unit_of r y)) as [l|] eqn:El; auto.
    pose proof (start_before_leave r leave leaves y s' l Hy E2 El). apply Nat.leb_gt. lia.
Qed.

(** As long as no debt of a unit ahead was forgotten. *)
Lemma settled_lag_clean x s b n v : In x (inferences r) -> start r x = Some s ->
  let tag := given_tag r leave forgets in let j := unit_of r x in
  clean r tag j b s ->
  (forall u, In u (units r) -> (b <= ready r u)%nat -> remembered r leave forgets u n) ->
  (ready r j <= n)%nat -> level n <= v -> v <= level (S n) -> tag j <= v ->
  total r s <= settled_G r leave forgets n v + inflight r b - cost r x + underestimate r tag j b s.
Proof.
  intros Hx Hs tag j HQ HR Hr V1 V2 Hv. rewrite settled_G_parts.
  pose proof (leave_after_ready r leave leaves) as LR.
  apply (lag_given r tag given form valid); auto.
  - intros u k Hu. apply given_step; auto.
  - intros u k Hu. apply given_zero; auto.
  - intros k. apply given_rate; auto.
  - intros u Hu. pose proof (part_nonneg r leave forgets kept (delivered r) form u n v Hu V1). lra.
  - intros u Hu A. apply ahead_true in A as [[A1 _] A]. apply before_false in A.
    pose proof (given_enough r leave forgets kept (delivered r) form served_nonneg LR settlement_range u n v Hu
                  (HR u Hu A1) V1 V2 (Qle_trans _ _ _ A Hv)) as E.
    destruct (has_left leave u n) eqn:Le.
    + unfold has_left in Le. destruct (leave u) as [l|] eqn:El; [|discriminate].
      pose proof (settlement_true u l El). lra.
    + pose proof (Q.le_min_l (predicted r u) (true_cost r u)). lra.
Qed.

Lemma settled_G_ge n v : level n <= v -> total r n <= settled_G r leave forgets n v.
Proof.
  intros H. rewrite settled_G_parts.
  assert (0 <= sumq (fun u => (given u n + part u n v) - given u n) (units r)); [|lra].
  apply sumq_nonneg. intros u Hu. pose proof (part_nonneg r leave forgets kept (delivered r) form u n v Hu H). lra.
Qed.

Lemma inflight_nonneg b : 0 <= inflight r b.
Proof.
  apply sumq_nonneg. intros x Hx. pose proof (service_within_cost r account x b Hx).
  destruct (started_before r x b); lra.
Qed.

Lemma underestimate_nonneg tag j b s : 0 <= underestimate r tag j b s.
Proof. apply sumq_nonneg. intros u _. destruct (ahead r tag j b s u); [apply Q.le_max_l|lra]. Qed.

(** Before its leave, all of [x] was delivered. *)
Lemma settled_lag_left x s l n v : In x (inferences r) -> start r x = Some s ->
  leave (unit_of r x) = Some l -> (l <= n)%nat -> level n <= v ->
  total r s + cost r x <= settled_G r leave forgets n v.
Proof.
  intros Hx Hs El L Hv. pose proof (start_before_leave r leave leaves x s l Hx Hs El) as Lt.
  pose proof (settled_G_ge n v Hv) as G. pose proof (total_mono r account l n L) as M.
  pose proof (total_window r s l) as W. rewrite (cost_before_leave r leave leaves x l Hx El).
  assert (Z : got r x s == 0).
  { apply (got_zero r valid); auto. unfold started_before. rewrite Hs. apply Nat.ltb_irrefl. }
  assert (I : got r x l - got r x s <= sumq (fun y => got r y l - got r y s) (inferences r)).
  { apply (sumq_In_le (fun y => got r y l - got r y s) (inferences r) x Hx). intros y Hy.
    pose proof (got_mono r account y s l Hy ltac:(lia)). lra. }
  lra.
Qed.
(** ** Forgetting

    When nobody is left the engine is empty. So whoever comes later has nobody before it that it could blame, and
    the bound may be taken from there. *)
Definition empty_in (f : nat) : bool := forgets && nobody_left r leave f.

Lemma empty_left f u : empty_in f = true -> In u (units r) -> (ready r u < f)%nat ->
  exists l, leave u = Some l /\ (l <= f)%nat.
Proof.
  unfold empty_in. intros E Hu L. apply andb_prop in E as [_ E]. unfold nobody_left in E.
  rewrite forallb_forall in E. specialize (E u Hu). destruct (Nat.ltb_spec (ready r u) f); [|lia].
  cbn [negb orb] in E. unfold has_left in E. destruct (leave u) as [l|]; [|discriminate].
  exists l. split; auto. apply Nat.leb_le. auto.
Qed.

Lemma last_empty n : exists f, (f <= n)%nat /\ (f = 0%nat \/ empty_in f = true) /\
  forall f', (f < f' <= n)%nat -> empty_in f' = false.
Proof.
  induction n as [|n (f & L & H1 & H2)].
  - exists 0%nat. split; auto. split; auto. intros; lia.
  - destruct (empty_in (S n)) eqn:E.
    + exists (S n). split; auto. split; auto. intros; lia.
    + exists f. split; auto. split; auto. intros f' Hf. destruct (Nat.eq_dec f' (S n)) as [->|]; auto. apply H2. lia.
Qed.

Lemma empty_inflight f : empty_in f = true -> inflight r f == 0.
Proof.
  intros E. rewrite <- (sumq_0 (inferences r)). apply sumq_ext. intros x Hx. unfold started_before.
  destruct (start r x) as [s|] eqn:Hs; [|lra]. destruct (Nat.ltb_spec s f) as [L|]; [|lra].
  pose proof (no_start_before_ready r valid x s Hx Hs).
  destruct (empty_left f (unit_of r x) E (unit_known r form x Hx) ltac:(lia)) as (l & El & Ll).
  pose proof (cost_before_leave r leave leaves x l Hx El). pose proof (got_mono r account x l f Hx Ll).
  pose proof (service_within_cost r account x f Hx). lra.
Qed.

Lemma clean_from_empty tag j b f s : empty_in f = true -> (b <= f <= s)%nat -> quiet r tag j b s -> clean r tag j f s.
Proof.
  intros E L (Q1 & Q2 & _). split; [lia|]. split; [intros k Hk; apply Q2; lia|].
  intros y s' Hy Sy Ls _. destruct (Nat.le_gt_cases f (ready r (unit_of r y))) as [|C]; auto. exfalso.
  destruct (empty_left f (unit_of r y) E (unit_known r form y Hy) C) as (l & El & Ll).
  pose proof (start_before_leave r leave leaves y s' l Hy Sy El). lia.
Qed.

Lemma underestimate_later tag j b f s : (b <= f)%nat -> underestimate r tag j f s <= underestimate r tag j b s.
Proof.
  intros L. apply sumq_le. intros u _. pose proof (Q.le_max_l 0 (true_cost r u - predicted r u)).
  destruct (ahead r tag j f s u) eqn:A; [|destruct (ahead r tag j b s u); lra].
  apply ahead_true in A as [A1 A2]. rewrite (proj2 (ahead_true r tag j b s u)); [lra|]. split; [lia|auto].
Qed.

Lemma settled_lag_given : keeps_order_of_present r leave (given_tag r leave forgets) ->
  forall x s b n v, In x (inferences r) -> start r x = Some s ->
  let tag := given_tag r leave forgets in let j := unit_of r x in
  quiet r tag j b s ->
  (ready r j <= n)%nat -> level n <= v -> v <= level (S n) -> tag j <= v ->
  total r s <= settled_G r leave forgets n v + inflight r b - cost r x + underestimate r tag j b s.
Proof.
  intros order x s b n v Hx Hs tag j HQ Hr V1 V2 Hv.
  pose proof (inflight_nonneg b) as I0. pose proof (underestimate_nonneg tag j b s) as U0.
  pose proof (no_start_before_ready r valid x s Hx Hs) as Rs. fold j in Rs.
  destruct (last_empty n) as (f & Lf & Ef & Nf).
  destruct (Nat.le_gt_cases f (ready r j)) as [C|C].
  2: { destruct Ef as [->|Ef]; [lia|].
       destruct (empty_left f j Ef (unit_known r form x Hx) C) as (l & El & Ll).
       pose proof (settled_lag_left x s l n v Hx Hs El ltac:(lia) V1). lra. }
  assert (Rem : forall u, (f <= ready r u)%nat -> remembered r leave forgets u n).
  { intros u Lu f' Hf. apply (Nf f'). lia. }
  destruct (Nat.le_gt_cases f b) as [D|D].
  - apply settled_lag_clean; auto.
    + apply quiet_clean; auto. apply present_order. auto.
    + intros u _ Lu. apply Rem. lia.
  - destruct Ef as [->|Ef]; [lia|]. pose proof (empty_inflight f Ef) as If.
    pose proof (underestimate_later tag j b f s ltac:(lia)) as Uf.
    pose proof (settled_lag_clean x s f n v Hx Hs (clean_from_empty tag j b f s Ef ltac:(lia) HQ)
                  (fun u _ Lu => Rem u Lu) Hr V1 V2 Hv) as B. cbv zeta in B. fold tag in B. fold j in B. lra.
Qed.
End Settled.

Theorem theorem_B_settled_given_holds : theorem_B_settled_given.
Proof.
  intros r leave forgets tag form valid leaves order x s b n v Hx Hs j HQ level Hr V1 V2 Hv.
  apply settled_lag_given; auto.
Qed.

Theorem theorem_B_left_holds : theorem_B_left.
Proof. intros r leave forgets form valid leaves x s l n v. apply settled_lag_left; auto. Qed.

Theorem theorem_B_settled_holds : theorem_B_settled.
Proof.
  intros r leave forgets tag form valid leaves order x s b n v Hx Hs j HQ (Hr & V1 & V2 & T).
  pose proof (inflight_nonneg r valid b). pose proof (underestimate_nonneg r tag j b s).
  pose proof (unit_known r form x Hx) as Hj.
  destruct (has_left leave j n) eqn:Le.
  - unfold has_left in Le. destruct (leave j) as [l|] eqn:El; [|discriminate]. apply Nat.leb_le in Le.
    pose proof (settled_lag_left r leave forgets form valid leaves x s l n v Hx Hs El Le V1). lra.
  - apply theorem_B_settled_given_holds; auto.
    pose proof (tag_after r leave forgets (settlement r leave) (delivered r) (leave_after_ready r leave leaves) j n
                  Hj Hr (here_remembered r leave forgets j n Hj Le)) as E.
    rewrite Le in E. unfold settled_tag, given_tag, tag in *. fold j. lra.
Qed.

Theorem theorem_settling_conserves_holds : theorem_settling_conserves.
Proof.
  intros r leave forgets form valid leaves n f.
  destruct (fill_conserves r leave forgets (settlement r leave) (delivered r) form
              (delivered_nonneg r (valid_run_service r valid)) n) as [E|E]; auto.
  left. unfold settled_G, f. rewrite total_S. apply Qplus_comp; [reflexivity|]. exact E.
Qed.
