(** * Debts that are forgotten when nobody is left

    One inference at a time. Agents 0 and 1 arrive in step 0: agent 0 with one inference of cost 6 in three steps,
    predicted right; agent 1 with one of cost 1, predicted at 30. When both have left, after step 3, the reference has
    given each 3 and a half, so it still owes agent 0 two and a half. Agent 2, of cost 3, arrives in step 5 and
    starts at once. With the debt forgotten the reference is through with it at 10, and the bound is an equality,
    7 = 10 + 0 - 3; with the debt remembered not even all that is delivered, 10, is enough. *)
Require Import List Arith Lia ZArith QArith.
From Justitia Require Import Sums Lag LeavingAgents LeavingAgentsProof Deciding.
Import ListNotations.

Definition written : list leaving_agent := [
  Leaving 0 1 6 [(0, 3)]%nat None;
  Leaving 0 1 30 [(0, 1)]%nat None;
  Leaving 5 1 3 [(0, 2)]%nat None].

Definition M : nat := 10.
Definition B : nat := 1.
Definition T : nat := 12.

Theorem fine : sound_leaving written.
Proof.
  intros a Ha. repeat (destruct Ha as [<-|Ha]; [split; [simpl; lia|vm_compute; discriminate]|]). destruct Ha.
Qed.

Theorem printed : plain_leavings (leaving_outcome written true M B T) = (
  [Some 0; Some 3; Some 5]%nat,
  [Some 3; Some 4; Some 7]%nat,
  [Some (7, 2%positive); Some (1, 1%positive); Some (13, 2%positive)],
  [Some (7, 1%positive); Some (7, 1%positive); Some (10, 1%positive)])%Z.
Proof. vm_compute. reflexivity. Qed.

Theorem remembered : plain_leavings (leaving_outcome written false M B T) = (
  [Some 0; Some 3; Some 5]%nat,
  [Some 3; Some 4; Some 7]%nat,
  [Some (6, 1%positive); Some (1, 1%positive); Some (13, 2%positive)],
  [None; Some (7, 1%positive); None])%Z.
Proof. vm_compute. reflexivity. Qed.

Definition w : workload := leaving_workload written.
Definition r : run := cancel_run w (leaving_engine written M B) (leaving_rule written) true T.
Definition tag : nat -> Q :=
  given_tag r (cancel_leave w (leaving_engine written M B) (leaving_rule written) true T) true.

Theorem bound x s b G : nth_error (leaving_starts (leaving_outcome written true M B T)) x = Some (Some s) ->
  let j := unit_of w x in
  quiet r tag j b s -> nth_error (leaving_G (leaving_outcome written true M B T)) j = Some (Some G) ->
  total r s <= G + inflight r b - cost r x + underestimate r tag j b s.
Proof. exact (theorem_B_leaving_outcome_holds written fine true M B T x s b G). Qed.

(** Of the three, agent 1 has the largest tag and started last before agent 2, in step 3. *)
Theorem last_overtaken : quiet r tag 2 4 5.
Proof. apply quiet_checked. vm_compute. reflexivity. Qed.

Theorem equality : total r 5 == 10 + inflight r 4 - cost r 2 + underestimate r tag 2 4 5 /\
  total r 5 == 7 /\ inflight r 4 == 0 /\ cost r 2 == 3 /\ underestimate r tag 2 4 5 == 0.
Proof. compute_values. Qed.
