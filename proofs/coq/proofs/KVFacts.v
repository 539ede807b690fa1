(** * Arithmetic of KV token-steps *)
Require Import List Arith Lia ZArith QArith Lqa Bool.
From Justitia Require Import Sums Windows.
From Justitia Require Export KVCost.
Import ListNotations.

Lemma kv_cost_closed p d : (2 * kv_cost p d = 2 * (p * d) + d * (d + 1))%nat.
Proof. unfold kv_cost. induction d; [simpl; lia|]. rewrite seq_S, sumn_app. simpl sumn at 2. nia. Qed.

Lemma kv_cost_S p n : kv_cost p (S n) = (kv_cost p n + (p + n + 1))%nat.
Proof. unfold kv_cost. rewrite seq_S, sumn_app. simpl. lia. Qed.

Lemma kv_cost_mono p a b : (a <= b)%nat -> (kv_cost p a <= kv_cost p b)%nat.
Proof. induction 1; auto. rewrite kv_cost_S. lia. Qed.

Lemma kv_cost_strict p a b : (a < b)%nat -> (kv_cost p a < kv_cost p b)%nat.
Proof. intros H. pose proof (kv_cost_mono p (S a) b H). rewrite kv_cost_S in *. lia. Qed.

Lemma kv_nonneg p d n : 0 <= kv p d n.
Proof. unfold kv. destruct (n <? d)%nat; [apply q_nonneg|lra]. Qed.

Lemma kv_upto p d n : upto (kv p d) n == q (kv_cost p (Nat.min n d)).
Proof.
  induction n; [reflexivity|]. rewrite upto_S, IHn. unfold kv. destruct (Nat.ltb_spec n d).
  - replace (Nat.min (S n) d) with (S n) by lia. replace (Nat.min n d) with n by lia.
    rewrite kv_cost_S, (q_plus (kv_cost p n)). reflexivity.
  - replace (Nat.min (S n) d) with d by lia. replace (Nat.min n d) with d by lia. lra.
Qed.

Lemma kv_engine_valid w p d test : kv_costs w p d -> valid_engine w (kv_engine p d test).
Proof.
  intros H. constructor; intros x n Hx; cbn [work kv_engine].
  - apply kv_nonneg.
  - rewrite kv_upto, (H x Hx). apply q_le, kv_cost_mono. lia.
Qed.
