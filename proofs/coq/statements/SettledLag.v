(** * Theorem B with agents that leave

    Agents that end early or are cancelled are settled at what they were delivered. The bound stays as it is,
    the cost of an agent being what it was really delivered: [I], [c_x] and the underestimates count no more
    than that. The order kept, and [t0], go by the tags given on arrival. All of it holds whether debts are forgotten
    when nobody is left, or not. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Lag Settling CancelLoop LeavingAgents.

(** Against the tag that the unit was given: [v] is any level of step [n] that has reached it. *)
Definition theorem_B_settled_given : Prop :=
  forall (r : run) (leave : nat -> option nat) (forgets : bool), let tag := given_tag r leave forgets in
  well_formed r -> valid_run r -> valid_leaves r leave -> keeps_order_of_present r leave tag ->
  forall x s b n v, In x (inferences r) -> start r x = Some s ->
  let j := unit_of r x in
  quiet r tag j b s ->
  let level := settled_level r leave forgets in
  (ready r j <= n)%nat -> level n <= v -> v <= level (S n) -> tag j <= v ->
  total r s <= settled_G r leave forgets n v + inflight r b - cost r x + underestimate r tag j b s.

(** Against the moment at which the reference is through with the unit, whether it was settled or not. *)
Definition theorem_B_settled : Prop :=
  forall (r : run) (leave : nat -> option nat) (forgets : bool), let tag := given_tag r leave forgets in
  well_formed r -> valid_run r -> valid_leaves r leave -> keeps_order_of_present r leave tag ->
  forall x s b n v, In x (inferences r) -> start r x = Some s ->
  let j := unit_of r x in
  quiet r tag j b s -> through r leave forgets j n v ->
  total r s <= settled_G r leave forgets n v + inflight r b - cost r x + underestimate r tag j b s.

(** For a unit that has left there is no lag at all: the reference is through with it no sooner than the engine. *)
Definition theorem_B_left : Prop :=
  forall (r : run) (leave : nat -> option nat) (forgets : bool),
  well_formed r -> valid_run r -> valid_leaves r leave ->
  forall x s l n v, In x (inferences r) -> start r x = Some s -> leave (unit_of r x) = Some l ->
  (l <= n)%nat -> settled_level r leave forgets n <= v ->
  total r s + cost r x <= settled_G r leave forgets n v.

(** Step [n] hands out all that is delivered, unless the reference is through with everybody there. *)
Definition theorem_settling_conserves : Prop :=
  forall (r : run) (leave : nat -> option nat) (forgets : bool),
  well_formed r -> valid_run r -> valid_leaves r leave ->
  forall n, let f := settled_level r leave forgets in
  settled_G r leave forgets n (f (S n)) == total r (S n) \/
  forall u, In u (units r) -> settled_tag r leave forgets n u <= f (S n).

(** Clock and scheduler in closed loop, where agents leave whenever a rule says so: when they are done, when they
    are cancelled. Any rule that looks at the past, any rule of service, any admission test. *)
Definition theorem_B_cancelled : Prop :=
  forall (w : workload) (g : engine) (rule : leave_rule) (forgets : bool), well_formed w -> valid_engine w g ->
  forall T, let r := cancel_run w g rule forgets T in let leave := cancel_leave w g rule forgets T in
  let tag := given_tag r leave forgets in
  forall x s b G, In x (inferences r) -> start r x = Some s ->
  let j := unit_of w x in
  quiet r tag j b s -> cancel_G w g rule forgets T j = Some G ->
  total r s <= G + inflight r b - cost r x + underestimate r tag j b s.

(** What the program computes is what the theorems above speak of: its run is one with leaves and keeps the order,
    and its reference finishes are moments at which the reference is through. *)
Definition theorem_cancelled_run : Prop :=
  forall (w : workload) (g : engine) (rule : leave_rule) (forgets : bool), well_formed w -> valid_engine w g ->
  forall T, let r := cancel_run w g rule forgets T in let leave := cancel_leave w g rule forgets T in
  valid_run r /\ valid_leaves r leave /\ keeps_order_of_present r leave (given_tag r leave forgets) /\
  forall j G, cancel_G w g rule forgets T j = Some G ->
    exists n v, through r leave forgets j n v /\ G == settled_G r leave forgets n v.

(** For what [leaving_outcome] prints. *)
Definition theorem_B_leaving_outcome : Prop :=
  forall (given : list leaving_agent), sound_leaving given -> forall forgets M B T,
  let w := leaving_workload given in
  let r := cancel_run w (leaving_engine given M B) (leaving_rule given) forgets T in
  let tag := given_tag r (cancel_leave w (leaving_engine given M B) (leaving_rule given) forgets T) forgets in
  let printed := leaving_outcome given forgets M B T in
  forall x s b G, nth_error (leaving_starts printed) x = Some (Some s) ->
  let j := unit_of w x in
  quiet r tag j b s -> nth_error (leaving_G printed) j = Some (Some G) ->
  total r s <= G + inflight r b - cost r x + underestimate r tag j b s.
