(** * The scheduler whose agents leave, as a program

    As [ClosedLoop], and besides a rule says in each step which agents leave before it: those that are done,
    those that somebody cancels. The rule may be any function of the starts so far, the step and the agent.
    Who leaves is settled; what it has running gets nothing more, what it has waiting is gone. *)
Require Import List Arith QArith Qminmax Bool.
From Justitia Require Import Sums Level.
From Justitia Require Export ClosedLoop Settling Variants.
Import ListNotations.

Definition leave_rule := (nat -> option nat) -> nat -> nat -> bool.

Section Loop.
Variable w : workload.
Variable g : engine.
Variable rule : leave_rule.
Variable forgets : bool.            (* of debts, when nobody is left *)

Definition cut_service (left st : nat -> option nat) (x k : nat) : Q :=
  match st x with
  | Some s => if (s <=? k)%nat && negb (has_left left (unit_of w x) k) then work g x (k - s) else 0
  | None => 0
  end.

Definition cut_execution (left st : nat -> option nat) : execution := Execution w (cut_service left st).

Record cancel_state := CancelState {
  c_level : Q;
  c_table : list (nat * Q);           (** the tags *)
  c_left : nat -> option nat;         (** the step before which an agent left *)
  c_starts : nat -> option nat;
  c_total : Q;                        (** what was delivered *)
  c_through : list (nat * Q)          (** with whom the reference is through, and what it had handed out *)
}.

Definition cancel_start : cancel_state :=
  CancelState 0 (map (fun u => (u, 0)) (units w)) no_marks no_marks 0 [].

Definition goes (state : cancel_state) (k u : nat) : bool :=
  negb (marked (c_left state) u) && (ready w u <=? k)%nat && rule (c_starts state) k u.

Definition tag_of (table : list (nat * Q)) (u : nat) : Q :=
  match find_in table u with Some t => t | None => 0 end.

(** Agents that have left are not ready. *)
Definition present (left : nat -> option nat) (k u : nat) : nat := if marked left u then S k else ready w u.

(** The admission test does not see what of them has started: it is out of the engine. *)
Definition still (left st : nat -> option nat) : nat -> option nat :=
  fun x => if marked left (unit_of w x) then None else st x.
Definition engine_without (left : nat -> option nat) : engine :=
  Engine (work g) (fun st k x => fits g (still left st) k x).

Definition newly_through (table done : list (nat * Q)) (k : nat) (v : Q) (u : nat) : bool :=
  (ready w u <=? k)%nat && match find_in done u with Some _ => false | None => true end
  && Qle_bool (tag_of table u) v.

Definition cancel_step (k : nat) (state : cancel_state) : cancel_state :=
  let v := c_level state in
  let left := mark_all k (filter (goes state k) (units w)) (c_left state) in
  let kept := settlement (cut_execution left (c_starts state)) left in
  let table := map (turn w left forgets kept k v) (c_table state) in
  let st := admit (with_ready w (present left k)) (engine_without left) (length (inferences w)) k
                  (before w (tag_of table)) (c_starts state) in
  let s := delivered (cut_execution left st) k in
  let bag := table_bag w table in
  let v' := advance (length bag) bag v s in
  let now := filter (newly_through table (c_through state) k v') (units w) in
  CancelState v' table left st (Qred (c_total state + s))
    (map (fun u => (u, Qred (c_total state + fill bag v (Qmax v (tag_of table u))))) now ++ c_through state).

Fixpoint cancel_loop (k : nat) : cancel_state :=
  match k with O => cancel_start | S k' => cancel_step k' (cancel_loop k') end.

(** ** What came out after [T] steps *)
Section Outcome.
Variable T : nat.

Definition cancel_starts : nat -> option nat := c_starts (cancel_loop T).
Definition cancel_leave : nat -> option nat := c_left (cancel_loop T).

(** What inference [x] is really delivered in the whole run. *)
Definition real_cost : nat -> Q :=
  let left := cancel_leave in let e := cut_execution left cancel_starts in
  fun x => match left (unit_of w x) with Some l => got e x l | None => cost w x end.

Definition cancel_run : run :=
  Run (Execution (with_cost w real_cost) (cut_service cancel_leave cancel_starts)) cancel_starts.

Definition cancel_G (u : nat) : option Q := find_in (c_through (cancel_loop T)) u.
End Outcome.

(** ** A rule: agents leave when they are done, or when they are cancelled *)
Definition done_or_cancelled (steps : nat -> nat) (cancel : nat -> option nat) : leave_rule :=
  fun st k u => match cancel u with Some l => (l <=? k)%nat | None => false end || is_done w steps st k u.
End Loop.
