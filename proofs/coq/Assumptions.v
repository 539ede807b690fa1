(** * What the theorems rest on

    Each line must print "Closed under the global context": no axiom, nothing left open. Written by
    "make assumptions"; "make check" fails when a theorem is missing. *)
From Justitia Require Import BestConstant DelayBound DelayInTime ExecutableLag FairClock FairRateClock KVDelay LiteralBound NegativeResults PreemptionLag ReleasedLag ServiceLag SettledLag SharpLag TheoremA TheoremAInstances.

From Justitia Require Cancelled.
Print Assumptions Cancelled.form.
Print Assumptions Cancelled.valid.
Print Assumptions Cancelled.computed.
Print Assumptions Cancelled.premises.
Print Assumptions Cancelled.bound.
Print Assumptions Cancelled.equality.
Print Assumptions Cancelled.dropped_at_once.
Print Assumptions Cancelled.dropping_breaks_the_bound.

From Justitia Require DroppedExample.
Print Assumptions DroppedExample.faulty_tags.
Print Assumptions DroppedExample.true_tags.
Print Assumptions DroppedExample.hypotheses.
Print Assumptions DroppedExample.mouse.
Print Assumptions DroppedExample.values.
Print Assumptions DroppedExample.excess.

From Justitia Require Equality.
Print Assumptions Equality.hypotheses.
Print Assumptions Equality.compared.
Print Assumptions Equality.values.
Print Assumptions Equality.bound.
Print Assumptions Equality.equality.

From Justitia Require EqualityInTime.
Print Assumptions EqualityInTime.bound.
Print Assumptions EqualityInTime.start.
Print Assumptions EqualityInTime.finish.
Print Assumptions EqualityInTime.equality.

From Justitia Require Forgotten.
Print Assumptions Forgotten.fine.
Print Assumptions Forgotten.printed.
Print Assumptions Forgotten.remembered.
Print Assumptions Forgotten.bound.
Print Assumptions Forgotten.last_overtaken.
Print Assumptions Forgotten.equality.

From Justitia Require FullRate.
Print Assumptions FullRate.hypotheses.
Print Assumptions FullRate.costs.
Print Assumptions FullRate.starts_computed.
Print Assumptions FullRate.compared.
Print Assumptions FullRate.finish_times.
Print Assumptions FullRate.bound.

From Justitia Require HeldExample.
Print Assumptions HeldExample.hypotheses.
Print Assumptions HeldExample.more_than_its_cost.
Print Assumptions HeldExample.values.
Print Assumptions HeldExample.excess.

From Justitia Require InFlight.
Print Assumptions InFlight.hypotheses.
Print Assumptions InFlight.compared.
Print Assumptions InFlight.values.
Print Assumptions InFlight.nearly_equal.
Print Assumptions InFlight.sharp_equality.
Print Assumptions InFlight.nearly_equal_in_time.
Print Assumptions InFlight.bound.
Print Assumptions InFlight.bound_in_time.

From Justitia Require InFlightEquality.
Print Assumptions InFlightEquality.hypotheses.
Print Assumptions InFlightEquality.reference_fair.
Print Assumptions InFlightEquality.compared.
Print Assumptions InFlightEquality.values.
Print Assumptions InFlightEquality.bound.
Print Assumptions InFlightEquality.equality.

From Justitia Require LiteralBoundExamples.
Print Assumptions LiteralBoundExamples.ramps_costs.
Print Assumptions LiteralBoundExamples.ramps_break.
Print Assumptions LiteralBoundExamples.alone_costs.
Print Assumptions LiteralBoundExamples.alone_breaks.
Print Assumptions LiteralBoundExamples.capped_costs.
Print Assumptions LiteralBoundExamples.capped_breaks.
Print Assumptions LiteralBoundExamples.real_costs.
Print Assumptions LiteralBoundExamples.liars_break.

From Justitia Require MixedDemand.
Print Assumptions MixedDemand.reserved.
Print Assumptions MixedDemand.kv.
Print Assumptions MixedDemand.look_ahead.
Print Assumptions MixedDemand.predicted.
Print Assumptions MixedDemand.capped.
Print Assumptions MixedDemand.tags.
Print Assumptions MixedDemand.starts_computed.

From Justitia Require Mouse.
Print Assumptions Mouse.hypotheses.
Print Assumptions Mouse.costs.
Print Assumptions Mouse.starts_computed.
Print Assumptions Mouse.compared.
Print Assumptions Mouse.values.
Print Assumptions Mouse.bound.
Print Assumptions Mouse.waiting_steps.
Print Assumptions Mouse.finish_time_value.
Print Assumptions Mouse.bound_in_time.

From Justitia Require NearlyTight.
Print Assumptions NearlyTight.hypotheses.
Print Assumptions NearlyTight.start.
Print Assumptions NearlyTight.finish.
Print Assumptions NearlyTight.bound.

From Justitia Require OneTagExample.
Print Assumptions OneTagExample.hypotheses.
Print Assumptions OneTagExample.tags.
Print Assumptions OneTagExample.compared.
Print Assumptions OneTagExample.values.
Print Assumptions OneTagExample.excess.
Print Assumptions OneTagExample.order_not_kept.

From Justitia Require Preempted.
Print Assumptions Preempted.hypothesis_form.
Print Assumptions Preempted.hypothesis_valid.
Print Assumptions Preempted.hypothesis_order.
Print Assumptions Preempted.compared.
Print Assumptions Preempted.values.
Print Assumptions Preempted.bound.

From Justitia Require StagesReleased.
Print Assumptions StagesReleased.fine.
Print Assumptions StagesReleased.printed.
Print Assumptions StagesReleased.bound.
Print Assumptions StagesReleased.second_stage_of_1.
Print Assumptions StagesReleased.values_of_1.
Print Assumptions StagesReleased.second_stage_of_0.
Print Assumptions StagesReleased.values_of_0.

From Justitia Require StagesSettledInOne.
Print Assumptions StagesSettledInOne.form.
Print Assumptions StagesSettledInOne.starts_computed.
Print Assumptions StagesSettledInOne.tags.
Print Assumptions StagesSettledInOne.quiet_since_9.
Print Assumptions StagesSettledInOne.values.
Print Assumptions StagesSettledInOne.finished_in_one.
Print Assumptions StagesSettledInOne.in_one_breaks_the_bound.
Print Assumptions StagesSettledInOne.finished_by_itself.
Print Assumptions StagesSettledInOne.by_itself_keeps_the_bound.

From Justitia Require StagesWeights.
Print Assumptions StagesWeights.hypotheses.
Print Assumptions StagesWeights.tags.
Print Assumptions StagesWeights.compared_1.
Print Assumptions StagesWeights.values_1.
Print Assumptions StagesWeights.compared_2.
Print Assumptions StagesWeights.values_2.
Print Assumptions StagesWeights.bound.
Print Assumptions StagesWeights.equality_2.

From Justitia Require WorkedExample.
Print Assumptions WorkedExample.paper_costs.
Print Assumptions WorkedExample.paper_virtual_time.
Print Assumptions WorkedExample.paper_tags.
Print Assumptions WorkedExample.paper_reference_finishes.
Print Assumptions WorkedExample.paper_line.
Print Assumptions WorkedExample.paper_starts.

From Justitia Require CancelLagProof.
Print Assumptions CancelLagProof.theorem_cancelled_run_holds.
Definition checked_theorem_cancelled_run : theorem_cancelled_run := CancelLagProof.theorem_cancelled_run_holds.
Print Assumptions CancelLagProof.theorem_B_cancelled_holds.
Definition checked_theorem_B_cancelled : theorem_B_cancelled := CancelLagProof.theorem_B_cancelled_holds.

From Justitia Require ConstantIsOptimal.
Print Assumptions ConstantIsOptimal.latecomer_lags_holds.
Definition checked_latecomer_lags : latecomer_lags := ConstantIsOptimal.latecomer_lags_holds.
Print Assumptions ConstantIsOptimal.constant_is_optimal_holds.
Definition checked_constant_is_optimal : constant_is_optimal := ConstantIsOptimal.constant_is_optimal_holds.

From Justitia Require DelayBoundProof.
Print Assumptions DelayBoundProof.theorem_A_abstract_holds.
Definition checked_theorem_A_abstract : theorem_A_abstract := DelayBoundProof.theorem_A_abstract_holds.
Print Assumptions DelayBoundProof.theorem_A_measured_holds.
Definition checked_theorem_A_measured : theorem_A_measured := DelayBoundProof.theorem_A_measured_holds.
Print Assumptions DelayBoundProof.theorem_A_constant_rate_holds.
Definition checked_theorem_A_constant_rate : theorem_A_constant_rate := DelayBoundProof.theorem_A_constant_rate_holds.

From Justitia Require DelayInTimeProof.
Print Assumptions DelayInTimeProof.theorem_B_start_time_holds.
Definition checked_theorem_B_start_time : theorem_B_start_time := DelayInTimeProof.theorem_B_start_time_holds.
Print Assumptions DelayInTimeProof.theorem_B_time_holds.
Definition checked_theorem_B_time : theorem_B_time := DelayInTimeProof.theorem_B_time_holds.
Print Assumptions DelayInTimeProof.theorem_inflight_bound_holds.
Definition checked_theorem_inflight_bound : theorem_inflight_bound := DelayInTimeProof.theorem_inflight_bound_holds.
Print Assumptions DelayInTimeProof.theorem_B1_holds.
Definition checked_theorem_B1 : theorem_B1 := DelayInTimeProof.theorem_B1_holds.
Print Assumptions DelayInTimeProof.theorem_B1_full_rate_holds.
Definition checked_theorem_B1_full_rate : theorem_B1_full_rate := DelayInTimeProof.theorem_B1_full_rate_holds.
Print Assumptions DelayInTimeProof.theorem_ends_exists_holds.
Definition checked_theorem_ends_exists : theorem_ends_exists := DelayInTimeProof.theorem_ends_exists_holds.
Print Assumptions DelayInTimeProof.theorem_B_all_start_holds.
Definition checked_theorem_B_all_start : theorem_B_all_start := DelayInTimeProof.theorem_B_all_start_holds.

From Justitia Require DroppingTheEnded.
Print Assumptions DroppingTheEnded.dropping_the_ended_is_unbounded_holds.
Definition checked_dropping_the_ended_is_unbounded : dropping_the_ended_is_unbounded := DroppingTheEnded.dropping_the_ended_is_unbounded_holds.

From Justitia Require ExecutableLagProof.
Print Assumptions ExecutableLagProof.theorem_B_clock_holds.
Definition checked_theorem_B_clock : theorem_B_clock := ExecutableLagProof.theorem_B_clock_holds.
Print Assumptions ExecutableLagProof.theorem_closed_loop_valid_holds.
Definition checked_theorem_closed_loop_valid : theorem_closed_loop_valid := ExecutableLagProof.theorem_closed_loop_valid_holds.
Print Assumptions ExecutableLagProof.theorem_closed_loop_keeps_order_holds.
Definition checked_theorem_closed_loop_keeps_order : theorem_closed_loop_keeps_order := ExecutableLagProof.theorem_closed_loop_keeps_order_holds.
Print Assumptions ExecutableLagProof.theorem_closed_loop_tags_holds.
Definition checked_theorem_closed_loop_tags : theorem_closed_loop_tags := ExecutableLagProof.theorem_closed_loop_tags_holds.
Print Assumptions ExecutableLagProof.theorem_B_closed_loop_holds.
Definition checked_theorem_B_closed_loop : theorem_B_closed_loop := ExecutableLagProof.theorem_B_closed_loop_holds.
Print Assumptions ExecutableLagProof.theorem_B_kv_holds.
Definition checked_theorem_B_kv : theorem_B_kv := ExecutableLagProof.theorem_B_kv_holds.

From Justitia Require FairClockProof.
Print Assumptions FairClockProof.theorem_clock_fair_holds.
Definition checked_theorem_clock_fair : theorem_clock_fair := FairClockProof.theorem_clock_fair_holds.
Print Assumptions FairClockProof.theorem_clock_work_conserving_holds.
Definition checked_theorem_clock_work_conserving : theorem_clock_work_conserving := FairClockProof.theorem_clock_work_conserving_holds.
Print Assumptions FairClockProof.theorem_base_first_holds.
Definition checked_theorem_base_first : theorem_base_first := FairClockProof.theorem_base_first_holds.
Print Assumptions FairClockProof.theorem_base_next_holds.
Definition checked_theorem_base_next : theorem_base_next := FairClockProof.theorem_base_next_holds.

From Justitia Require FairRateClockProof.
Print Assumptions FairRateClockProof.clock_is_fair_holds.
Definition checked_clock_is_fair : clock_is_fair := FairRateClockProof.clock_is_fair_holds.

From Justitia Require HeldMemory.
Print Assumptions HeldMemory.held_memory_is_unbounded_holds.
Definition checked_held_memory_is_unbounded : held_memory_is_unbounded := HeldMemory.held_memory_is_unbounded_holds.

From Justitia Require KVDelayProof.
Print Assumptions KVDelayProof.theorem_kv_delivers_held_holds.
Definition checked_theorem_kv_delivers_held : theorem_kv_delivers_held := KVDelayProof.theorem_kv_delivers_held_holds.
Print Assumptions KVDelayProof.theorem_kv_ends_holds.
Definition checked_theorem_kv_ends : theorem_kv_ends := KVDelayProof.theorem_kv_ends_holds.
Print Assumptions KVDelayProof.theorem_B_kv_time_holds.
Definition checked_theorem_B_kv_time : theorem_B_kv_time := KVDelayProof.theorem_B_kv_time_holds.
Print Assumptions KVDelayProof.theorem_B1_kv_holds.
Definition checked_theorem_B1_kv : theorem_B1_kv := KVDelayProof.theorem_B1_kv_holds.
Print Assumptions KVDelayProof.theorem_reserve_within_capacity_holds.
Definition checked_theorem_reserve_within_capacity : theorem_reserve_within_capacity := KVDelayProof.theorem_reserve_within_capacity_holds.
Print Assumptions KVDelayProof.theorem_B1_reserve_holds.
Definition checked_theorem_B1_reserve : theorem_B1_reserve := KVDelayProof.theorem_B1_reserve_holds.

From Justitia Require LeavingAgentsProof.
Print Assumptions LeavingAgentsProof.theorem_B_leaving_outcome_holds.
Definition checked_theorem_B_leaving_outcome : theorem_B_leaving_outcome := LeavingAgentsProof.theorem_B_leaving_outcome_holds.

From Justitia Require LiteralBoundIsFalse.
Print Assumptions LiteralBoundIsFalse.literal_bound_is_false_holds.
Definition checked_literal_bound_is_false : literal_bound_is_false := LiteralBoundIsFalse.literal_bound_is_false_holds.

From Justitia Require MemorySafety.
Print Assumptions MemorySafety.theorem_A_memory_safe_holds.
Definition checked_theorem_A_memory_safe : theorem_A_memory_safe := MemorySafety.theorem_A_memory_safe_holds.

From Justitia Require OneTagForStages.
Print Assumptions OneTagForStages.one_tag_for_stages_is_unbounded_holds.
Definition checked_one_tag_for_stages_is_unbounded : one_tag_for_stages_is_unbounded := OneTagForStages.one_tag_for_stages_is_unbounded_holds.

From Justitia Require OwnUnderestimate.
Print Assumptions OwnUnderestimate.own_underestimate_is_needed_holds.
Definition checked_own_underestimate_is_needed : own_underestimate_is_needed := OwnUnderestimate.own_underestimate_is_needed_holds.

From Justitia Require PreemptedCompletion.
Print Assumptions PreemptedCompletion.completion_is_unbounded_holds.
Definition checked_completion_is_unbounded : completion_is_unbounded := PreemptedCompletion.completion_is_unbounded_holds.

From Justitia Require PreemptionLagProof.
Print Assumptions PreemptionLagProof.theorem_B_preemption_holds.
Definition checked_theorem_B_preemption : theorem_B_preemption := PreemptionLagProof.theorem_B_preemption_holds.
Print Assumptions PreemptionLagProof.theorem_B_preemption_clock_holds.
Definition checked_theorem_B_preemption_clock : theorem_B_preemption_clock := PreemptionLagProof.theorem_B_preemption_clock_holds.

From Justitia Require RateIsOptimal.
Print Assumptions RateIsOptimal.rate_is_optimal_holds.
Definition checked_rate_is_optimal : rate_is_optimal := RateIsOptimal.rate_is_optimal_holds.
Print Assumptions RateIsOptimal.no_scheduler_keeps_the_full_rate_holds.
Definition checked_no_scheduler_keeps_the_full_rate : no_scheduler_keeps_the_full_rate := RateIsOptimal.no_scheduler_keeps_the_full_rate_holds.
Print Assumptions RateIsOptimal.half_rate_needs_single_tokens_holds.
Definition checked_half_rate_needs_single_tokens : half_rate_needs_single_tokens := RateIsOptimal.half_rate_needs_single_tokens_holds.

From Justitia Require ReleasedLagProof.
Print Assumptions ReleasedLagProof.theorem_released_run_holds.
Definition checked_theorem_released_run : theorem_released_run := ReleasedLagProof.theorem_released_run_holds.
Print Assumptions ReleasedLagProof.theorem_B_released_holds.
Definition checked_theorem_B_released : theorem_B_released := ReleasedLagProof.theorem_B_released_holds.
Print Assumptions ReleasedLagProof.theorem_B_stages_kv_holds.
Definition checked_theorem_B_stages_kv : theorem_B_stages_kv := ReleasedLagProof.theorem_B_stages_kv_holds.
Print Assumptions ReleasedLagProof.theorem_stage_after_stage_holds.
Definition checked_theorem_stage_after_stage : theorem_stage_after_stage := ReleasedLagProof.theorem_stage_after_stage_holds.
Print Assumptions ReleasedLagProof.theorem_stage_at_once_holds.
Definition checked_theorem_stage_at_once : theorem_stage_at_once := ReleasedLagProof.theorem_stage_at_once_holds.

From Justitia Require ServiceLagProof.
Print Assumptions ServiceLagProof.theorem_B_predicted_holds.
Definition checked_theorem_B_predicted : theorem_B_predicted := ServiceLagProof.theorem_B_predicted_holds.
Print Assumptions ServiceLagProof.theorem_B_holds.
Definition checked_theorem_B : theorem_B := ServiceLagProof.theorem_B_holds.
Print Assumptions ServiceLagProof.theorem_B_steps_holds.
Definition checked_theorem_B_steps : theorem_B_steps := ServiceLagProof.theorem_B_steps_holds.
Print Assumptions ServiceLagProof.theorem_quiet_exists_holds.
Definition checked_theorem_quiet_exists : theorem_quiet_exists := ServiceLagProof.theorem_quiet_exists_holds.
Print Assumptions ServiceLagProof.theorem_reference_finishes_holds.
Definition checked_theorem_reference_finishes : theorem_reference_finishes := ServiceLagProof.theorem_reference_finishes_holds.
Print Assumptions ServiceLagProof.theorem_G_range_holds.
Definition checked_theorem_G_range : theorem_G_range := ServiceLagProof.theorem_G_range_holds.

From Justitia Require SettledLagProof.
Print Assumptions SettledLagProof.theorem_B_settled_given_holds.
Definition checked_theorem_B_settled_given : theorem_B_settled_given := SettledLagProof.theorem_B_settled_given_holds.
Print Assumptions SettledLagProof.theorem_B_left_holds.
Definition checked_theorem_B_left : theorem_B_left := SettledLagProof.theorem_B_left_holds.
Print Assumptions SettledLagProof.theorem_B_settled_holds.
Definition checked_theorem_B_settled : theorem_B_settled := SettledLagProof.theorem_B_settled_holds.
Print Assumptions SettledLagProof.theorem_settling_conserves_holds.
Definition checked_theorem_settling_conserves : theorem_settling_conserves := SettledLagProof.theorem_settling_conserves_holds.

From Justitia Require SharpLagProof.
Print Assumptions SharpLagProof.theorem_B_sharp_holds.
Definition checked_theorem_B_sharp : theorem_B_sharp := SharpLagProof.theorem_B_sharp_holds.
Print Assumptions SharpLagProof.theorem_B_strict_holds.
Definition checked_theorem_B_strict : theorem_B_strict := SharpLagProof.theorem_B_strict_holds.

From Justitia Require StagedAgentsProof.
Print Assumptions StagedAgentsProof.theorem_B_outcome_holds.
Definition checked_theorem_B_outcome : theorem_B_outcome := StagedAgentsProof.theorem_B_outcome_holds.
Print Assumptions StagedAgentsProof.theorem_outcome_tags_holds.
Definition checked_theorem_outcome_tags : theorem_outcome_tags := StagedAgentsProof.theorem_outcome_tags_holds.

From Justitia Require TheoremAInstancesProof.
Print Assumptions TheoremAInstancesProof.theorem_A_reserved_holds.
Definition checked_theorem_A_reserved : theorem_A_reserved := TheoremAInstancesProof.theorem_A_reserved_holds.
Print Assumptions TheoremAInstancesProof.theorem_A_kv_holds.
Definition checked_theorem_A_kv : theorem_A_kv := TheoremAInstancesProof.theorem_A_kv_holds.
Print Assumptions TheoremAInstancesProof.theorem_A_look_ahead_holds.
Definition checked_theorem_A_look_ahead : theorem_A_look_ahead := TheoremAInstancesProof.theorem_A_look_ahead_holds.
Print Assumptions TheoremAInstancesProof.theorem_A_uniform_holds.
Definition checked_theorem_A_uniform : theorem_A_uniform := TheoremAInstancesProof.theorem_A_uniform_holds.
Print Assumptions TheoremAInstancesProof.theorem_A_predicted_holds.
Definition checked_theorem_A_predicted : theorem_A_predicted := TheoremAInstancesProof.theorem_A_predicted_holds.
Print Assumptions TheoremAInstancesProof.theorem_A_capped_holds.
Definition checked_theorem_A_capped : theorem_A_capped := TheoremAInstancesProof.theorem_A_capped_holds.

From Justitia Require TheoremAProof.
Print Assumptions TheoremAProof.theorem_A_holds.
Definition checked_theorem_A : theorem_A := TheoremAProof.theorem_A_holds.
Print Assumptions TheoremAProof.theorem_A_simple_holds.
Definition checked_theorem_A_simple : theorem_A_simple := TheoremAProof.theorem_A_simple_holds.
Print Assumptions TheoremAProof.theorem_A_no_starvation_holds.
Definition checked_theorem_A_no_starvation : theorem_A_no_starvation := TheoremAProof.theorem_A_no_starvation_holds.
Print Assumptions TheoremAProof.theorem_A_eventually_started_holds.
Definition checked_theorem_A_eventually_started : theorem_A_eventually_started := TheoremAProof.theorem_A_eventually_started_holds.
