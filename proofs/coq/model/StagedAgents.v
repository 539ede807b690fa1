(** * Agents as they are written down, and what becomes of them

    An agent arrives in a step, has a weight, and consists of stages; a stage has a predicted cost and a list of
    inferences [(p, d)], prompt and decode tokens. [outcome] runs the whole system on such a list: scheduler, tags
    stage by stage, fair reference, the KV cost, and an admission test. Units are the stages and inferences the
    calls, both numbered from 0 in the order in which they are written down. Equal tags are decided by that order;
    written in order of arrival, that is by the arrival of the agent, then by the stage. *)
Require Import List Arith ZArith QArith Bool.
From Justitia Require Import Sums.
From Justitia Require Export ReleaseLoop Written.
Import ListNotations.

Record stage := Stage { stage_cost : Q; calls : list (nat * nat) }.
Record staged_agent := Agent { arrives : nat; agent_weight : nat; stages : list stage }.

Section Agents.
Variable given : list staged_agent.

(** Each stage with the number of its agent and its place in the agent; each call with its stage. *)
Definition stage_rows : list (nat * (nat * stage)) :=
  flat_map (fun a => map (fun s => (fst a, s)) (numbered (stages (snd a)))) (numbered given).
Definition call_rows : list (nat * (nat * nat)) :=
  flat_map (fun u => map (fun c => (fst u, c)) (calls (snd (snd (snd u))))) (numbered stage_rows).

(** The tables are bound by [let], so that a program computes them once. *)
Definition prompt : nat -> nat := let rows := call_rows in fun x => fst (snd (nth x rows (0, (0, 0))%nat)).
Definition decode : nat -> nat := let rows := call_rows in fun x => snd (snd (nth x rows (0, (0, 0))%nat)).
Definition call_stage : nat -> nat := let rows := call_rows in fun x => fst (nth x rows (0, (0, 0))%nat).

Definition no_agent : staged_agent := Agent 0 1 [].
Definition arrival (i : nat) : nat := arrives (nth i given no_agent).

Definition stage_row : nat -> nat * (nat * stage) :=
  let rows := stage_rows in fun u => nth u rows (0%nat, (0%nat, Stage 0 [])).
Definition stage_before : nat -> option nat :=
  let row := stage_row in fun u => match fst (snd (row u)) with O => None | S _ => Some (Nat.pred u) end.

Definition staged_workload : workload :=
  let p := prompt in let d := decode in let row := stage_row in {|
  inferences := seq 0 (length call_rows);
  units := seq 0 (length stage_rows);
  agents := seq 0 (length given);
  unit_of := call_stage;
  agent_of := fun u => fst (row u);
  weight := fun i => agent_weight (nth i given no_agent);
  cost := fun x => q (kv_cost (p x) (d x));
  predicted := fun u => stage_cost (snd (snd (row u)));
  ready := fun _ => 0%nat;              (* comes out of the run *)
  rank := fun u => u
|}.

Definition staged_rule : release_rule := after_stage staged_workload arrival stage_before decode.
Definition staged_engine (test : (nat -> option nat) -> nat -> nat -> bool) : engine := kv_engine prompt decode test.

Definition staged_limits (M B : nat) : (nat -> option nat) -> nat -> nat -> bool :=
  within staged_workload prompt decode M B.

(** The first [T] steps, in which up to [M] tokens can be reserved and up to [B] inferences run at a time. *)
Record outcomes := Outcomes {
  starts_of_calls : list (option nat);
  ready_of_stages : list (option nat);
  tags_of_stages : list (option Q);
  G_of_stages : list (option Q);        (** what was delivered when the reference finished the stage *)
  delivered_in_all : Q
}.

Definition outcome (M B T : nat) : outcomes :=
  let w := staged_workload in
  let state := release_loop w (staged_engine (staged_limits M B)) staged_rule T in
  {| starts_of_calls := map (r_starts state) (inferences w);
     ready_of_stages := map (r_ready state) (units w);
     tags_of_stages := map (fun u => if marked (r_ready state) u
                                      then Some (Qred (clock_tag w (r_clock state) u)) else None) (units w);
     G_of_stages := map (find_in (r_finished state)) (units w);
     delivered_in_all := r_total state |}.

(** Weights are positive, predictions not negative. *)
Definition sound : Prop :=
  forall a, In a given -> (1 <= agent_weight a)%nat /\ forall s, In s (stages a) -> 0 <= stage_cost s.
End Agents.

(** The same in whole numbers only: starts, steps of release, tags, [G]. *)
Definition plain (o : outcomes) :=
  (starts_of_calls o, ready_of_stages o, fractions (tags_of_stages o), fractions (G_of_stages o)).
