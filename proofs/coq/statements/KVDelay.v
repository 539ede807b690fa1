(** * Theorem B in time for the executable server of KV token-steps

    Inference [x] runs for [d x] steps on end, and a step delivers exactly the tokens held in it. So no step
    delivers more than the memory [M], and an inference ends by [g + (M/R) (D - 1) + d x]. *)
Require Import List Arith QArith.
From Justitia Require Import Sums.
From Justitia Require Export Lag Completion KVCost.

(** What a step delivers is what is held in it. *)
Definition theorem_kv_delivers_held : Prop :=
  forall w p d test T k, let r := closed_loop w (kv_engine p d test) T in
  delivered r k == q (held w p d (start r) k).

(** Inference [x] ends [d x] steps after its start. *)
Definition theorem_kv_ends : Prop :=
  forall w p d test T, kv_costs w p d -> let r := closed_loop w (kv_engine p d test) T in
  forall x s, In x (inferences w) -> (1 <= d x)%nat -> start r x = Some s -> ends r x (s + d x).

(** [f_x <= g + I/R + d_x], with any admission test. *)
Definition theorem_B_kv_time : Prop :=
  forall w p d test T, well_formed w -> kv_costs w p d -> never_underestimated w ->
  let r := closed_loop w (kv_engine p d test) T in let f := reference_of r in
  forall R, 0 < R -> busy r R ->
  forall x s b n, comparison r f x s b n ->
  q (s + d x) <= finish_time r f (unit_of w x) n + inflight r b / R + q (d x).

(** With any admission test that keeps what is held within [M]. *)
Definition theorem_B1_kv : Prop :=
  forall w p d test T, well_formed w -> kv_costs w p d -> never_underestimated w ->
  let r := closed_loop w (kv_engine p d test) T in let f := reference_of r in
  forall M R D, 0 < R -> busy r R -> (forall x, In x (inferences w) -> (d x <= D)%nat) ->
  (forall k, (held w p d (start r) k <= M)%nat) ->
  forall x s b n, comparison r f x s b n ->
  q (s + d x) <= finish_time r f (unit_of w x) n + q M / R * q (D - 1) + q (d x).

(** The test that reserves the peak of each inference is one of them. *)
Definition theorem_reserve_within_capacity : Prop :=
  forall w p d M T, NoDup (inferences w) ->
  let r := closed_loop w (kv_engine p d (reserve w p d M)) T in
  forall k, (held w p d (start r) k <= reserved w p d (start r) k <= M)%nat.

Definition theorem_B1_reserve : Prop :=
  forall w p d M T, NoDup (inferences w) -> well_formed w -> kv_costs w p d -> never_underestimated w ->
  let r := closed_loop w (kv_engine p d (reserve w p d M)) T in let f := reference_of r in
  forall R D, 0 < R -> busy r R -> (forall x, In x (inferences w) -> (d x <= D)%nat) ->
  forall x s b n, comparison r f x s b n ->
  q (s + d x) <= finish_time r f (unit_of w x) n + q M / R * q (D - 1) + q (d x).
