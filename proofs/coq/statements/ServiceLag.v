(** * Theorem B: the lag in service

    On any engine that keeps the order of the tags, an inference starts when no more has been delivered than
    the reference needs to finish its unit, plus [I], what was in flight when it was last overtaken, less its
    own cost. Nothing is assumed about memory, packing, batch limits, or the length of steps. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Lag.

(** With predicted costs, the underestimates of the units ahead are added, that of the unit itself included. *)
Definition theorem_B_predicted : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in
  total r s <= G r f j n + inflight r b - cost r x + underestimate r (tag r f) j b s.

(** [S(s) <= G_j + I - c_x]. *)
Definition theorem_B : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) -> never_underestimated r ->
  forall x s b n, comparison r f x s b n ->
  total r s <= G r f (unit_of r x) n + inflight r b - cost r x.

(** The same at the boundaries of steps: [n] is any step by whose beginning the reference has finished. *)
Definition theorem_B_steps : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) -> never_underestimated r ->
  forall x s b n, In x (inferences r) -> start r x = Some s -> quiet r (tag r f) (unit_of r x) b s ->
  (ready r (unit_of r x) <= n)%nat -> tag r f (unit_of r x) <= V f n ->
  total r s <= total r n + inflight r b - cost r x.

(** Every start can be compared: [b] exists, and is unique; the step in which the reference finishes exists as soon as
    the level has reached the tag; and [G_j] lies between what was delivered before and after that step. *)
Definition theorem_quiet_exists : Prop :=
  forall r tag j s, exists b, quiet r tag j b s /\ forall b', quiet r tag j b' s -> b' = b.

Definition theorem_reference_finishes : Prop :=
  forall (e : execution) (f : reference), well_formed e -> fair e f ->
  forall j n, In j (units e) -> (ready e j <= n)%nat -> tag e f j <= V f n ->
  exists m, (m <= n)%nat /\ finishes e f j m.

Definition theorem_G_range : Prop :=
  forall (e : execution) (f : reference), fair e f ->
  forall j n, finishes e f j n -> total e n <= G e f j n /\ G e f j n <= total e (S n).
