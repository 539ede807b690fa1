(** * What is to be run

    An agent consists of inferences. A _unit_ is what carries one tag: a whole agent, or one stage of an
    agent. Inferences, units and agents are numbers; the lists say which of them there are.

    A unit becomes ready in step [ready u]: an agent when it arrives, a stage when the stage before it has
    ended. The reference knows a unit by its predicted cost. [rank] decides between units with equal tags. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.

Record workload := Workload {
  inferences : list nat;
  units : list nat;
  agents : list nat;
  unit_of : nat -> nat;      (** the unit of an inference *)
  agent_of : nat -> nat;     (** the agent of a unit *)
  weight : nat -> nat;       (** the weight of an agent *)
  cost : nat -> Q;           (** the cost of an inference, in any measure of work that adds up *)
  predicted : nat -> Q;      (** the predicted cost of a unit *)
  ready : nat -> nat;        (** the step in which a unit becomes ready *)
  rank : nat -> nat          (** the place of a unit among units with the same tag *)
}.

Record well_formed (w : workload) : Prop := {
  units_distinct : NoDup (units w);
  agents_distinct : NoDup (agents w);
  unit_known : forall x, In x (inferences w) -> In (unit_of w x) (units w);
  agent_known : forall u, In u (units w) -> In (agent_of w u) (agents w);
  weight_positive : forall i, In i (agents w) -> (1 <= weight w i)%nat;
  predicted_nonneg : forall u, In u (units w) -> 0 <= predicted w u
}.

(** What a unit really costs. *)
Definition true_cost (w : workload) (u : nat) : Q :=
  sumq (fun x => if (unit_of w x =? u)%nat then cost w x else 0) (inferences w).

Definition never_underestimated (w : workload) : Prop :=
  forall u, In u (units w) -> true_cost w u <= predicted w u.
