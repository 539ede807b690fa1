(** * The delay bound as the paper has it, and why it cannot be so

    The paper's Theorem B.1 bounds the lag by 2 c_max + C_max / M, where the reference runs at the full
    capacity M. Read literally, with c_max a number of token-steps, it is false; and no scheduler that
    respects the memory can save it. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission System.
From Justitia Require Import TheoremAInstances.

(** The statement of the paper, with the KV cost and a server that reserves the peak. *)
Definition literal_bound : Prop :=
  forall W prompt D M m_max, well_formed W D -> reserves_peaks W prompt -> footprints_fit W M 1 m_max ->
  let Y := System W (kv_cost W prompt) (q M) (reserve_peak W M) in
  forall c_max C_max, (forall x, In x (inferences W) -> q (kv_tokens W prompt x) <= c_max) ->
  (forall i, In i (agents W) -> kv_cost W prompt i <= C_max) ->
  forall T x s f, In x (inferences W) -> started Y T x s -> reference_finished Y (owner W x) f ->
  q (s + duration W x) <= f + 2 * c_max + C_max / q M.

Definition literal_bound_is_false : Prop := ~ literal_bound.

(** [n] agents that arrive in step 0, each with one inference of footprint [m] that runs one step. *)
Definition singles (m n : nat) : demand :=
  {| inferences := seq 0 n; agents := seq 0 n; owner := fun x => x;
     footprint := fun _ => m; duration := fun _ => 1%nat; arrival := fun _ => 0%nat |}.

(** *** A hole in the memory

    Fragments have a footprint of 2: one prompt token, one decoded. Two of them never fit in a memory of 3, so the
    server does 2 token-steps a step. Each declares its cost, 2, which is its KV cost and its reserved cost, so that
    c_max = C_max = 2 whatever [n]. *)
Definition fragments (n : nat) : demand := singles 2 n.
Definition fragments_at_rate (G : Q) (n : nat) : system :=
  System (fragments n) (fun _ => 2) G (reserve_peak (fragments n) 3).

(** With its clock at rate [G], the reference finishes every agent by [f]; yet whatever the schedule, as
    long as it keeps to a memory of 3, something ends later than [f + B]. *)
Definition beyond (G : Q) (B n : nat) (f : Q) : Prop :=
  (forall i, In i (agents (fragments n)) -> reference_finished (fragments_at_rate G n) i f) /\
  (forall start, memory_safe (fragments n) start 3 ->
     exists x, In x (inferences (fragments n)) /\ f + q B < q (start x + 1)).

(** Against a reference at the full rate 3, no scheduler has any bound. *)
Definition no_scheduler_keeps_the_full_rate : Prop := forall B, exists n f, beyond 3 B n f.

(** The rate of Theorem A, here 3 + 1 - 2 = 2, is the best there is: the same is true of any larger rate. *)
Definition rate_is_optimal : Prop := forall G B, 2 < G -> exists n f, beyond G B n f.

(** *** Blocks

    Memory is handed out in blocks of 16 tokens, and there is one. An inference with no prompt and one token to decode
    has KV cost 1 and footprint 16. Theorem A holds here at R = 16 with the reserved cost; but with the KV cost the
    clock may not run at R / 2: that half suffices is true of blocks of one token only. *)
Definition in_one_block (n : nat) : demand := singles 16 n.

Definition half_rate_needs_single_tokens : Prop :=
  forall B, exists n f,
  (forall i, In i (agents (in_one_block n)) ->
     reference_finished (System (in_one_block n) (fun _ => 1) (16 / 2) (reserve_peak (in_one_block n) 16)) i f) /\
  (forall start, memory_safe (in_one_block n) start 16 ->
     exists x, In x (inferences (in_one_block n)) /\ f + q B < q (start x + 1)).
