(** * Proof of the delay bound, whoever made the schedule

    The reference serves the work that the server does ahead of [x] between [t0] and the finish of [x]'s
    agent. So the server's capacity from t0 + D - 1 to the start of [x] is no more than the reference's
    from [t0] to that finish. *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums Windows Demand Schedule FluidReference DelayBound WorkAhead.
Import ListNotations.

Lemma capacity_split g a n : (capacity_before g a + sumn g (seq a n) = capacity_before g (a + n))%nat.
Proof. unfold capacity_before. rewrite seq_app, sumn_app. simpl. lia. Qed.

Lemma capacity_grows g a b : (a <= b)%nat -> (capacity_before g a <= capacity_before g b)%nat.
Proof. intros. replace b with (a + (b - a))%nat by lia. rewrite <- capacity_split. lia. Qed.

Lemma capacity_at_most g M a n : (forall t, (g t <= M)%nat) ->
  (capacity_before g (a + n) <= capacity_before g a + M * n)%nat.
Proof.
  intros H. rewrite <- capacity_split. apply Nat.add_le_mono_l. rewrite <- (seq_length n a) at 2.
  rewrite <- sumn_const. apply sumn_le. auto.
Qed.

Lemma reference_works_ahead W tag received capacity t0 j f :
  fluid_reference W received capacity -> (t0 <= arrival W j)%nat -> through_with W tag received j f ->
  q (work_ahead W tag t0 j) <= capacity f - capacity (q t0).
Proof.
  intros F H0 [Fa Fd].
  assert (L : q t0 <= f) by (apply Qle_trans with (q (arrival W j)); [apply q_le; auto|auto]).
  unfold work_ahead. rewrite <- sumq_q.
  apply Qle_trans with (sumq (fun i => received i f - received i (q t0)) (agents W)); [|apply F; auto].
  apply sumq_le. intros i Hi. destruct (ahead W tag t0 j i) eqn:E.
  - unfold ahead in E. apply andb_prop in E as [E1 E2]. apply Nat.leb_le in E1. apply Qle_bool_iff in E2.
    rewrite (nothing_before_arrival W received capacity F i t0) by auto. specialize (Fd i Hi E2). lra.
  - rewrite q_0. pose proof (received_grows W received capacity F i t0 f Hi L). lra.
Qed.

Theorem theorem_A_abstract_holds : theorem_A_abstract.
Proof.
  intros W D tag T start busy received capacity [Wf Ord Sat Fl Cap] x f Hx HT Hf.
  destruct (server_works_ahead W D tag T start busy Wf Ord Sat x Hx HT) as (t0 & Ht0 & Hs).
  exists t0. split; [exact Ht0|]. cbv zeta in Hs. set (b := (t0 + (D - 1))%nat) in *.
  pose proof (reference_works_ahead W tag received capacity t0 (owner W x) f Fl Ht0 Hf) as Hr.
  apply q_le in Hs. rewrite q_plus in Hs.
  assert (Hc : q (capacity_before busy (start x))
               <= q (capacity_before busy b) + q (sumn busy (seq b (start x - b)))).
  { rewrite <- q_plus. apply q_le. rewrite capacity_split. apply capacity_grows. lia. }
  rewrite <- !Cap in Hc. lra.
Qed.

Theorem theorem_A_measured_holds : theorem_A_measured.
Proof.
  intros W D tag T start busy received capacity M C HM x f Hx HT Hf.
  destruct (theorem_A_abstract_holds W D tag T start busy received capacity C x f Hx HT Hf) as (t0 & _ & H).
  pose proof (capacity_at_most busy M t0 (D - 1) HM) as L. apply q_le in L. rewrite q_plus in L.
  destruct C as [_ _ _ _ Cap]. rewrite !Cap in H. rewrite Cap. lra.
Qed.

Theorem theorem_A_constant_rate_holds : theorem_A_constant_rate.
Proof.
  intros W D tag T start R received C x f Hx HT Hf.
  destruct (theorem_A_abstract_holds _ _ _ _ _ _ _ _ C x f Hx HT Hf) as (t0 & _ & H).
  cbv beta in H. rewrite q_plus in H. lra.
Qed.

