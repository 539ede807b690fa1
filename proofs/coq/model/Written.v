(** * Parts of what is written down and printed *)
Require Import List Arith ZArith QArith Bool.
From Justitia Require Import Sums Windows.
From Justitia Require Export KVCost.
Import ListNotations.

Definition numbered {A : Type} (l : list A) : list (nat * A) := combine (seq 0 (length l)) l.

(** Admit what can be reserved, at its peak, within [M] tokens, while fewer than [B] inferences run. *)
Definition within (w : workload) (p d : nat -> nat) (M B : nat) (st : nat -> option nat) (k x : nat) : bool :=
  reserve w p d M st k x
  && (sumn (fun y => match st y with Some s => if inwin s (d y) k then 1 else 0 | None => 0 end)%nat
           (inferences w) <? B)%nat.

(** A number of service as numerator and denominator. (Coq prints some rationals as decimals, in base 10 or 16.) *)
Definition fraction (x : Q) : Z * positive := let y := Qred x in (Qnum y, Qden y).
Definition fractions (l : list (option Q)) : list (option (Z * positive)) := map (option_map fraction) l.
