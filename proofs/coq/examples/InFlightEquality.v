(** * Equality with something in flight

    A fair reference need not serve all at once. This one serves agent 1 (cost 1, ready in step 1) before
    agent 0 (cost 3, ready in step 0), whose service begins at level 10. The engine has started agent 0 in step 0, so
    agent 1 waits until step 3. [G = 2], [I = 2], and 3 = 2 + 2 - 1. The executable clock serves all active
    agents at once, and an inference that was overtaken always stays below the bound (theorem_B_strict), if by as
    little as in InFlight.v. *)
Require Import List Arith Lia QArith Lqa.
From Justitia Require Import Sums ReferenceFacts ServiceFacts ServiceLagProof Deciding.
Import ListNotations.

Definition cost_of (x : nat) : Q := if (x =? 0)%nat then 3 else 1.

Definition w : workload := Workload [0; 1]%nat [0; 1]%nat [0; 1]%nat
  (fun x => x) (fun u => u) (fun _ => 1%nat) cost_of cost_of (fun u => u) (fun u => u).

Definition r : run := table_run w
  (fun x => if (x =? 0)%nat then [1; 1; 1] else [0; 0; 0; 1])
  (fun x => if (x =? 0)%nat then Some 0%nat else Some 3%nat).

Definition f : reference := Reference
  (fun k => match k with O | S O => 0 | _ => 1 end)
  (fun u => if (u =? 0)%nat then 10 else 0)
  (fun _ => 1).

Theorem hypotheses : well_formed r /\ valid_run r /\ keeps_order r (tag r f) /\ never_underestimated r.
Proof. check. Qed.

Theorem reference_fair : fair r f.
Proof.
  destruct hypotheses as (_ & valid & _). constructor.
  - intros u _. reflexivity.
  - intros u [<-|[<-|[]]]; vm_compute; discriminate.
  - intros [|[|k]]; vm_compute; discriminate.
  - intros [|[|k]]; [vm_compute; discriminate..|].
    change (V f (S (S (S k)))) with (V f (S (S k))). rewrite handed_start.
    apply delivered_nonneg, (valid_run_service r valid).
Qed.

Theorem compared : comparison r f 1 3 1 1.
Proof. check. Qed.

Theorem values : total r 3 == 3 /\ G r f 1 1 == 2 /\ inflight r 1 == 2 /\ cost r 1 == 1.
Proof. compute_values. Qed.

Theorem bound x s b n : comparison r f x s b n -> total r s <= G r f x n + inflight r b - cost r x.
Proof.
  destruct hypotheses as (form & valid & order & exact).
  apply (theorem_B_holds r f form valid reference_fair order exact).
Qed.

Theorem equality : total r 3 == G r f 1 1 + inflight r 1 - cost r 1.
Proof. compute_values. Qed.
