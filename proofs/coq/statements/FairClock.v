(** * The clock is a fair reference

    Driven by any stream of service, the executable clock describes a reference that is fair; it loses
    nothing; and its tags are those of packet fair queueing. *)
Require Import List Arith QArith Qminmax.
From Justitia Require Import Sums.
From Justitia Require Export ServiceClock.

Definition theorem_clock_fair : Prop :=
  forall e : execution, well_formed e -> valid_service e -> fair e (reference_of e).

(** A step hands out all that is delivered, unless the reference has finished everything released. *)
Definition theorem_clock_work_conserving : Prop :=
  forall e : execution, well_formed e -> valid_service e ->
  forall k, let f := reference_of e in
  handed e f k (V f (S k)) == delivered e k \/
  forall i, In i (agents e) -> latest (clock_at e (delivered e) (S k)) i <= V f (S k).

(** The first stage of an agent, or its only unit: base is the virtual time when it becomes ready. *)
Definition theorem_base_first : Prop :=
  forall e : execution, well_formed e -> valid_service e -> let f := reference_of e in
  forall u, In u (units e) ->
  (forall z, In z (units e) -> agent_of e z = agent_of e u -> (ready e z <= ready e u)%nat -> z = u) ->
  base f u == V f (ready e u).

(** A later stage [u], where [u'] is the stage before. *)
Definition theorem_base_next : Prop :=
  forall e : execution, well_formed e -> valid_service e -> let f := reference_of e in
  forall u u', In u (units e) -> In u' (units e) ->
  agent_of e u' = agent_of e u -> (ready e u' < ready e u)%nat ->
  (forall z, In z (units e) -> agent_of e z = agent_of e u ->
     (ready e u' <= ready e z <= ready e u)%nat -> z = u \/ z = u') ->
  base f u == Qmax (V f (ready e u)) (tag e f u').
