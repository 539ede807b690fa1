(** * Stages that wait for one another

    20 KV tokens, peaks reserved, at most four inferences at a time. Agent 0 arrives in step 0; its first stage has
    three inferences of 0 and 10 tokens, its second one of 1 and 3. Agent 1, of weight 2, arrives in step 1; its first
    stage has one inference of 9 and 2, its second two of 1 and 2, predicted at half of their cost of 10. *)
Require Import List Arith Lia QArith.
From Justitia Require Import Sums Lag StagedAgents StagedAgentsProof Deciding.
Import ListNotations.

Definition written : list staged_agent := [
  Agent 0 1 [Stage 165 [(0, 10); (0, 10); (0, 10)]%nat; Stage 9 [(1, 3)]%nat];
  Agent 1 2 [Stage 21 [(9, 2)]%nat; Stage 5 [(1, 2); (1, 2)]%nat]].

Theorem fine : sound written.
Proof.
  intros a Ha. repeat (destruct Ha as [<-|Ha]; [split; [simpl; lia|]|]); try destruct Ha;
    intros s Hs; repeat (destruct Hs as [<-|Hs]; [vm_compute; discriminate|]); destruct Hs.
Qed.

(** Agent 1 waits for the first two inferences of agent 0, which end in step 9; its second stage is ready in step 12.
    The third inference of agent 0 ends in step 21, so its second stage is ready in step 22. *)
Theorem printed : plain (outcome written 20 4 40) = (
  [Some 0; Some 0; Some 12; Some 22; Some 10; Some 12; Some 12]%nat,
  [Some 0; Some 22; Some 1; Some 12]%nat,
  [Some (165, 1%positive); Some (174, 1%positive); Some (25, 2%positive); Some (225, 2%positive)],
  [Some (191, 1%positive); Some (205, 1%positive); Some (67, 2%positive); Some (277, 2%positive)])%Z.
Proof. vm_compute. reflexivity. Qed.

Definition w : workload := staged_workload written.
Definition r : run := release_run w (staged_engine written (staged_limits written 20 4)) (staged_rule written) 40.
Definition tag : nat -> Q := Reference.tag r (reference_of r).

Theorem bound x s b G : nth_error (starts_of_calls (outcome written 20 4 40)) x = Some (Some s) ->
  let j := unit_of w x in
  quiet r tag j b s -> nth_error (G_of_stages (outcome written 20 4 40)) j = Some (Some G) ->
  total r s <= G + inflight r b - cost w x + underestimate r tag j b s.
Proof. exact (theorem_B_outcome_holds written fine 20%nat 4%nat 40%nat x s b G). Qed.

(** The second stage of agent 1, overtaken in step 0: 131 <= 277/2 + 108 - 5 + 5. *)
Theorem second_stage_of_1 : quiet r tag 3 1 12.
Proof. apply quiet_checked. vm_compute. reflexivity. Qed.

Theorem values_of_1 : total r 12 == 131 /\ inflight r 1 == 108 /\ cost w 5 == 5 /\ underestimate r tag 3 1 12 == 5.
Proof. compute_values. Qed.

(** The second stage of agent 0, never overtaken: 196 <= 205 + 0 - 9 + 5. The underestimate of agent 1 is lost: the
    reference had nobody to serve when it was delivered. *)
Theorem second_stage_of_0 : quiet r tag 1 0 22.
Proof. apply quiet_checked. vm_compute. reflexivity. Qed.

Theorem values_of_0 : total r 22 == 196 /\ inflight r 0 == 0 /\ cost w 3 == 9 /\ underestimate r tag 1 0 22 == 5.
Proof. compute_values. Qed.
