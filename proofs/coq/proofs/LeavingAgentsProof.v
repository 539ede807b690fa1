(** * Theorem B for agents that may be cancelled, as they are written down: proofs *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums KVFacts Lag LeavingAgents StagedAgentsProof CancelLagProof.
From Justitia Require Export SettledLag.
Import ListNotations.

Section Agents.
Variable given : list leaving_agent.
Hypothesis fine : sound_leaving given.

Lemma call_table_spec u c : In (u, c) (call_table given) -> (u < length given)%nat.
Proof.
  unfold call_table. intros H. apply in_flat_map in H as ([i a] & Ha & H). cbn [fst snd] in H.
  apply in_map_iff in H as (c' & E & _). injection E as -> _. apply numbered_In in Ha. tauto.
Qed.

Lemma leaving_form : well_formed (leaving_workload given).
Proof.
  constructor; cbn [leaving_workload units agents inferences unit_of agent_of weight predicted].
  - apply seq_NoDup.
  - apply seq_NoDup.
  - intros x Hx. apply in_seq in Hx. apply in_seq. unfold call_agent.
    pose proof (nth_In (call_table given) (0, (0, 0))%nat (proj2 Hx : (x < length _)%nat)) as I.
    destruct (nth x (call_table given) (0, (0, 0))%nat) as [u c]. apply call_table_spec in I. cbn [fst]. lia.
  - auto.
  - intros u Hu. apply in_seq in Hu. apply fine, nth_In. apply Hu.
  - intros u Hu. apply in_seq in Hu. apply fine, nth_In. apply Hu.
Qed.

Lemma leaving_valid M B : valid_engine (leaving_workload given) (leaving_engine given M B).
Proof. apply kv_engine_valid. intros x _. reflexivity. Qed.
End Agents.

Theorem theorem_B_leaving_outcome_holds : theorem_B_leaving_outcome.
Proof.
  intros given fine forgets M B T w r tag printed x s b G Hs j HQ HG.
  apply nth_error_map_seq in Hs as [Lx Hs]. apply nth_error_map_seq in HG as [_ HG].
  apply (theorem_B_cancelled_holds w (leaving_engine given M B) (leaving_rule given) forgets
           (leaving_form given fine) (leaving_valid given M B)); auto.
  cbn. apply in_seq. lia.
Qed.
