(** * Claims about what a program computes

    The link between the proofs and the code that ships: [justitia.proofs.link] writes down an instance and
    everything that the shipped code made of it, and the programs here say whether the programs of this
    development make the same of it. Nothing rests on this folder; it only computes.

    Numbers of steps are compared as they are, rationals by [==]. *)
Require Import List Arith QArith Bool.
Import ListNotations.

(** A list as a function. *)
Definition of {A} (l : list A) (default : A) (n : nat) : A := nth n l default.

Fixpoint same {A B} (equal : A -> B -> bool) (l : list A) (m : list B) : bool :=
  match l, m with
  | [], [] => true
  | x :: l', y :: m' => equal x y && same equal l' m'
  | _, _ => false
  end.

Definition same_option {A} (equal : A -> A -> bool) (a b : option A) : bool :=
  match a, b with Some x, Some y => equal x y | None, None => true | _, _ => false end.

Definition same_steps : list (option nat) -> list (option nat) -> bool := same (same_option Nat.eqb).
Definition same_numbers : list Q -> list Q -> bool := same Qeq_bool.

(** What was found, where something is claimed; [None] claims nothing. *)
Definition as_claimed : list (option Q) -> list (option Q) -> bool :=
  same (fun claim found => match claim with None => true | Some _ => same_option Qeq_bool claim found end).

(** The claims that are refuted, by their place in the list. *)
Definition refuted (claims : list bool) : list nat :=
  map fst (filter (fun c => negb (snd c)) (combine (seq 0 (length claims)) claims)).

(** ** A program, with the level before each of its steps *)
Section Trace.
Context {state : Type}.
Variables (first : state) (step : nat -> state -> state) (level_of : state -> Q).

Fixpoint backwards (k : nat) : state * list Q :=
  match k with
  | O => (first, [level_of first])
  | S k' => let (s, levels) := backwards k' in let s' := step k' s in (s', level_of s' :: levels)
  end.
Definition trace (k : nat) : state * list Q := let (s, levels) := backwards k in (s, rev levels).

Lemma trace_runs (run : nat -> state) :
  run 0%nat = first -> (forall k, run (S k) = step k (run k)) -> forall k, fst (trace k) = run k.
Proof.
  intros H0 HS k. unfold trace. enough (E : fst (backwards k) = run k) by (destruct (backwards k); exact E).
  induction k as [|k IH]; [symmetry; exact H0|]. rewrite HS, <- IH. simpl. destruct (backwards k). reflexivity.
Qed.
End Trace.
