(** * A run without preemption

    Each inference starts at most once, in step [start x], and stays in the engine until it ends. *)
Require Import List Arith QArith.
From Justitia Require Export Service.

Record run := Run {
  exec :> execution;
  start : nat -> option nat      (** [None]: it never starts *)
}.

Definition started_before (r : run) (x n : nat) : bool :=
  match start r x with Some s => (s <? n)%nat | None => false end.

(** Ready in step [k], and not started in step [k] or before. *)
Definition waiting (r : run) (y k : nat) : Prop :=
  (ready r (unit_of r y) <= k)%nat /\ started_before r y (S k) = false.

(** An inference receives nothing before it starts, and starts only when its unit is ready. *)
Record valid_run (r : run) : Prop := {
  valid_run_service : valid_service r;
  no_service_before_start : forall x k, In x (inferences r) ->
    started_before r x (S k) = false -> service r x k == 0;
  no_start_before_ready : forall x s, In x (inferences r) ->
    start r x = Some s -> (ready r (unit_of r x) <= s)%nat
}.
