(** * Claims about Theorem B's programs: the clock driven by service, in closed loop with the scheduler *)
Require Import List Arith QArith Qminmax Bool.
From Justitia Require Import Sums Windows Level Lag Readout.
From Justitia Require Export Written StagedAgents LeavingAgents.
From Justitia Require Export Claims.
Import ListNotations.
Open Scope nat_scope.

(** ** Admission

    The model has [within]: peaks and slots. Here are the other rules that a claim can name. *)
Section Admission.
Variables (w : workload) (p d : nat -> nat).

Definition here (st : nat -> option nat) (k : nat) : list nat :=
  filter (fun y => match st y with Some s => inwin s (d y) k | None => false end) (inferences w).

(** Peaks in blocks of [u] tokens fit in [M] tokens, and fewer than [B] inferences run. *)
Definition in_blocks (u M B : nat) (st : nat -> option nat) (k x : nat) : bool :=
  let footprint y := (p y + d y + u - 1) / u * u in
  (length (here st k) <? B) && (sumn footprint (here st k) + footprint x <=? M).

(** What is held fits in [M] tokens until [x] has ended. *)
Definition look (M : nat) (st : nat -> option nat) (k x : nat) : bool :=
  let age y := match st y with Some s => k - s | None => 0 end in
  forallb (fun i => sumn (fun y => if age y + i <? d y then p y + age y + i + 1 else 0) (x :: here st k) <=? M)
          (seq 0 (d x)).
End Admission.

(** ** What Theorem B speaks of *)
Section Lag.
Variable r : run.
Variable tags : nat -> Q.

Definition lag (x : nat) : list Q :=
  match start r x with
  | None => []
  | Some s => let b := quiet_since r tags (unit_of r x) s in
              [total r s; inflight r b; cost r x; underestimate r tags (unit_of r x) b s]
  end.
End Lag.

(** The step in which the level reaches [t]; [levels] begin with step [n]. *)
Fixpoint step_reaching (levels : list Q) (t : Q) (n : nat) : nat :=
  match levels with
  | v :: rest => if Qle_bool t v then n - 1 else step_reaching rest t (S n)
  | [] => n
  end.

(** ** The closed loop: all of an agent is ready when it arrives *)
Section Closed.
Variable given : list leaving_agent.       (* none is cancelled *)
Variable g : engine.
Let w := leaving_workload given.

Definition closed_trace := trace (clock_start, fun _ : nat => @None nat) (loop_step w g) (fun s => level (fst s)).
Lemma closed_trace_runs k : fst (closed_trace k) = loop w g k.
Proof. apply trace_runs; reflexivity. Qed.

(** Starts; tags; virtual time before each step; the service at which the reference finishes each unit; and for each
    inference what was delivered before its start, in flight, its cost, and underestimated. *)
Definition closed_agrees (T : nat) (steps : list (option nat)) (tags levels finishes : list Q) (lags : list (list Q))
    : bool :=
  let (state, found) := closed_trace T in
  let found_tags := map (clock_tag w (fst state)) (units w) in
  let r := closed_loop w g T in
  let finish u := G r (reference_of r) u (step_reaching found (of found_tags 0%Q u) 0) in
  same_steps (map (snd state) (inferences w)) steps
  && same_numbers found_tags tags
  && same_numbers found levels
  && same_numbers (map finish (units w)) finishes
  && same same_numbers (map (lag r (of found_tags 0%Q)) (inferences w)) lags.
End Closed.

(** ** Stages, released by completions *)
Section Released.
Variable given : list staged_agent.
Variable g : engine.
Let w := staged_workload given.

Definition released_trace := trace release_start (release_step w g (staged_rule given)) (fun s => level (r_clock s)).
Lemma released_trace_runs k : fst (released_trace k) = release_loop w g (staged_rule given) k.
Proof. apply trace_runs; reflexivity. Qed.

(** Starts; the steps in which stages become ready; their tags; virtual time; where the reference finishes them. *)
Definition released_agrees (T : nat) (steps ready_in : list (option nat)) (tags levels finishes : list Q) : bool :=
  let (state, found) := released_trace T in
  same_steps (map (r_starts state) (inferences w)) steps
  && same_steps (map (r_ready state) (units w)) ready_in
  && same_numbers (map (clock_tag w (r_clock state)) (units w)) tags
  && same_numbers found levels
  && as_claimed (map Some finishes) (map (find_in (r_finished state)) (units w)).
End Released.

(** ** Agents that end or are cancelled, and are settled; debts are forgotten when nobody is left *)
Section Settled.
Variable given : list leaving_agent.
Variable g : engine.
Let w := leaving_workload given.

Definition settled_trace := trace (cancel_start w) (cancel_step w g (leaving_rule given) true) c_level.
Lemma settled_trace_runs k : fst (settled_trace k) = cancel_loop w g (leaving_rule given) true k.
Proof. apply trace_runs; reflexivity. Qed.

(** Starts; the steps before which agents leave; the tags on arrival; virtual time; the tags in the end; and where the
    reference is through with each agent. *)
Definition settled_agrees (T : nat) (steps left_in : list (option nat)) (tags levels : list Q)
    (settled finishes : list (option Q)) : bool :=
  let (state, found) := settled_trace T in
  let first_tag u := (of found 0 (ready w u) + predicted w u / unit_weight w u)%Q in
  same_steps (map (c_starts state) (inferences w)) steps
  && same_steps (map (c_left state) (units w)) left_in
  && same_numbers (map first_tag (units w)) tags
  && same_numbers found levels
  && as_claimed settled (map (find_in (c_table state)) (units w))
  && as_claimed finishes (map (find_in (c_through state)) (units w)).
End Settled.
