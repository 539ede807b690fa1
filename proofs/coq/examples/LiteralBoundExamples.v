(** * The literal bound, one assumption dropped at a time

    Each run breaks the paper's bound 2 c_max + C_max / M on the lag behind a reference at the full rate M.
    All agents
    arrive in step 0, and nothing is random. [LiteralBoundIsFalse] has the smallest; here the others. *)
Require Import List Arith QArith.
From Justitia Require Import Sums Demand RateClock Scheduler Admission System TheoremAInstances.
Import ListNotations.

(** [n] inferences with no prompt and [d] tokens to decode, owned as [owner] says. *)
Definition decoders (n d agents : nat) (owner : nat -> nat) : demand :=
  {| inferences := seq 0 n; agents := seq 0 agents; owner := owner;
     footprint := fun _ => d; duration := fun _ => d; arrival := fun _ => 0%nat |}.

(** The KV cost of every agent is [c]. *)
Definition costs (W : demand) (c : Q) : Prop :=
  map (kv_cost W (fun _ => 0%nat)) (agents W) = map (fun _ => c) (agents W).

(** System [Y] starts [x] in step [s], the reference finishes its agent by [f], and the lag is more than
    [literal]. *)
Definition breaks (Y reference : system) (T x s : nat) (f literal : Q) : Prop :=
  started Y T x s /\ reference_finished reference (owner Y x) f /\ f + literal < q (s + duration Y x).

Ltac computed := repeat split; vm_compute; auto; discriminate.

(** ** What is reserved is not yet used

    M = 3, 15 agents with one (0,3) each: they run one after the other and the last ends at 45;
      but each uses only two
    tokens on the average of the three it reserves, so that the reference is through at 30.
    A lag of 15, and a bound of
    14. *)
Definition ramps_demand : demand := decoders 15 3 15 (fun x => x).
Definition ramps : system := System ramps_demand (fun _ => 6) 3 (reserve_peak ramps_demand 3).

Theorem ramps_costs : costs ramps_demand 6.
Proof. vm_compute. reflexivity. Qed.
Theorem ramps_break : breaks ramps ramps 43 14 42 30 (2 * 6 + 6 / 3).
Proof. computed. Qed.

(** ** One agent alone

    M = 7, one agent with 18 inferences (0,4), one at a time. A lag of 324/7, and a bound of 320/7. *)
Definition alone_demand : demand := decoders 18 4 1 (fun _ => 0%nat).
Definition alone : system := System alone_demand (fun _ => 180) 7 (reserve_peak alone_demand 7).

Theorem alone_costs : costs alone_demand 180.
Proof. vm_compute. reflexivity. Qed.
Theorem alone_breaks : breaks alone alone 69 17 68 (180 / 7) (2 * 10 + 180 / 7).
Proof. computed. Qed.

(** ** A limit on how many run

    M = 2, six agents with one (0,1) each, at most one running. A lag of 3, and a bound of 5/2. *)
Definition capped_demand : demand := decoders 6 1 6 (fun x => x).
Definition capped : system := System capped_demand (fun _ => 1) 2 (reserve_peak_capped capped_demand 2 1).

Theorem capped_costs : costs capped_demand 1.
Proof. vm_compute. reflexivity. Qed.
Theorem capped_breaks : breaks capped capped 6 5 5 3 (2 * 1 + 1 / 2).
Proof. computed. Qed.

(** ** Predictions that are wrong

    M = 1. Six agents with three (0,1) each declare a cost of 1,
      an honest one with two declares 2 and is last. The
    reference counts what they really cost. A lag of 6, and a bound of 5. *)
Definition liars : demand := decoders 20 1 7 (fun x => (x / 3)%nat).
Definition as_declared : system :=
  System liars (fun i => if (i =? 6)%nat then 2 else 1) 1 (reserve_peak liars 1).
Definition as_it_is : system :=
  System liars (fun i => if (i =? 6)%nat then 2 else 3) 1 (reserve_peak liars 1).

Theorem real_costs : map (kv_cost liars (fun _ => 0%nat)) (agents liars)
  = map (declared_cost as_it_is) (agents liars).
Proof. vm_compute. reflexivity. Qed.
Theorem liars_break : breaks as_declared as_it_is 20 19 19 14 (2 * 1 + 3 / 1).
Proof. computed. Qed.
