(** * The constant of Theorem A cannot be improved

    Take a memory of [k] times [D]. Agent 0 fills it in step 0 with [k] inferences of footprint [D] and
    duration [D]; agent 1 arrives in step 1 with one more. All footprints are equal and divide the
    memory, so Theorem A holds at the full rate and promises a lag of at most 2 D - 1 - D / k. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Windows Demand Schedule RateClock Scheduler Admission System.

Definition latecomer (k D : nat) : demand :=
  {| inferences := seq 0 (S k); agents := seq 0 2; owner := fun x => if x =? k then 1%nat else 0%nat;
     footprint := fun _ => D; duration := fun _ => D; arrival := fun i => i |}.
Definition latecomer_system (k D : nat) : system :=
  System (latecomer k D)
         (fun i => if i =? 0 then q (k * (D * D)) else q (D * D))
         (q (k * D))
         (reserve_peak (latecomer k D) (k * D)).

(** A schedule that anybody might make: nothing before its arrival, within the memory, nothing left free
    while something waits. *)
Record reasonable (W : demand) (start : nat -> nat) (M : nat) : Prop := {
  reasonable_arrivals : starts_after_arrival W start;
  reasonable_memory : memory_safe W start M;
  reasonable_work : work_conserving W start M
}.

(** Every such schedule makes agent 1 lag by 2 D - 1 - 2 D / k at least: within D / k of what Theorem A
    promises. *)
Definition latecomer_lags : Prop :=
  forall k D, (2 <= D)%nat -> (2 * D < k)%nat ->
  forall start, reasonable (latecomer k D) start (k * D) ->
  exists f, reference_finished (latecomer_system k D) 1 f /\
            f + q (2 * D - 1) - q (2 * D) / q k <= q (start k + D).

(** So no constant below 2 D - 1 will do, for any scheduler. *)
Definition constant_is_optimal : Prop :=
  forall D eps, (2 <= D)%nat -> 0 < eps -> exists k,
  forall start, reasonable (latecomer k D) start (k * D) ->
  exists f, reference_finished (latecomer_system k D) 1 f /\ f + q (2 * D - 1) - eps < q (start k + D).

