(** * Theorem A: the delay bound for the executable clock and scheduler *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission System.

(** Every inference [x] of an agent that the reference finishes at [f] ends by f + (D - 1) + d - w / R.
    There is no assumption on how parallel an agent is, and the size of the largest agent does not
    appear. *)
Definition theorem_A : Prop :=
  forall Y R D, keeps_rate Y R D ->
  forall T x s f, In x (inferences Y) -> started Y T x s -> reference_finished Y (owner Y x) f ->
  ends_in_time Y R D x s f.

(** In short: no later than 2 D - 1 steps after the reference. *)
Definition theorem_A_simple : Prop :=
  forall Y R D, keeps_rate Y R D ->
  forall T x s f, In x (inferences Y) -> started Y T x s -> reference_finished Y (owner Y x) f ->
  q (s + duration Y x) <= f + q (2 * D - 1).

(** The bound is not about a start that never comes: by then [x] has been started. *)
Definition theorem_A_no_starvation : Prop :=
  forall Y R D, keeps_rate Y R D ->
  forall T x f, In x (inferences Y) -> reference_finished Y (owner Y x) f ->
  f + q (D - 1) - q (work Y x) / q R < q T ->
  exists s, started Y T x s.

(** And the reference does finish: an inference starts within (total declared cost) / rate + D + 1 steps
    of its arrival. *)
Definition theorem_A_eventually_started : Prop :=
  forall Y R D, keeps_rate Y R D ->
  forall x K, In x (inferences Y) -> sumq (declared_cost Y) (agents Y) < clock_rate Y * q K ->
  exists s, started Y (arrival Y (owner Y x) + K + D) x s.

(** Whatever the tags, a server that reserves before it admits never exceeds its memory. *)
Definition theorem_A_memory_safe : Prop :=
  forall W D M tag admits, well_formed W D -> (forall x, In x (inferences W) -> (1 <= duration W x)%nat) ->
  stays_within W admits M ->
  forall T t, (t < T)%nat -> (load W (schedule_until W tag admits T) t <= M)%nat.

