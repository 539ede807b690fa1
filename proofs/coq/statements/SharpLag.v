(** * When Theorem B holds with equality

    While the reference serves the units ahead, it may serve others too; the bound can be lowered by what these
    receive. The clock always serves the agent that overtook. So an inference that was overtaken stays strictly
    below the bound, and equality needs [I = 0]. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Lag ServiceClock.

(** What the units that are not ahead of [j] receive between the beginning of step [b] and the tag of [j]. *)
Definition others (w : workload) (f : reference) (j b s : nat) : Q :=
  sumq (fun u => if ahead w (tag w f) j b s u then 0
                 else received w f u (tag w f j) - received w f u (V f b)) (units w).

Definition theorem_B_sharp : Prop :=
  forall (r : run) (f : reference),
  well_formed r -> valid_run r -> fair r f -> keeps_order r (tag r f) ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in
  total r s <= G r f j n + inflight r b - cost r x + underestimate r (tag r f) j b s - others r f j b s.

(** [b > 0] says that the inference was overtaken. *)
Definition theorem_B_strict : Prop :=
  forall r : run, let f := reference_of r in
  well_formed r -> valid_run r -> keeps_order r (tag r f) ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in (0 < b)%nat -> 0 < predicted r j ->
  total r s < G r f j n + inflight r b - cost r x + underestimate r (tag r f) j b s.
