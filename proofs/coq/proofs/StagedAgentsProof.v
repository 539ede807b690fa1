(** * Theorem B for agents as they are written down: proofs *)
Require Import List Arith Lia QArith Lqa Bool.
From Justitia Require Import Sums KVFacts Lag StagedAgents ReleasedLagProof.
From Justitia Require Export ReleasedLag.
Import ListNotations.

Lemma numbered_In {A} (l : list A) i a : In (i, a) (numbered l) -> (i < length l)%nat /\ In a l.
Proof.
  unfold numbered. intros H. split; [|eapply in_combine_r; eauto].
  apply in_combine_l, in_seq in H. lia.
Qed.

Lemma nth_error_map_seq {A} (h : nat -> A) n x y : nth_error (map h (seq 0 n)) x = Some y ->
  (x < n)%nat /\ h x = y.
Proof.
  intros H. assert (L : (x < n)%nat).
  { pose proof (nth_error_Some (map h (seq 0 n)) x) as N. rewrite H, map_length, seq_length in N. apply N.
    discriminate. }
  split; auto. apply (nth_error_nth _ _ (h 0%nat)) in H. rewrite (map_nth h) in H. rewrite seq_nth in H by auto.
  exact H.
Qed.

Section Agents.
Variable given : list staged_agent.
Hypothesis fine : sound given.
Notation w := (staged_workload given).

Lemma stage_row_In u : (u < length (stage_rows given))%nat -> In (stage_row given u) (stage_rows given).
Proof. intros L. unfold stage_row. apply nth_In. auto. Qed.

Lemma stage_rows_spec i k s : In (i, (k, s)) (stage_rows given) ->
  (i < length given)%nat /\ exists a, In a given /\ In s (stages a).
Proof.
  unfold stage_rows. intros H. apply in_flat_map in H as ([i' a] & Ha & H). cbn [fst snd] in H.
  apply in_map_iff in H as ([k' s'] & E & Hs). injection E as -> -> ->.
  apply numbered_In in Ha as [L Ha]. apply numbered_In in Hs as [_ Hs]. eauto.
Qed.

Lemma call_rows_spec u c : In (u, c) (call_rows given) -> (u < length (stage_rows given))%nat.
Proof.
  unfold call_rows. intros H. apply in_flat_map in H as ([u' row] & Hu & H). cbn [fst snd] in H.
  apply in_map_iff in H as (c' & E & _). injection E as -> _. apply numbered_In in Hu. tauto.
Qed.

Lemma staged_form : well_formed w.
Proof.
  constructor; cbn [staged_workload units agents inferences unit_of agent_of weight predicted].
  - apply seq_NoDup.
  - apply seq_NoDup.
  - intros x Hx. apply in_seq in Hx. apply in_seq. unfold call_stage.
    pose proof (nth_In (call_rows given) (0, (0, 0))%nat (proj2 Hx : (x < length _)%nat)) as I.
    destruct (nth x (call_rows given) (0, (0, 0))%nat) as [u c]. apply call_rows_spec in I. cbn [fst]. lia.
  - intros u Hu. apply in_seq in Hu. apply in_seq. pose proof (stage_row_In u (proj2 Hu)) as I.
    destruct (stage_row given u) as [i [k s]]. apply stage_rows_spec in I as [L _]. cbn [fst]. lia.
  - intros i Hi. apply in_seq in Hi. apply fine, nth_In. apply Hi.
  - intros u Hu. apply in_seq in Hu. pose proof (stage_row_In u (proj2 Hu)) as I.
    destruct (stage_row given u) as [i [k s]]. apply stage_rows_spec in I as (_ & a & Ha & Hs). cbn [snd].
    apply (fine a Ha). auto.
Qed.

Lemma staged_costs : kv_costs w (prompt given) (decode given).
Proof. intros x _. reflexivity. Qed.
End Agents.

Theorem theorem_B_outcome_holds : theorem_B_outcome.
Proof.
  intros given fine M B T w r tg printed x s b G Hs j HQ HG.
  apply nth_error_map_seq in Hs as [Lx Hs]. apply nth_error_map_seq in HG as [_ HG].
  apply (theorem_B_stages_kv_holds w (prompt given) (decode given) (staged_limits given M B)
           (staged_form given fine) (staged_costs given) (arrival given) (stage_before given)); auto.
  cbn. apply in_seq. lia.
Qed.

Theorem theorem_outcome_tags_holds : theorem_outcome_tags.
Proof.
  intros given fine M B T. set (g := staged_engine given (staged_limits given M B)). intros r u t H.
  apply nth_error_map_seq in H as [_ H].
  destruct (theorem_released_run_holds (staged_workload given) g (staged_rule given)
              (staged_form given fine) (kv_engine_valid _ _ _ _ (staged_costs given)) T) as (_ & _ & Tags & _).
  assert (E : released_tag (staged_workload given) g (staged_rule given) T u
              = Some (tag r (reference_of r) u)).
  { destruct (released_tag (staged_workload given) g (staged_rule given) T u) as [t'|] eqn:R.
    - f_equal. apply Tags. auto.
    - exfalso. unfold released_tag in R. destruct (marked _ u); discriminate. }
  assert (inj : forall a b : Q, Some a = Some b -> a = b) by (intros a b Eab; congruence).
  unfold released_tag in E. destruct (marked _ u) eqn:M1; [|discriminate]. apply inj in E.
  apply inj in H. rewrite <- H, Qred_correct, <- E. reflexivity.
Qed.
