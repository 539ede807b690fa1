(** * Stages must be settled one by one

    An agent of two stages leaves. The first was predicted at 10 and cost 1; the second was predicted right, at 11.
    Let the agent be settled as a whole, at the 12 that it was delivered out of 21 predicted: the nine too many of
    the first stage are then taken out of the second, which the reference ends early, although the engine has
    delivered all of it. Whoever was behind the second stage is finished too early, and the bound stage by stage
    breaks. Settled by itself, the second stage stays as it is, and the bound holds.

    8 KV tokens, peaks reserved. Agent 0, weight 1: one stage of (0,8), (0,1), (0,8), in step 0. Agent 1, weight 20:
    (0,1) in step 3, then (4,2) in step 9. Agent 2, weight 10: (3,2) in step 9. It is unit 3 and inference 5, and
    starts in step 11, when agent 1 leaves. *)
Require Import List Arith Lia ZArith QArith.
From Justitia Require Import Sums Level ExecutableLagProof Lag KVCost Deciding.
Import ListNotations.

Definition tokens : list (nat * nat) := [(0, 8); (0, 1); (0, 8); (0, 1); (4, 2); (3, 2)]%nat.
Definition p (x : nat) : nat := fst (nth x tokens (0, 0)%nat).
Definition d (x : nat) : nat := snd (nth x tokens (0, 0)%nat).

Definition w : workload := Workload (seq 0 6) [0; 1; 2; 3]%nat [0; 1; 2]%nat
  (fun x => nth x [0; 0; 0; 1; 2; 3] 0)%nat
  (fun u => nth u [0; 1; 1; 2] 0)%nat
  (fun i => nth i [1; 20; 10] 1)%nat
  (fun x => q (kv_cost (p x) (d x)))
  (fun u => nth u [73; 10; 11; 9] 0)
  (fun u => nth u [0; 3; 9; 9] 0)%nat (fun u => u).

Definition r : run := closed_loop w (kv_engine p d (reserve w p d 8)) 30.
Definition f : reference := reference_of r.

Theorem form : well_formed w.
Proof. check. Qed.

Theorem starts_computed : map (start r) (inferences w) = [Some 0; Some 8; Some 13; Some 8; Some 9; Some 11]%nat.
Proof. vm_compute. reflexivity. Qed.

(** The second stage of agent 1 ends in step 10, so the agent leaves before step 11. *)
Definition leaves : nat := 11%nat.

(** The clock, when the agent's tag falls by [refund] over its weight before step 11. *)
Definition settle (refund : Q) (k : nat) (c : clock) : clock :=
  if (k =? leaves)%nat then Clock (level c) (updq (latest c) 1 (latest c 1%nat - refund / 20)) (bases c) else c.
Fixpoint clock_with (refund : Q) (k : nat) : clock :=
  match k with
  | O => clock_start
  | S k' => serve w (delivered r k') (settle refund k' (release_all w k' (clock_with refund k')))
  end.

(** What is delivered when the level reaches [t] in step [n]. *)
Definition G_with (refund : Q) (n : nat) (t : Q) : Q :=
  total r n + fill (tagbag w (clock_with refund (S n))) (level (clock_with refund n)) t.

(** The line is the same: the tags are given before the agent leaves. *)
Definition t3 : Q := tag r f 3.
Theorem tags : map (fun u => Qred (tag r f u)) (units w) = [73; 13 # 2; 571 # 20; 289 # 10].
Proof. vm_compute. reflexivity. Qed.

Theorem quiet_since_9 : quiet r (tag r f) 3 9 11.
Proof. apply quiet_checked. vm_compute. reflexivity. Qed.

Theorem values : total r 11 == 49 /\ inflight r 9 == 0 /\ cost w 5 == 9 /\
  underestimate w (tag r f) 3 9 11 == 0.
Proof. compute_values. Qed.

(** As a whole: of 10 + 11 predicted it was delivered 1 + 11. The reference finishes unit 3 in step 12. *)
Definition in_one : Q := (10 + 11) - (1 + 11).

Theorem finished_in_one :
  level (clock_with in_one 12) <= t3 /\ t3 <= level (clock_with in_one 13) /\ G_with in_one 12 t3 == 17049 # 310.
Proof. repeat split; vm_compute; first [discriminate|reflexivity]. Qed.

Theorem in_one_breaks_the_bound :
  G_with in_one 12 t3 + inflight r 9 - cost w 5 + underestimate w (tag r f) 3 9 11 < total r 11.
Proof. vm_compute. reflexivity. Qed.

(** By itself: the second stage was delivered the 11 that were predicted, nothing is refunded. *)
Definition by_itself : Q := 11 - 11.

Theorem finished_by_itself :
  level (clock_with by_itself 13) <= t3 /\ t3 <= level (clock_with by_itself 14) /\ G_with by_itself 13 t3 == 589 # 10.
Proof. repeat split; vm_compute; first [discriminate|reflexivity]. Qed.

Theorem by_itself_keeps_the_bound :
  total r 11 <= G_with by_itself 13 t3 + inflight r 9 - cost w 5 + underestimate w (tag r f) 3 9 11.
Proof. vm_compute. discriminate. Qed.
