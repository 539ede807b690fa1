(** * Agents that may be cancelled, as they are written down, and what becomes of them

    An agent arrives in a step, has a weight, one predicted cost and a list of inferences [(p, d)], and may be
    cancelled before a step. It leaves when it is done or cancelled, and is settled. Agents are numbered from 0 in
    the order in which they are written down, which decides between equal tags, and their inferences too. *)
Require Import List Arith ZArith QArith Bool.
From Justitia Require Import Sums.
From Justitia Require Export CancelLoop Written.
Import ListNotations.

Record leaving_agent := Leaving {
  comes : nat;
  its_weight : nat;
  its_cost : Q;
  its_calls : list (nat * nat);
  cancelled : option nat
}.

Section Agents.
Variable given : list leaving_agent.

Definition call_table : list (nat * (nat * nat)) :=
  flat_map (fun a => map (fun c => (fst a, c)) (its_calls (snd a))) (numbered given).

Definition the_agent (u : nat) : leaving_agent := nth u given (Leaving 0 1 0 [] None).
Definition call_agent : nat -> nat := let rows := call_table in fun x => fst (nth x rows (0, (0, 0))%nat).
Definition call_prompt : nat -> nat := let rows := call_table in fun x => fst (snd (nth x rows (0, (0, 0))%nat)).
Definition call_decode : nat -> nat := let rows := call_table in fun x => snd (snd (nth x rows (0, (0, 0))%nat)).

Definition leaving_workload : workload :=
  let p := call_prompt in let d := call_decode in {|
  inferences := seq 0 (length call_table);
  units := seq 0 (length given);
  agents := seq 0 (length given);
  unit_of := call_agent;
  agent_of := fun u => u;
  weight := fun u => its_weight (the_agent u);
  cost := fun x => q (kv_cost (p x) (d x));
  predicted := fun u => its_cost (the_agent u);
  ready := fun u => comes (the_agent u);
  rank := fun u => u
|}.

Definition leaving_engine (M B : nat) : engine :=
  kv_engine call_prompt call_decode (within leaving_workload call_prompt call_decode M B).
Definition leaving_rule : leave_rule :=
  done_or_cancelled leaving_workload call_decode (fun u => cancelled (the_agent u)).

Record leavings := Leavings {
  leaving_starts : list (option nat);   (** of the inferences *)
  leaving_steps : list (option nat);    (** before which an agent left *)
  leaving_tags : list (option Q);       (** as they are after the last step; None: never arrived *)
  leaving_G : list (option Q)           (** what was delivered when the reference was through with the agent *)
}.

(** The first [T] steps; [forgets]: debts are forgotten when nobody is left. *)
Definition leaving_outcome (forgets : bool) (M B T : nat) : leavings :=
  let w := leaving_workload in
  let state := cancel_loop w (leaving_engine M B) leaving_rule forgets T in
  {| leaving_starts := map (c_starts state) (inferences w);
     leaving_steps := map (c_left state) (units w);
     leaving_tags := map (fun u => if (ready w u <? T)%nat then find_in (c_table state) u else None) (units w);
     leaving_G := map (find_in (c_through state)) (units w) |}.

Definition sound_leaving : Prop := forall a, In a given -> (1 <= its_weight a)%nat /\ 0 <= its_cost a.
End Agents.

Definition plain_leavings (o : leavings) :=
  (leaving_starts o, leaving_steps o, fractions (leaving_tags o), fractions (leaving_G o)).
