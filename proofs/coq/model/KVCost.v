(** * Work as KV token-steps

    An inference with [p] prompt tokens that decodes [d] tokens holds [p + n + 1] KV tokens in its [n]-th step,
    [n = 0 .. d - 1]. Its service in a step is what it holds in that step, its cost the sum. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows.
From Justitia Require Export ClosedLoop.

Definition kv (p d n : nat) : Q := if (n <? d)%nat then q (p + n + 1) else 0.

Definition kv_cost (p d : nat) : nat := sumn (fun n => p + n + 1)%nat (seq 0 d).

(** The costs of a workload are those of its token counts. *)
Definition kv_costs (w : workload) (p d : nat -> nat) : Prop :=
  forall x, In x (inferences w) -> cost w x == q (kv_cost (p x) (d x)).

(** An engine that runs each inference for [d] steps on end, with any admission test. *)
Definition kv_engine (p d : nat -> nat) (test : (nat -> option nat) -> nat -> nat -> bool) : engine :=
  Engine (fun x => kv (p x) (d x)) test.

(** ** Memory *)
Section Memory.
Variable w : workload.
Variables p d : nat -> nat.

(** KV tokens held in step [k]. *)
Definition held (st : nat -> option nat) (k : nat) : nat :=
  sumn (fun x => match st x with
                 | Some s => if inwin s (d x) k then p x + (k - s) + 1 else 0
                 | None => 0 end)%nat (inferences w).

(** KV tokens reserved in step [k], when each inference reserves what it will hold at its end. *)
Definition reserved (st : nat -> option nat) (k : nat) : nat :=
  sumn (fun x => match st x with
                 | Some s => if inwin s (d x) k then p x + d x else 0
                 | None => 0 end)%nat (inferences w).

(** Admit what can be reserved within a capacity of [M] tokens. *)
Definition reserve (M : nat) (st : nat -> option nat) (k x : nat) : bool :=
  (reserved st k + p x + d x <=? M)%nat.
End Memory.
