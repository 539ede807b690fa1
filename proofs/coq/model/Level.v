(** * The level of the fair reference

    A fair reference serves everybody who is active at the same rate. Picture a container whose floor has
    the virtual time as its level: an agent with tag [x] takes in service while the level is below [x]. To
    hand out [b] units of service is to raise the level until [b] units have gone in; the rate of the rise
    is one over the number of those active, and it changes at each tag that is passed. *)
Require Import List ZArith QArith Qminmax Bool.
From Justitia Require Import Sums.
Import ListNotations.

(** The smallest element of the list [a :: l]. *)
Fixpoint qmin (a : Q) (l : list Q) : Q :=
  match l with [] => a | x :: l' => qmin (if Qle_bool a x then a else x) l' end.

(** The level after [b] units of service, from level [v] on. While [n] tags are above the level, it rises by
    [1/n] per unit, at most to the next tag; what is then left goes on from there. When no tag is above the
    level, it stands still. [fuel] bounds the number of tags passed: the number of tags is enough. *)
Fixpoint advance (fuel : nat) (tags : list Q) (v b : Q) : Q :=
  match fuel with
  | O => v
  | S fuel' =>
    match filter (qltb v) tags with
    | [] => v
    | a :: l =>
      let n := q (length (a :: l)) in
      let nxt := qmin a l in
      if Qle_bool b (n * (nxt - v)) then Qred (v + b / n)
      else advance fuel' tags nxt (Qred (b - n * (nxt - v)))
    end
  end.

(** What all tags together take in while the level rises from [v] to [w]. *)
Definition fill (tags : list Q) (v w : Q) : Q := sumq (fun x => Qmin x w - Qmin x v) tags.
