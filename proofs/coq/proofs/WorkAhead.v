(** * The work that the server does ahead of an inference

    Let [x] start in step [s], and let its busy period (with the tag of its agent) begin in [t0]. What
    runs from step t0 + D - 1 on, when everything started before [t0] has ended, belongs to agents that
    arrived since [t0] and have no larger tag. So in those steps the server reserves at most the work of
    these agents, less that of [x]. *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums Windows Demand Schedule BusyPeriod.
Import ListNotations.

Section WorkAhead.
Variable W : demand.
Variable D : nat.
Variable tag : nat -> Q.
Variable T : nat.
Variables start busy : nat -> nat.
Hypothesis W_fine : well_formed W D.
Hypothesis order : keeps_order W start tag T.
Hypothesis saturated : saturates W start busy T.

(** Agents that arrived in or after step [t0], with a tag up to that of [j]. *)
Definition ahead (t0 j i : nat) : bool := (t0 <=? arrival W i) && Qle_bool (tag i) (tag j).
Definition work_ahead (t0 j : nat) : nat :=
  sumn (fun i => if ahead t0 j i then agent_work W i else 0)%nat (agents W).

Lemma regroup (P : nat -> bool) :
  (sumn (fun y => if P (owner W y) then work W y else 0) (inferences W)
   <= sumn (fun i => if P i then agent_work W i else 0) (agents W))%nat.
Proof.
  apply Nat.le_trans with
    (sumn (fun i => sumn (fun y => if P i then (if owner W y =? i then work W y else 0) else 0)
                         (inferences W)) (agents W))%nat.
  - rewrite sumn_swap. apply sumn_le. intros y Hy. destruct (P (owner W y)) eqn:E; [|lia].
    apply Nat.le_trans with
      ((fun i => if P i then (if owner W y =? i then work W y else 0) else 0) (owner W y))%nat.
    + simpl. rewrite E, Nat.eqb_refl. lia.
    + apply (sumn_In_le (fun i => if P i then (if owner W y =? i then work W y else 0) else 0)%nat).
      apply (owners_known W D); auto.
  - apply sumn_le. intros i _. destruct (P i); [unfold agent_work; lia|]. rewrite sumn_const. lia.
Qed.

Lemma server_works_ahead x : In x (inferences W) -> (start x <= T)%nat -> exists t0,
  (t0 <= arrival W (owner W x))%nat /\
  let b := (t0 + (D - 1))%nat in
  (sumn busy (seq b (start x - b)) + work W x <= work_ahead t0 (owner W x))%nat.
Proof.
  intros Hx HT. set (j := owner W x). set (s := start x).
  destruct (busy_period W start tag (tag j) s) as (t0 & Ht0s & Hbusy & Hsince).
  assert (Ht0 : (t0 <= arrival W j)%nat) by (apply Hsince; auto; apply Qle_refl).
  exists t0. split; [exact Ht0|]. cbv zeta. set (b := (t0 + (D - 1))%nat).
  assert (Hj : ahead t0 j j = true).
  { unfold ahead. apply andb_true_intro. split; [apply Nat.leb_le; auto|apply Qle_bool_iff, Qle_refl]. }
  (* what runs in [b, s) is ahead *)
  assert (Hrun : forall y t, In y (inferences W) -> (b <= t < s)%nat -> running W start y t = true ->
                 ahead t0 j (owner W y) = true).
  { intros y t Hy Ht Hr. unfold running, inwin in Hr. apply andb_prop in Hr as [R1 R2].
    apply Nat.leb_le in R1. apply Nat.ltb_lt in R2. pose proof (durations_bounded W D W_fine y Hy) as Dy.
    assert (Hs : (t0 <= start y < s)%nat) by (unfold b in Ht; lia).
    destruct (Hbusy _ Hs) as (z & Hz & Wz & Pz).
    assert (Py : tag (owner W y) <= tag j).
    { apply Qle_trans with (tag (owner W z)); auto. apply (order y z (start y)); auto. unfold s in Hs. lia. }
    unfold ahead. apply andb_true_intro. split; [|apply Qle_bool_iff; auto].
    apply Nat.leb_le. apply Hsince; auto. lia. }
  pose (mine := fun y => if ahead t0 j (owner W y) then work W y else 0%nat).
  apply Nat.le_trans with (sumn mine (inferences W)); [|apply regroup].
  apply Nat.le_trans with (sumn (load W start) (seq b (s - b)) + work W x)%nat.
  - apply Nat.add_le_mono_r, sumn_le. intros t Ht. apply in_seq in Ht.
    destruct (Hbusy t) as (z & Hz & Wz & _); [unfold b in *; lia|]. apply (saturated z); auto.
    unfold s in *. lia.
  - unfold load. rewrite sumn_swap.
    replace (work W x) with (mine x) by (unfold mine; fold j; rewrite Hj; reflexivity).
    apply sumn_le_except; auto.
    + (* x itself has not run *)
      apply sumn_zero. intros t Ht. apply in_seq in Ht. unfold running, inwin. fold s.
      destruct (Nat.leb_spec s t); simpl; auto. lia.
    + intros y Hy. unfold mine. destruct (ahead t0 j (owner W y)) eqn:E.
      * unfold work. rewrite Nat.mul_comm.
        apply Nat.le_trans with
          (sumn (fun t => (if inwin (start y) (duration W y) t then 1 else 0) * footprint W y)%nat
                (seq b (s - b))).
        -- apply sumn_le. intros t _. unfold running. destruct (inwin _ _ t); lia.
        -- rewrite sumn_mulr. apply Nat.mul_le_mono_r, window_count_le.
      * rewrite sumn_zero; [lia|]. intros t Ht. apply in_seq in Ht.
        destruct (running W start y t) eqn:Er; [|lia].
        rewrite (Hrun y t) in E; auto; [discriminate|]. lia.
Qed.
End WorkAhead.

