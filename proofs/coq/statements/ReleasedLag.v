(** * Theorem B with stages that really wait for one another

    When a stage becomes ready is not given from outside: it depends on when the stage before it has ended, hence
    on the starts, hence on the tags. The bound holds stage by stage all the same, and for any other rule by which
    units become ready. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Lag KVCost ReleaseLoop StagedAgents.

(** Any rule of release that looks at the past, any rule of service, any admission test. [G] is computed. *)
Definition theorem_B_released : Prop :=
  forall (w : workload) (g : engine) (rule : release_rule), well_formed w -> valid_engine w g ->
  forall T, let r := release_run w g rule T in let tag := tag r (reference_of r) in
  forall x s b G, In x (inferences r) -> start r x = Some s ->
  let j := unit_of w x in
  quiet r tag j b s -> released_G w g rule T j = Some G ->
  total r s <= G + inflight r b - cost w x + underestimate r tag j b s.

(** Stages of agents, KV token-steps. *)
Definition theorem_B_stages_kv : Prop :=
  forall (w : workload) (p d : nat -> nat) test, well_formed w -> kv_costs w p d ->
  forall (arrival : nat -> nat) (prev : nat -> option nat),
  let rule := after_stage w arrival prev d in let g := kv_engine p d test in
  forall T, let r := release_run w g rule T in let tag := tag r (reference_of r) in
  forall x s b G, In x (inferences r) -> start r x = Some s ->
  let j := unit_of w x in
  quiet r tag j b s -> released_G w g rule T j = Some G ->
  total r s <= G + inflight r b - cost w x + underestimate r tag j b s.

(** The run is one in the sense of Theorem B, with the steps of release that came out of it, and keeps the order;
    the tags and reference finishes that the program computes are those of its reference. *)
Definition theorem_released_run : Prop :=
  forall (w : workload) (g : engine) (rule : release_rule), well_formed w -> valid_engine w g ->
  forall T, let r := release_run w g rule T in let f := reference_of r in
  valid_run r /\ keeps_order r (tag r f) /\
  (forall j t, released_tag w g rule T j = Some t -> t = tag r f j) /\
  (forall j G, released_G w g rule T j = Some G -> exists n, finishes r f j n /\ G == Reference.G r f j n).

(** A stage is ready after the stage before: that was ready earlier, and all of it has ended ... *)
Definition theorem_stage_after_stage : Prop :=
  forall (w : workload) (g : engine) arrival prev steps T, let rule := after_stage w arrival prev steps in
  let state := release_loop w g rule T in
  forall u n, r_ready state u = Some n ->
  (arrival (agent_of w u) <= n)%nat /\
  forall u', prev u = Some u' ->
    (exists n', r_ready state u' = Some n' /\ (n' < n)%nat) /\
    forall x, In x (inferences w) -> unit_of w x = u' ->
      exists s, r_starts state x = Some s /\ (s + steps x <= n)%nat.

(** ... and at once after it. *)
Definition theorem_stage_at_once : Prop :=
  forall (w : workload) (g : engine) arrival prev steps T, let rule := after_stage w arrival prev steps in
  let state := release_loop w g rule T in
  forall u n, In u (units w) -> (n < T)%nat -> (arrival (agent_of w u) <= n)%nat ->
  (forall u', prev u = Some u' ->
    (exists n', r_ready state u' = Some n' /\ (n' < n)%nat) /\
    forall x, In x (inferences w) -> unit_of w x = u' ->
      exists s, r_starts state x = Some s /\ (s < n)%nat /\ (s + steps x <= n)%nat) ->
  exists m, r_ready state u = Some m /\ (m <= n)%nat.

(** ** For what [outcome] prints

    [x] is the number of an inference, and the quantities on both sides are those of the printed run. *)
Definition theorem_B_outcome : Prop :=
  forall (given : list staged_agent), sound given -> forall M B T,
  let w := staged_workload given in
  let r := release_run w (staged_engine given (staged_limits given M B)) (staged_rule given) T in
  let tag := tag r (reference_of r) in
  let printed := outcome given M B T in
  forall x s b G, nth_error (starts_of_calls printed) x = Some (Some s) ->
  let j := unit_of w x in
  quiet r tag j b s -> nth_error (G_of_stages printed) j = Some (Some G) ->
  total r s <= G + inflight r b - cost w x + underestimate r tag j b s.

Definition theorem_outcome_tags : Prop :=
  forall (given : list staged_agent), sound given -> forall M B T,
  let r := release_run (staged_workload given) (staged_engine given (staged_limits given M B)) (staged_rule given) T in
  forall u t, nth_error (tags_of_stages (outcome given M B T)) u = Some (Some t) ->
  t == tag r (reference_of r) u.
