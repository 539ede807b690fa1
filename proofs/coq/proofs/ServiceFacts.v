(** * Sums of the delivered service *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums.
From Justitia Require Export Service.

Section Service.
Variable e : execution.
Hypothesis valid : valid_service e.

Lemma delivered_nonneg k : 0 <= delivered e k.
Proof. apply sumq_nonneg. intros x Hx. apply service_nonneg; auto. Qed.

Lemma total_S n : total e (S n) == total e n + delivered e n.
Proof. apply upto_S. Qed.

Lemma total_mono a b : (a <= b)%nat -> total e a <= total e b.
Proof. apply upto_mono, delivered_nonneg. Qed.

Lemma total_by_inference n : total e n == sumq (fun x => got e x n) (inferences e).
Proof. unfold total, got, upto, delivered. rewrite (sumq_swap (fun k x => service e x k)). reflexivity. Qed.

Lemma total_window a b : total e b - total e a == sumq (fun x => got e x b - got e x a) (inferences e).
Proof. rewrite sumq_minus, !total_by_inference. reflexivity. Qed.

Lemma got_S x n : got e x (S n) == got e x n + service e x n.
Proof. apply upto_S. Qed.

Lemma got_nonneg x n : In x (inferences e) -> 0 <= got e x n.
Proof. intros Hx. apply upto_nonneg. intros k. apply service_nonneg; auto. Qed.

Lemma got_mono x a b : In x (inferences e) -> (a <= b)%nat -> got e x a <= got e x b.
Proof. intros Hx. apply upto_mono. intros k. apply service_nonneg; auto. Qed.

Lemma cost_nonneg x : In x (inferences e) -> 0 <= cost e x.
Proof. intros Hx. pose proof (service_within_cost e valid x 0 Hx) as H. exact H. Qed.
End Service.
