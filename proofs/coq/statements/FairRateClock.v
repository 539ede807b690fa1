(** * The clock is a fair reference

    The virtual clock of [RateClock.v] hands out its rate and no more, is work-conserving, finishes
    agents in the order of their tags, and [reference_finish] is the moment at which it does so. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Level RateClock.

Section Statements.
Variable agents : list nat.
Variable arrival : nat -> nat.
Variable cost : nat -> Q.
Variable rate : Q.

Let level_at := level_at agents arrival cost rate.
Let virtual_time := virtual_time agents arrival cost rate.
Let received := received agents arrival cost rate.
Let received_at := received_at agents arrival cost rate.
Let tag := tag agents arrival cost rate.
Let reference_finish := reference_finish agents arrival cost rate.

(** The integral form of dV/dt = rate / N: between a step and a later moment no more than the rate is
    handed out. *)
Definition keeps_its_rate : Prop := forall u t, q u <= t ->
  sumq (fun i => received i t - received i (q u)) agents <= rate * (t - q u).

(** In a whole step, the rate is handed out exactly unless everyone who has arrived is finished. *)
Definition conserves_work : Prop := forall k,
  sumq (fun i => received_at i (level_at (S k)) - received_at i (level_at k)) agents == rate \/
  (forall i, In i agents -> (arrival i <= k)%nat -> tag i <= level_at (S k)).

(** Once the level has reached the tag of [j], every agent with a smaller tag has its full cost. *)
Definition finishes_in_order : Prop := forall i j t, tag i <= tag j -> tag j <= virtual_time t ->
  cost i <= received i t.

(** [reference_finish k i] lies in step [k], the level has reached the tag by then, and never earlier. *)
Definition finish_is_first : Prop := forall k i, In i agents -> (arrival i <= k)%nat ->
  level_at k < tag i -> tag i <= level_at (S k) ->
  (q k <= reference_finish k i <= q (S k) /\ tag i <= virtual_time (reference_finish k i)) /\
  (forall t, 0 <= t -> tag i <= virtual_time t -> reference_finish k i <= t).

(** Every agent is finished within (total cost) / rate + 1 steps of its arrival. *)
Definition is_finite : Prop := forall i K, In i agents -> sumq cost agents < rate * q K ->
  tag i <= virtual_time (q (arrival i + K)).

End Statements.

Definition clock_is_fair : Prop :=
  forall agents arrival cost rate, 0 < rate -> (forall i, 0 <= cost i) ->
  keeps_its_rate agents arrival cost rate /\ conserves_work agents arrival cost rate /\
  finishes_in_order agents arrival cost rate /\ finish_is_first agents arrival cost rate /\
  is_finite agents arrival cost rate.

