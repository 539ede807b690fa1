(** * What the bound of Theorem B does not survive

    Each of these results changes one thing in Theorem B: the tags, the reference's memory of who has left,
    the measure of service, one term, or what is bounded. Each time the excess over the bound has no limit:
    for every [K] there is a run that exceeds it by more than [K]. The reference is always the true one, the
    executable clock driven by what is delivered; the engine keeps the order of the tags that it is given.

    The paper's bound at a constant rate is refuted in [LiteralBound]. *)
Require Import List Arith QArith Qminmax Bool.
From Justitia Require Import Sums.
From Justitia Require Export Lag Completion KVCost ServiceClock Preemption.

(** The start of [x] in step [s] exceeds the bound of Theorem B by more than [K]. *)
Definition exceeds (r : run) (f : reference) (x s b n K : nat) : Prop :=
  G r f (unit_of r x) n + inflight r b - cost r x + q K < total r s.

(** ** One tag for a staged agent

    The paper gives an agent one tag, for the cost of all its stages. The reference then serves it as if
    all of it were ready. [since y] is the first step in which inference [y] is ready: the agent has
    arrived, and the earlier stages have ended. The engine keeps the order among what is ready. *)
Definition ready_by_stages (r : run) (stage since : nat -> nat) : Prop :=
  forall y t, In y (inferences r) ->
    (since y <= t)%nat <->
    (ready r (unit_of r y) <= t)%nat /\
    (forall x, In x (inferences r) -> unit_of r x = unit_of r y -> (stage x < stage y)%nat -> done r x t).

Definition keeps_order_of_ready (r : run) (since : nat -> nat) (tag : nat -> Q) : Prop :=
  forall x y s, In x (inferences r) -> In y (inferences r) -> start r x = Some s ->
    (since y <= s)%nat -> started_before r y (S s) = false ->
      before r tag (unit_of r y) (unit_of r x) = false.

Definition one_tag_for_stages_is_unbounded : Prop :=
  forall K, exists (r : run) (stage since : nat -> nat) (x s b n : nat), let f := reference_of r in
  well_formed r /\ valid_run r /\ never_underestimated r /\
  ready_by_stages r stage since /\ (forall y t, In y (inferences r) -> start r y = Some t ->
    (since y <= t)%nat) /\
  keeps_order_of_ready r since (tag r f) /\
  comparison r f x s b n /\ exceeds r f x s b n K.

(** ** An agent that is dropped when it ends

    A clock that counts the agents that have really not ended, instead of those whose tag is above the
    level. Its level rises too fast while the engine is behind the reference, and newcomers get tags that
    are too large. *)
Definition ended (e : execution) (u k : nat) : bool :=
  forallb (fun x => if (unit_of e x =? u)%nat then Qle_bool (cost e x) (got e x k) else true) (inferences e).

Definition unfinished (e : execution) (k : nat) : list nat :=
  filter (fun u => (ready e u <=? k)%nat && negb (ended e u k)) (units e).

Fixpoint dropping_level (e : execution) (k : nat) : Q :=
  match k with
  | O => 0
  | S k' => dropping_level e k' + delivered e k' / q (length (unfinished e k'))
  end.

Definition dropping_tag (e : execution) (u : nat) : Q := dropping_level e (ready e u) + predicted e u.

(** The engine, and with it [t0], goes by the tags of that clock. *)
Definition dropping_the_ended_is_unbounded : Prop :=
  forall K, exists (r : run) (x s b n : nat), let f := reference_of r in
  well_formed r /\ valid_run r /\ never_underestimated r /\
  keeps_order r (dropping_tag r) /\
  In x (inferences r) /\ start r x = Some s /\ quiet r (dropping_tag r) (unit_of r x) b s /\
  finishes r f (unit_of r x) n /\ exceeds r f x s b n K.

(** ** Memory that is held, counted as service

    With chunked prefill an inference holds memory before it produces anything. Here a prompt is computed
    one token a step, so that in its [n]-th step an inference holds [n + 1] tokens, first of the prompt,
    then of the output. Costs are those of the paper: what is held while tokens are produced. *)
Definition held_with_prefill (p d n : nat) : Q := if (n <? p + d)%nat then q (n + 1) else 0.

Definition delivers_what_is_held (r : run) (p d : nat -> nat) : Prop :=
  forall x k, In x (inferences r) ->
    service r x k = match start r x with
                    | Some s => if (s <=? k)%nat then held_with_prefill (p x) (d x) (k - s) else 0
                    | None => 0 end.

Definition held_memory_is_unbounded : Prop :=
  forall K, exists (r : run) (p d : nat -> nat) (x s b n : nat), let f := reference_of r in
  well_formed r /\ kv_costs r p d /\ never_underestimated r /\ delivers_what_is_held r p d /\
  (forall y t, In y (inferences r) -> start r y = Some t -> (ready r (unit_of r y) <= t)%nat) /\
  keeps_order r (tag r f) /\ comparison r f x s b n /\ exceeds r f x s b n K.

(** ** The underestimate of the agent itself

    Theorem B adds the underestimates of the units ahead, that of the unit itself included. Without the
    latter: *)
Definition underestimate_of_others (w : workload) (tag : nat -> Q) (j b s : nat) : Q :=
  sumq (fun u => if ahead w tag j b s u && negb (u =? j)%nat then Qmax 0 (true_cost w u - predicted w u) else 0)
       (units w).

Definition own_underestimate_is_needed : Prop :=
  forall K, exists (r : run) (x s b n : nat), let f := reference_of r in let j := unit_of r x in
  well_formed r /\ valid_run r /\ keeps_order r (tag r f) /\ comparison r f x s b n /\
  G r f j n + inflight r b - cost r x + underestimate_of_others r (tag r f) j b s + q K < total r s.

(** ** Completions on an engine that preempts

    Without preemption an inference that runs for [d] steps ends [d] steps after its start. With
    preemption it has no such bound, though the order is kept. *)
Definition runs_for (r : preemptive_run) (x d : nat) : Prop :=
  exists T, length (filter (running r x) (seq 0 T)) = d /\ forall k, (T <= k)%nat -> running r x k = false.

Definition completion_is_unbounded : Prop :=
  forall K, exists (r : preemptive_run) (x s d : nat),
  well_formed r /\ valid_preemptive_run r /\ enters_in_order r (tag r (reference_of r)) /\
  In x (inferences r) /\ first_start r x s /\ runs_for r x d /\ ~ done r x (s + d + K).
