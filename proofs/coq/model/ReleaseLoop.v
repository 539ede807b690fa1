(** * The scheduler with stages, as a program

    As [ClosedLoop], but when a unit becomes ready is not given: a rule says in each step which units become
    ready in it. The rule may be any function of the units that are ready so far, the starts so far, the step and
    the unit. Stages have the rule [after_stage]: stage [k + 1] is ready in the step after that in which the last
    inference of stage [k] has ended. A unit gets its tag when it becomes ready. *)
Require Import List Arith QArith Bool.
From Justitia Require Import Sums Level.
From Justitia Require Export ClosedLoop Variants.
Import ListNotations.

Definition release_rule := (nat -> option nat) -> (nat -> option nat) -> nat -> nat -> bool.

Section Loop.
Variable w : workload.                  (* its [ready] is not looked at *)
Variable g : engine.
Variable rule : release_rule.

Record release_state := ReleaseState {
  r_clock : clock;
  r_ready : nat -> option nat;          (** the step in which a unit became ready *)
  r_starts : nat -> option nat;
  r_total : Q;                          (** what was delivered *)
  r_finished : list (nat * Q)           (** whom the reference has finished, and what it had handed out *)
}.

Definition release_start : release_state := ReleaseState clock_start no_marks no_marks 0 [].

Definition opens (state : release_state) (k u : nat) : bool :=
  negb (marked (r_ready state) u) && rule (r_ready state) (r_starts state) k u.

(** A unit that is not ready yet is so later. *)
Definition ready_by (rd : nat -> option nat) (k u : nat) : nat := match rd u with Some n => n | None => S k end.

(** The reference finishes [u] while the level rises to [v]. *)
Definition newly_finished (c : clock) (rd : nat -> option nat) (finished : list (nat * Q)) (v : Q) (u : nat) : bool :=
  marked rd u && match find_in finished u with Some _ => false | None => true end && Qle_bool (clock_tag w c u) v.

Definition release_step (k : nat) (state : release_state) : release_state :=
  let new := filter (opens state k) (units w) in
  let rd := mark_all k new (r_ready state) in
  let c := fold_left (release w) new (r_clock state) in
  let st := admit (with_ready w (ready_by rd k)) g (length (inferences w)) k
                  (before w (clock_tag w c)) (r_starts state) in
  let s := delivered (execution_of w g st) k in
  let c' := serve w s c in
  let now := filter (newly_finished c rd (r_finished state) (level c')) (units w) in
  ReleaseState c' rd st (Qred (r_total state + s))
    (map (fun u => (u, Qred (r_total state + fill (tagbag w c) (level c) (clock_tag w c u)))) now ++ r_finished state).

Fixpoint release_loop (k : nat) : release_state :=
  match k with O => release_start | S k' => release_step k' (release_loop k') end.

(** ** What came out after [T] steps *)
Section Outcome.
Variable T : nat.

Definition released_in : nat -> nat :=
  let rd := r_ready (release_loop T) in fun u => match rd u with Some n => n | None => T end.

Definition release_run : run :=
  Run (execution_of (with_ready w released_in) g (r_starts (release_loop T))) (r_starts (release_loop T)).

(** The tag of a unit, and where the reference finished it. *)
Definition released_tag (u : nat) : option Q :=
  if marked (r_ready (release_loop T)) u then Some (clock_tag w (r_clock (release_loop T)) u) else None.

Definition released_G (u : nat) : option Q := find_in (r_finished (release_loop T)) u.
End Outcome.

(** ** The rule for stages

    [arrival i] is the step in which agent [i] arrives, [prev u] the stage before [u]; inference [x] runs for
    [steps x] steps on end. *)
Definition after_stage (arrival : nat -> nat) (prev : nat -> option nat) (steps : nat -> nat) : release_rule :=
  fun rd st k u => (arrival (agent_of w u) <=? k)%nat &&
    match prev u with None => true | Some u' => marked rd u' && is_done w steps st k u' end.
End Loop.
