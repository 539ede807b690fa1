(** * Theorem B for programs

    No reference and no order is assumed any more: the tags are those that the executable clock computes
    from what is delivered, and the order is kept because the executable scheduler keeps it. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Lag ClosedLoop KVCost.

(** Any run that keeps the order of the tags that the clock computes from its service. *)
Definition theorem_B_clock : Prop :=
  forall r : run, let f := reference_of r in
  well_formed r -> valid_run r -> keeps_order r (tag r f) ->
  forall x s b n, comparison r f x s b n ->
  let j := unit_of r x in
  total r s <= G r f j n + inflight r b - cost r x + underestimate r (tag r f) j b s.

(** Clock and scheduler in closed loop, with any rule of service and any admission test. *)
Definition theorem_B_closed_loop : Prop :=
  forall (w : workload) (g : engine), well_formed w -> valid_engine w g ->
  forall T, let r := closed_loop w g T in let f := reference_of r in
  forall x s b n, comparison r f x s b n ->
  let j := unit_of w x in
  total r s <= G r f j n + inflight r b - cost w x + underestimate w (tag w f) j b s.

(** KV token-steps, with any admission test. *)
Definition theorem_B_kv : Prop :=
  forall (w : workload) (p d : nat -> nat) test, well_formed w -> kv_costs w p d ->
  forall T, let r := closed_loop w (kv_engine p d test) T in let f := reference_of r in
  forall x s b n, comparison r f x s b n ->
  let j := unit_of w x in
  total r s <= G r f j n + inflight r b - cost w x + underestimate w (tag w f) j b s.

(** The closed loop is a run in the sense of Theorem B, and keeps the order. *)
Definition theorem_closed_loop_valid : Prop :=
  forall (w : workload) (g : engine), well_formed w -> valid_engine w g ->
  forall T, valid_run (closed_loop w g T).

Definition theorem_closed_loop_keeps_order : Prop :=
  forall (w : workload) (g : engine), well_formed w -> valid_engine w g ->
  forall T, let r := closed_loop w g T in keeps_order r (tag r (reference_of r)).

(** The tags by which the scheduler decides are those of the reference: when a unit is ready, the tag that
    the clock in the loop has for it is final. *)
Definition theorem_closed_loop_tags : Prop :=
  forall (w : workload) (g : engine), well_formed w ->
  forall T k u, (ready w u < k <= T)%nat ->
  clock_tag w (fst (loop w g k)) u = tag w (reference_of (closed_loop w g T)) u.
