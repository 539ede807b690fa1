(** * Settling: agents that leave

    An agent may end early, or be cancelled. Dropping it from the reference would forget what the engine has
    given it. Instead it is _settled_: it stays in the reference for what it was really delivered, never more
    than was predicted. Its tag shrinks by the difference over its weight; when that brings the tag down to
    the level, the reference is through with it at once. Nobody else's tag changes, and what it has received
    stays received.

    When nobody is left, the debts of those who have left may be forgotten: nobody is there whom they could delay.
    Both ways are covered, [forgets] says which.

    Here a unit is an agent with one tag, which it is given when it becomes ready. [leave u = Some l] says that
    it leaves before step [l], [None] that it stays. The clock is a program: it keeps the level, and a table of
    the tags. *)
Require Import List Arith QArith Qminmax Bool.
From Justitia Require Import Sums Level.
From Justitia Require Export Run Order ServiceClock.
Import ListNotations.

Definition leaves_in (leave : nat -> option nat) (u k : nat) : bool :=
  match leave u with Some l => (l =? k)%nat | None => false end.

(** Unit [u] has left before step [k], or leaves just before it. *)
Definition has_left (leave : nat -> option nat) (u k : nat) : bool :=
  match leave u with Some l => (l <=? k)%nat | None => false end.

Section Clock.
Variable w : workload.
Variable leave : nat -> option nat.
Variable forgets : bool.
Variable kept : nat -> Q.              (* what a unit is settled at when it leaves *)

Definition tag_on_arrival (k : nat) (v : Q) (u : nat) (t : Q) : Q :=
  if (ready w u =? k)%nat then Qred (v + predicted w u / unit_weight w u) else t.

Definition tag_on_leave (k u : nat) (t : Q) : Q :=
  if leaves_in leave u k then Qred (t - (predicted w u - kept u) / unit_weight w u) else t.

(** Everybody who was ready before step [k] has left before it. Leaves come before the arrivals of the same step. *)
Definition nobody_left (k : nat) : bool :=
  forallb (fun u => negb (ready w u <? k)%nat || has_left leave u k) (units w).

Definition tag_when_forgotten (k : nat) (v : Q) (u : nat) (t : Q) : Q :=
  if forgets && (ready w u <? k)%nat && nobody_left k then Qmin t v else t.

(** What happens to an entry of the table at the beginning of step [k], at level [v]. *)
Definition turn (k : nat) (v : Q) (entry : nat * Q) : nat * Q :=
  let (u, t) := entry in (u, tag_when_forgotten k v u (tag_on_leave k u (tag_on_arrival k v u t))).

(** Each tag of the table, once per unit of weight. *)
Definition table_bag (table : list (nat * Q)) : list Q :=
  flat_map (fun entry => repeat (snd entry) (weight w (agent_of w (fst entry)))) table.

(** Level and table at the beginning of step [k] when step [i] delivers [s i]. A tag is 0 before the arrival. *)
Fixpoint settling_at (s : nat -> Q) (k : nat) : Q * list (nat * Q) :=
  match k with
  | O => (0, map (fun u => (u, 0)) (units w))
  | S k' =>
    let (v, table) := settling_at s k' in
    let table' := map (turn k' v) table in
    (advance (length (table_bag table')) (table_bag table') v (s k'), table')
  end.

(** The same, one at a time: the level, and the tag that [u] has in step [k]. *)
Definition settling_level (s : nat -> Q) (k : nat) : Q := fst (settling_at s k).

Fixpoint tag_in_step (s : nat -> Q) (k u : nat) : Q :=
  let v := settling_level s k in
  tag_when_forgotten k v u (tag_on_leave k u (tag_on_arrival k v u
    (match k with O => 0 | S k' => tag_in_step s k' u end))).

(** The tag that [u] was given on its arrival. *)
Definition first_tag (s : nat -> Q) (u : nat) : Q :=
  settling_level s (ready w u) + predicted w u / unit_weight w u.
End Clock.

(** ** The reference of an execution whose agents may leave *)
Section Execution.
Variable e : execution.
Variable leave : nat -> option nat.
Variable forgets : bool.

(** What unit [u] was delivered before step [n]. *)
Definition delivered_to (u n : nat) : Q :=
  sumq (fun x => if (unit_of e x =? u)%nat then got e x n else 0) (inferences e).

Definition settlement (u : nat) : Q :=
  match leave u with Some l => Qmin (predicted e u) (delivered_to u l) | None => predicted e u end.

Definition settled_level (k : nat) : Q := settling_level e leave forgets settlement (delivered e) k.
Definition settled_tag (k u : nat) : Q := tag_in_step e leave forgets settlement (delivered e) k u.
Definition given_tag (u : nat) : Q := first_tag e leave forgets settlement (delivered e) u.

(** The reference is through with unit [j] when, in step [n], the level is [v]. *)
Definition through (j n : nat) (v : Q) : Prop :=
  (ready e j <= n)%nat /\ settled_level n <= v /\ v <= settled_level (S n) /\ settled_tag n j <= v.

(** The service that it has handed out by then. *)
Definition settled_G (n : nat) (v : Q) : Q :=
  total e n + fill (table_bag e (map (fun u => (u, settled_tag n u)) (units e))) (settled_level n) v.
End Execution.

(** A run in which units leave: the cost of an inference is what it is really delivered, so all of it before its
    unit leaves; what still waits then is gone, and never starts. *)
Record valid_leaves (r : run) (leave : nat -> option nat) : Prop := {
  leave_after_ready : forall u l, In u (units r) -> leave u = Some l -> (ready r u <= l)%nat;
  start_before_leave : forall x s l, In x (inferences r) ->
    start r x = Some s -> leave (unit_of r x) = Some l -> (s < l)%nat;
  cost_before_leave : forall x l, In x (inferences r) ->
    leave (unit_of r x) = Some l -> cost r x == got r x l
}.

(** The line goes by the tags given on arrival; who has left is not in it. *)
Definition keeps_order_of_present (r : run) (leave : nat -> option nat) (tag : nat -> Q) : Prop :=
  forall x y s, In x (inferences r) -> In y (inferences r) ->
    start r x = Some s -> waiting r y s -> has_left leave (unit_of r y) s = false ->
    before r tag (unit_of r y) (unit_of r x) = false.
