(** * Theorem B for first starts on an engine that preempts

    The bound in service holds for the first start of each inference. How long it then takes to end is
    another matter: preemption has no bound on that. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Preemption ServiceClock.

Definition theorem_B_preemption : Prop :=
  forall (r : preemptive_run) (f : reference),
  well_formed r -> valid_preemptive_run r -> fair r f -> enters_in_order r (tag r f) ->
  forall x s b n, first_comparison r f x s b n ->
  let j := unit_of r x in
  total r s <= G r f j n + in_engine r b - cost r x + underestimate r (tag r f) j b s.

(** With the executable clock. *)
Definition theorem_B_preemption_clock : Prop :=
  forall r : preemptive_run, let f := reference_of r in
  well_formed r -> valid_preemptive_run r -> enters_in_order r (tag r f) ->
  forall x s b n, first_comparison r f x s b n ->
  let j := unit_of r x in
  total r s <= G r f j n + in_engine r b - cost r x + underestimate r (tag r f) j b s.
