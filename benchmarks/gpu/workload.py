"""What runs: agents that compete for the cache, under each policy; and one shape."""

from functools import partial
from typing import Any

from benchmarks.gpu.findings import Report, Row
from benchmarks.gpu.scale import Scale
from benchmarks.gpu.timing import Stopwatch
from justitia.engines import RunRecord
from justitia.engines.calibration.fitting import fit_steps
from justitia.engines.calibration.loads import of_one_shape
from justitia.engines.calibration.measuring import guessed, measure
from justitia.engines.calibration.recording import Recorded
from justitia.engines.calibration.samples import Sample
from justitia.engines.scenario import Scenario, build
from justitia.engines.serving.engine import LiveEngine
from justitia.engines.sim import Preset, SimEngine
from justitia.engines.summary import summarise
from justitia.policy import Policy, create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, InferenceSpec

POLICIES: dict[str, dict[str, str]] = {
    "fcfs": {},
    "vtc": {},
    # A tag a stage: that is what the bound is of.
    "justitia": {"tags": "stage"},
}
MOST_MS = 0.5
"""Of a policy's time a step, with as many running as the scale says."""
SEED = 7


def calibrated(engine: LiveEngine[Any], report: Report) -> Preset:
    """Measure the steps of this machine, and return what `sim` makes of them."""
    samples = measure(engine, rounds=1)
    fit = fit_steps(samples)
    report.facts["calibrated step"] = (
        f"{fit.fixed * 1e3:.3f} ms, {fit.prefill_token * 1e6:.2f} us a prompt token, "
        f"{fit.sequence * 1e6:.2f} us a sequence, {fit.kv_token * 1e9:.2f} ns a KV "
        f"token; off by {fit.error:.1%}, R2 {fit.r2:.3f}"
    )
    return guessed(engine, samples)


def run_policies(engine: LiveEngine[Any], scale: Scale, report: Report) -> None:
    """Run the same agents under each policy, as ``justitia run`` does."""
    preset = calibrated(engine, report)
    there = build(preset, agents=scale.agents, seed=SEED, fit=engine.fit)
    report.facts["workload"] = (
        f"{len(there.agents)} agents, {there.inferences} inferences (paper, seed "
        f"{SEED}, density {there.density:g}), {engine.limits().capacity_tokens:,} KV "
        f"tokens, lengths x {there.scaled:.3f}"
    )
    means = {}
    for name, options in POLICIES.items():
        watch = Stopwatch()
        policy = watch.on(create(name, **options))
        record = engine.run(
            there.agents, policy, Oracle(), tags=options.get("tags", "agent")
        )
        summary = summarise(record, None)
        lost = len(there.agents) - sum(a.outcome == "finished" for a in record.agents)
        report.add(f"{name}: all agents finish", not lost, f"{lost} did not")
        row = _row(name, there, record, watch)
        means[name] = row.mean_jct
        report.rows.append(row)
        if name == "justitia" and record.lag is not None:
            report.add(
                "justitia: no lag above the bound",
                record.lag.excess <= 0,
                f"largest lag {float(record.lag.worst):,.0f} token-steps, allowed "
                f"there {float(record.lag.allowed):,.0f}, worst excess "
                f"{float(record.lag.excess):,.0f}",
            )
        simulated = summarise(_simulated(preset, there, name, options), None).mean_jct
        report.facts[f"simulated mean JCT, {name}"] = (
            f"{simulated:.3f} s, measured {summary.mean_jct:.3f} s"
        )
    report.add(
        "justitia: mean JCT below first come first served",
        means["justitia"] < means["fcfs"],
        f"{means['justitia']:.3f} s against {means['fcfs']:.3f} s",
        judged=report.device != "cpu",
    )


def _simulated(
    preset: Preset, there: Scenario, name: str, options: dict[str, str]
) -> RunRecord:
    tags = options.get("tags", "agent")
    policy: Policy = create(name, **options)
    return SimEngine(preset).run(there.agents, policy, Oracle(), tags=tags)


def _row(name: str, there: Scenario, record: RunRecord, watch: Stopwatch) -> Row:
    summary = summarise(record, None)
    ends = [one.finish for one in record.inferences if one.finish is not None]
    tokens = sum(one.decode_tokens for a in there.agents for one in a.inferences)
    lag = record.lag
    return Row(
        policy=name,
        mean_jct=summary.mean_jct or 0.0,
        p99_jct=summary.p99_jct or 0.0,
        tokens_a_second=tokens / max(ends),
        preemptions=record.preemptions,
        lag=None if lag is None else float(lag.worst),
        allowed=None if lag is None else float(lag.allowed),
        policy_ms=1e3 * watch.seconds / record.steps,
    )


def time_policy(engine: LiveEngine[Any], scale: Scale, report: Report) -> None:
    """Take the policy's time a step with as many running as the scale says."""
    watch = Stopwatch()
    agents = of_one_shape(scale.running, scale.prompt, scale.decode)
    record = engine.run(agents, watch.on(create("justitia")), Oracle())
    spent = 1e3 * watch.seconds / record.steps
    report.add(
        f"justitia: below {MOST_MS} ms a step, {scale.running} running",
        spent < MOST_MS,
        f"{spent:.3f} ms of {record.steps} steps",
        judged=report.device != "cpu",
    )


def cut_prompt(engine: LiveEngine[Any], scale: Scale, report: Report) -> None:
    """Run a prompt that is longer than a step may be, and see it in parts."""
    prompt = min(engine.room() - 8, scale.budget + scale.budget // 2)
    samples: list[Sample] = []
    long = AgentSpec("long", (InferenceSpec(prompt, 4),), arrival=0.0)
    kind = partial(Recorded, samples=samples)
    engine.run([long], create("justitia"), Oracle(), kind=kind)
    parts = [one.prefill_tokens for one in samples if one.prefill_tokens]
    report.add(
        "chunked prefill: a long prompt is computed in parts",
        len(parts) > 1 and sum(parts) == prompt,
        f"{prompt} tokens as {parts}",
    )
