(** * Demands

    An *agent* arrives in some step and brings *inferences*, all of which are ready at once. An inference
    holds a reserved *footprint* of KV tokens for its *duration*, a number of steps. Agents and
    inferences are named by natural numbers. *)
Require Import List Arith.
From Justitia Require Import Sums.

Record demand := {
  inferences : list nat;
  agents : list nat;
  owner : nat -> nat;           (* the agent of an inference *)
  footprint : nat -> nat;       (* KV tokens that an inference reserves while it runs *)
  duration : nat -> nat;        (* steps that an inference runs *)
  arrival : nat -> nat          (* the step in which an agent arrives *)
}.

(** What the server is asked to do: token-steps of reserved memory. *)
Definition work (W : demand) (x : nat) : nat := footprint W x * duration W x.
Definition agent_work (W : demand) (i : nat) : nat :=
  sumn (fun x => if owner W x =? i then work W x else 0) (inferences W).

(** The only assumptions on a demand: its inferences are distinct, each belongs to an agent of the
    demand, and none runs longer than [D] steps. Nothing is said about how many inferences an agent has. *)
Record well_formed (W : demand) (D : nat) : Prop := {
  inferences_distinct : NoDup (inferences W);
  owners_known : forall x, In x (inferences W) -> In (owner W x) (agents W);
  durations_bounded : forall x, In x (inferences W) -> duration W x <= D;
  some_duration : 1 <= D
}.

(** ** Prompt and decode tokens

    An LLM inference with a prompt of p tokens that decodes d tokens runs d steps and holds p + i tokens
    in its i-th. Reserving its peak means a footprint of p + d. *)
Definition reserves_peaks (W : demand) (prompt : nat -> nat) : Prop :=
  forall x, In x (inferences W) -> footprint W x = prompt x + duration W x.

(** The paper's cost of an inference, its KV token-time: (p + 1) + ... + (p + d). *)
Definition kv_tokens (W : demand) (prompt : nat -> nat) (x : nat) : nat :=
  sumn (fun i => prompt x + S i) (seq 0 (duration W x)).
Definition agent_kv_tokens (W : demand) (prompt : nat -> nat) (i : nat) : nat :=
  sumn (fun x => if owner W x =? i then kv_tokens W prompt x else 0) (inferences W).

