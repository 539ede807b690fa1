(** * Theorem B in time: the paper's Theorem B.1, with durations

    Suppose that every step in which something waits delivers at least [R]. Let [g] be the time at which the
    reference finishes the unit of [x] ([finish_time]: inside a step, to the fraction). Then [x] ends by
    [g + I/R + D], where [D] is the most steps that one inference runs; and [I] is at most [M (D - 1)] when no
    step delivers more than [M]. For [R = M] an inference ends at most [2 D - 1] steps after the reference
    has finished its unit: no term for the largest agent is needed. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Lag Completion.

(** The start: no later than [g], or later by at most [(I - c_x + underestimates) / R]. *)
Definition theorem_B_start_time : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) ->
  forall R, 0 < R -> busy r R ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in let g := finish_time r f j n in
  q s <= g \/ q s <= g + (inflight r b - cost r x + underestimate r (tag r f) j b s) / R.

(** The end: [f_x <= g + I/R + D]. *)
Definition theorem_B_time : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) -> never_underestimated r ->
  forall R D, 0 < R -> busy r R -> ends_within r D ->
  forall x s b n t, comparison r f x s b n -> ends r x t ->
  q t <= finish_time r f (unit_of r x) n + inflight r b / R + q D.

(** What is in flight is small: [I <= M (D - 1)]. *)
Definition theorem_inflight_bound : Prop :=
  forall r : run, valid_run r ->
  forall M D, at_most r M -> ends_within r D ->
  forall b, inflight r b <= M * q (D - 1).

(** [f_x <= g + (M/R) (D - 1) + D]. *)
Definition theorem_B1 : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) -> never_underestimated r ->
  forall M R D, 0 < R -> at_most r M -> busy r R -> ends_within r D ->
  forall x s b n t, comparison r f x s b n -> ends r x t ->
  q t <= finish_time r f (unit_of r x) n + M / R * q (D - 1) + q D.

(** An engine that is never short of the full rate while something waits. *)
Definition theorem_B1_full_rate : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) -> never_underestimated r ->
  forall M D, 0 < M -> at_most r M -> busy r M -> ends_within r D ->
  forall x s b n t, comparison r f x s b n -> ends r x t ->
  q t <= finish_time r f (unit_of r x) n + q (D - 1) + q D.

(** [t] exists, and is at most [D] steps after the start. *)
Definition theorem_ends_exists : Prop :=
  forall (r : run) D, ends_within r D ->
  forall x s, In x (inferences r) -> start r x = Some s -> exists t, (t <= s + D)%nat /\ ends r x t.

(** Nothing waits for ever, when waiting steps deliver at least [R]. *)
Definition theorem_B_all_start : Prop :=
  forall r : run, valid_run r ->
  forall R, 0 < R -> (forall x k, In x (inferences r) -> waiting r x k -> R <= delivered r k) ->
  forall x, In x (inferences r) -> exists s, start r x = Some s.
