(** * Theorem A for the servers and costs that occur

    Each statement names an admission test, a declared cost and a rate of the clock, and gives the bound
    for the rate [R] that the test keeps. *)
Require Import List Arith QArith Qminmax.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission System.

(** The bound, for every inference that the system starts. *)
Definition bounded (Y : system) (R D : nat) : Prop :=
  forall T x s f, In x (inferences Y) -> started Y T x s -> reference_finished Y (owner Y x) f ->
  ends_in_time Y R D x s f.

(** Footprints up to [m_max], in blocks of [u] tokens (1: no blocks), in a memory of [M]. *)
Record footprints_fit (W : demand) (M u m_max : nat) : Prop := {
  block_positive : (1 <= u)%nat;
  memory_in_blocks : Nat.divide u M;
  footprints_in_blocks : forall x, In x (inferences W) -> Nat.divide u (footprint W x);
  footprints_bounded : forall x, In x (inferences W) -> (footprint W x <= m_max)%nat;
  largest_fits : (m_max <= M)%nat
}.

Definition reserved_cost (W : demand) (i : nat) : Q := q (agent_work W i).
Definition kv_cost (W : demand) (prompt : nat -> nat) (i : nat) : Q := q (agent_kv_tokens W prompt i).

(** Reserved cost, clock at the rate that reserving the peak keeps, R = M + u - m_max. *)
Definition theorem_A_reserved : Prop :=
  forall W D M u m_max, well_formed W D -> footprints_fit W M u m_max ->
  let R := (M + u - m_max)%nat in
  bounded (System W (reserved_cost W) (q R) (reserve_peak W M)) R D.

(** The paper's KV cost, clock at half that rate: reserved token-steps are less than twice KV token-
    steps. *)
Definition theorem_A_kv : Prop :=
  forall W prompt D M m_max, well_formed W D -> reserves_peaks W prompt -> footprints_fit W M 1 m_max ->
  let R := (M + 1 - m_max)%nat in
  bounded (System W (kv_cost W prompt) (q R / 2) (reserve_peak W M)) R D.

(** Both hold as well for a server that looks ahead instead of reserving. *)
Definition theorem_A_look_ahead : Prop :=
  forall W prompt D M m_max, well_formed W D -> reserves_peaks W prompt -> footprints_fit W M 1 m_max ->
  let R := (M + 1 - m_max)%nat in
  bounded (System W (reserved_cost W) (q R) (look_ahead W prompt M)) R D /\
  bounded (System W (kv_cost W prompt) (q R / 2) (look_ahead W prompt M)) R D.

(** Equal footprints that divide the memory: the clock may run at the full rate [M], as the paper has it. *)
Definition theorem_A_uniform : Prop :=
  forall W D M u, well_formed W D -> (1 <= u <= M)%nat -> Nat.divide u M ->
  (forall x, In x (inferences W) -> footprint W x = u) ->
  bounded (System W (reserved_cost W) (q M) (reserve_peak W M)) M D.

(** Predicted costs that are too small by a factor of at most [lambda]: clock at R / lambda. *)
Definition theorem_A_predicted : Prop :=
  forall W D M u m_max predicted lambda, well_formed W D -> footprints_fit W M u m_max ->
  0 < lambda -> (forall i, 0 <= predicted i) ->
  (forall i, In i (agents W) -> reserved_cost W i <= lambda * predicted i) ->
  let R := (M + u - m_max)%nat in
  bounded (System W predicted (q R / lambda) (reserve_peak W M)) R D.

(** At most [B] running: the rate is the smaller of M + u - m_max and B m_min. *)
Definition theorem_A_capped : Prop :=
  forall W D M u m_max m_min B, well_formed W D -> footprints_fit W M u m_max ->
  (1 <= B)%nat -> (1 <= m_min)%nat -> (forall x, In x (inferences W) -> (m_min <= footprint W x)%nat) ->
  let R := Nat.min (M + u - m_max) (B * m_min) in
  bounded (System W (reserved_cost W) (q R) (reserve_peak_capped W M B)) R D.

