(** * The fair reference

    The reference shares what the engine really delivers. Its virtual time is a level that rises; unit [u]
    is served while the level is between [base u] and its tag, at [share u] per unit of level, so that it has
    received its predicted cost when the level reaches the tag. For an agent with one tag the base is the
    virtual time at its arrival; for a stage it is the larger of the virtual time when the stage becomes
    ready and the tag of the stage before. *)
Require Import List Arith QArith Qminmax.
From Justitia Require Import Sums.
From Justitia Require Export Service.

Record reference := Reference {
  V : nat -> Q;            (** virtual time at the beginning of a step *)
  base : nat -> Q;         (** the level at which the service of a unit begins *)
  share : nat -> Q         (** the weight of a unit *)
}.

Section Amounts.
Variable w : workload.
Variable f : reference.

Definition tag (u : nat) : Q := base f u + predicted w u / share f u.

(** What unit [u] has received when the level is [v]. *)
Definition received (u : nat) (v : Q) : Q :=
  share f u * Qmax 0 (Qmin (predicted w u / share f u) (v - base f u)).

(** What all units receive from the beginning of step [k] until the level is [v]. *)
Definition handed (k : nat) (v : Q) : Q :=
  sumq (fun u => received u v - received u (V f k)) (units w).

(** The reference finishes unit [j] in step [n]. *)
Definition finishes (j n : nat) : Prop :=
  (ready w j <= n)%nat /\ V f n <= tag j /\ tag j <= V f (S n).
End Amounts.

(** The reference is fair: its level never falls, nobody is served before being ready, and step [k] hands
    out no more than the engine delivers in step [k]. *)
Record fair (e : execution) (f : reference) : Prop := {
  share_positive : forall u, In u (units e) -> 0 < share f u;
  base_after_ready : forall u, In u (units e) -> V f (ready e u) <= base f u;
  level_rises : forall k, V f k <= V f (S k);
  hands_out_delivered : forall k, handed e f k (V f (S k)) <= delivered e k
}.

(** Where in step [n] it finishes unit [j]: [G e f j n] is the service delivered by then, to the fraction, and
    [finish_time e f j n] the time, when the service of a step is spread evenly over it. *)
Definition G (e : execution) (f : reference) (j n : nat) : Q := total e n + handed e f n (tag e f j).

Definition finish_time (e : execution) (f : reference) (j n : nat) : Q :=
  q n + handed e f n (tag e f j) / delivered e n.
