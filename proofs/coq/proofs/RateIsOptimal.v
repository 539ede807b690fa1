(** * No larger rate can be kept

    Of inferences that fill more than half of the memory, at most one runs in a step, so the last of n ends at n or later. A
    reference that hands out G a step finishes them all by n c / G + 2, where c is the cost of each. If G > c, the
    difference grows with n. *)
Require Import List Arith Lia ZArith QArith Lqa Bool.
From Justitia Require Import Sums Windows LevelFacts Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import LiteralBound.
From Justitia Require Import RateClockFacts RateClockFinish AdmissionGuarantees.
Import ListNotations.

Section Singles.
Variables m M : nat.                    (* footprint and memory *)
Variables c G : Q.                      (* declared cost and rate of the clock *)
Hypothesis m_fits : (1 <= m <= M)%nat.
Hypothesis only_one : (M < 2 * m)%nat.
Hypothesis c_pos : 0 < c.
Hypothesis G_large : c < G.

Lemma one_at_a_time n start t : memory_safe (singles m n) start M -> (load (singles m n) start t <= m)%nat.
Proof.
  intros H. specialize (H t). assert (E : Nat.divide m (load (singles m n) start t)).
  { apply sumn_divide. intros x _. destruct (running _ start x t); [exists 1%nat|exists 0%nat]; simpl; lia. }
  destruct E as [[|[|a]] E]; nia.
Qed.

(** Work that is over before step [n - 1] has been done in the steps before it, at most one inference in each. *)
Lemma last_single n start : (1 <= n)%nat -> memory_safe (singles m n) start M ->
  exists x, In x (inferences (singles m n)) /\ (n - 1 <= start x)%nat.
Proof.
  intros Hn Hs. simpl.
  assert (Dec : (exists x, In x (seq 0 n) /\ (n - 1 <= start x)%nat) \/
                (forall x, In x (seq 0 n) -> (start x < n - 1)%nat)).
  { induction (seq 0 n) as [|a l [IH|IH]]; simpl.
    - right. tauto.
    - left. destruct IH as (x & H1 & H2). exists x. auto.
    - destruct (Nat.le_gt_cases (n - 1) (start a)); [left; exists a; auto|right].
      intros x [<-|Hx]; auto. }
  destruct Dec as [|H]; auto. exfalso.
  assert (E1 : (sumn (load (singles m n) start) (seq 0 (n - 1)) <= m * (n - 1))%nat).
  { rewrite <- (seq_length (n - 1) 0) at 2. rewrite <- sumn_const. apply sumn_le.
    intros t _. apply one_at_a_time. auto. }
  assert (E2 : (sumn (load (singles m n) start) (seq 0 (n - 1)) = m * n)%nat).
  { unfold load. simpl inferences. rewrite sumn_swap. rewrite <- (seq_length n 0) at 2. rewrite <- sumn_const.
    apply sumn_ext. intros x Hx. specialize (H x Hx).
    assert (S : sumn (fun t => (if inwin (start x) 1 t then 1 else 0) * m)%nat (seq 0 (n - 1)) = m).
    { rewrite sumn_mulr, window_count.
      replace (Nat.min (0 + (n - 1)) (start x + 1) - Nat.max 0 (start x))%nat with 1%nat by lia. lia. }
    etransitivity; [|exact S]. apply sumn_ext. intros t _. unfold running. simpl.
    destruct (inwin (start x) 1 t); lia. }
  nia.
Qed.

Local Notation Y := (fun n => System (singles m n) (fun _ => c) G (reserve_peak (singles m n) M)).

Lemma singles_finished n K : q n * c < G * q K ->
  forall i, In i (agents (singles m n)) -> reference_finished (Y n) i (q (0 + K)).
Proof.
  intros HK i Hi. split; [apply q_le; simpl; lia|].
  apply (clock_is_finite (seq 0 n) (fun _ => 0%nat) (fun _ => c) G); auto; [lra|intros; lra|].
  rewrite sumq_const, seq_length. exact HK.
Qed.

Theorem singles_lag B : exists n f,
  (forall i, In i (agents (singles m n)) -> reference_finished (Y n) i f) /\
  (forall start, memory_safe (singles m n) start M ->
     exists x, In x (inferences (singles m n)) /\ f + q B < q (start x + 1)).
Proof.
  set (a := (q B + 2) * G / (G - c)).
  assert (Ha0 : 0 <= a).
  { unfold a. apply div_nonneg; [lra|]. pose proof (q_nonneg B). apply Qmult_le_0_compat; lra. }
  set (n := S (step_of a + 1)).
  assert (Hn : a < q n).
  { destruct (step_of_bounds a Ha0) as [_ L]. unfold n. rewrite q_S, q_plus, q_1. lra. }
  assert (Hn2 : (q B + 2) * G < q n * (G - c)).
  { assert (E : a * (G - c) == (q B + 2) * G) by (unfold a; field; lra).
    rewrite <- E. apply Qmult_lt_compat_r; lra. }
  set (e := q n * c / G).
  assert (He0 : 0 <= e).
  { apply div_nonneg; [lra|]. pose proof (q_nonneg n). apply Qmult_le_0_compat; lra. }
  assert (Ee : G * e == q n * c) by (unfold e; apply mul_div; lra).
  set (K := S (S (step_of e))).
  assert (HK : e < q K /\ q K <= e + 2).
  { destruct (step_of_bounds e He0) as [L1 L2]. unfold K. rewrite !q_S. lra. }
  exists n, (q (0 + K)). split.
  - apply (singles_finished n K). rewrite <- Ee, !(Qmult_comm G). apply Qmult_lt_compat_r; lra.
  - intros start Hs. destruct (last_single n start) as (x & Hx & Hl); auto; [unfold n; lia|].
    exists x. split; auto. assert (q n <= q (start x + 1)) by (apply q_le; lia).
    assert (e + 2 + q B < q n).
    { destruct (Qlt_le_dec (e + 2 + q B) (q n)) as [|L]; auto. exfalso.
      assert (G * q n <= G * (e + 2 + q B)) by (rewrite !(Qmult_comm G); apply Qmult_le_compat_r; lra).
      lra. }
    simpl plus. lra.
Qed.
End Singles.

Theorem rate_is_optimal_holds : rate_is_optimal.
Proof.
  intros G B HG. apply (singles_lag 2 3 2 G); try lia; [reflexivity|exact HG].
Qed.

Theorem no_scheduler_keeps_the_full_rate_holds : no_scheduler_keeps_the_full_rate.
Proof. intros B. apply rate_is_optimal_holds. reflexivity. Qed.

Theorem half_rate_needs_single_tokens_holds : half_rate_needs_single_tokens.
Proof. intros B. apply (singles_lag 16 16 1 (16 / 2)); try lia; reflexivity. Qed.
