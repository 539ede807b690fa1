"""The command line: ``run``, ``experiment``, ``serve``, ``gateway`` and others.

Only what reads the command line is imported with this module: what runs it takes longer
to load than ``--help`` should.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from justitia import __version__
from justitia.flags import (
    BROKEN,
    DONE,
    INTERRUPTED,
    RUN_FAILED,
    USAGE,
    FileOrDash,
    Name,
    Names,
    Number,
    fail,
)
from justitia.predictor_cli import predictor_app

app = App(
    name="justitia",
    help="Fair, memory-aware scheduling of task-parallel LLM agents.",
    help_epilogue="Start with: justitia run --agents 50",
    version_format="plaintext",
    version=__version__,
    suppress_keyboard_interrupt=False,
)


@app.command(
    help_epilogue="Exit codes: 0 done, 1 the run failed, 2 the command or a setting "
    "cannot be used."
)
def run(
    *,
    config: Annotated[str | None, Parameter(metavar="FILE")] = None,
    engine: Name = None,
    preset: Annotated[str | None, Parameter(metavar="NAME|FILE")] = None,
    model: Annotated[str | None, Parameter(metavar="NAME|PATH")] = None,
    url: Annotated[list[str] | None, Parameter(metavar="URL", negative=())] = None,
    key_env: Name = None,
    capacity: Annotated[str | None, Parameter(metavar="auto|N")] = None,
    slots: Number = None,
    policy: Names = None,
    tags: Annotated[str | None, Parameter(metavar="agent|stage")] = None,
    admission: Name = None,
    preemption: Name = None,
    agents: Number = None,
    workload: Annotated[str | None, Parameter(metavar="paper|PATH")] = None,
    arrivals: Annotated[str | None, Parameter(metavar="NAME|FILE")] = None,
    density: Number = None,
    load: Number = None,
    predictor: Name = None,
    seed: Number = None,
    jobs: Number = None,
    json: FileOrDash = None,
    plot: Annotated[str | None, Parameter(metavar="FILE")] = None,
    report: Annotated[str | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Run agents under several policies and compare when they finish.

    Every setting but --config can also be a variable (JUSTITIA_AGENTS for --agents) or
    a key in the file of --config (agents = 300). A flag is stronger than a variable,
    that is stronger than the file, and that than the default.

    Parameters
    ----------
    config
        A TOML file with any of the settings below, and with options of one policy in a
        table [policy.NAME]; the policies to run are then a list, policies = [...].
        JUSTITIA_CONFIG names it, too.
    engine
        sim, the embedded simulator (default); vllm or sglang, the real engine in this
        process; openai, servers that run already and speak OpenAI's API (--url).
    preset
        What sim simulates: llama-7b-a100-40g (default), llama-13b-4xv100-16g,
        qwen2.5-32b-h800-80g, tiny-llama-cpu, tiny-llama-cpu-sglang, or a TOML file of
        your own. With a real engine it only says how long the load takes to arrive
        (default: tiny-llama-cpu, with sglang tiny-llama-cpu-sglang, with openai as with
        sim).
    model
        What a real engine serves (default: a tiny model made on the spot; with openai
        the only model that the server has). All lengths are scaled down where the
        longest inference would not fit.
    url
        With openai: a server's address, http://127.0.0.1:8000, several times for
        several. What has no room there is held here, in the policy's order. Needs the
        extra "gateway".
    key_env
        With openai: the variable that holds the server's API key (default: none).
    capacity
        With openai: KV tokens of a server's cache; auto (default): it is asked, as
        vLLM and SGLang can be.
    slots
        With openai: how many inferences a server runs at once at most (default: as many
        as its cache has room for).
    policy
        A policy to run, several times for several: justitia, justitia-c, fcfs,
        agent-fcfs, sjf, srjf, vtc (default: these seven, the paper's), mlfq,
        fairserve, ayo.
    tags
        agent (default): one tag for all of an agent. stage: one for each of its stages,
        for which the delay bound holds. Stronger than a policy's table in the file.
    admission
        What the engine sets aside before it starts an inference: none (default),
        prompt, predicted, max or, on sim, lookahead. With sglang none or max, with
        openai always predicted.
    preemption
        What becomes of the KV cache of an inference that gives way: recompute (default)
        or, on sim, swap.
    agents
        How many agents (default: 300).
    workload
        paper (default), the generated mix; a file of agents; or a folder of such files,
        to draw the mix from.
    arrivals
        poisson, burst (all at once), workload (the workload's own), or a trace file
        (default: the workload's own if it has any, else poisson).
    density
        How densely agents arrive: 1 is a load of 0.7; 2 (default) and 3 are 2 and 3
        times as dense.
    load
        The load itself, instead of a density.
    predictor
        oracle (default), which knows the costs; noisy:LAMBDA, off by a factor of up to
        LAMBDA; the folder DIR of a model that justitia predictor train wrote, or
        online:DIR, which goes on learning from the agents that finish; mean, of the
        class so far; max, max_tokens of each inference; s3, the baseline S³, or s3:DIR.
        All but the oracle run beside it, to show what predicting costs.
    seed
        Of everything random (default: 7).
    jobs
        How many policies to run at once (default: one a core). A real engine runs one
        after the other.
    json
        Write all results there as JSON; - for standard output, in place of the tables.
    plot
        Draw the distribution of JCT there (.png, .svg or .pdf).
    report
        Write tables and figures there as one page of HTML that needs nothing else.
    """
    from justitia import config as settings  # noqa: PLC0415 - see above
    from justitia.engines import EngineError  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415
    from justitia.running import run_settings  # noqa: PLC0415

    flags = {
        "engine": engine,
        "preset": preset,
        "model": model,
        "url": url,
        "key_env": key_env,
        "capacity": capacity,
        "slots": slots,
        "policy": policy,
        "tags": tags,
        "admission": admission,
        "preemption": preemption,
        "agents": agents,
        "workload": workload,
        "arrivals": arrivals,
        "density": density,
        "load": load,
        "predictor": predictor,
        "seed": seed,
        "jobs": jobs,
        "json": json,
        "plot": plot,
        "report": report,
    }
    try:
        run_settings(settings.load(flags, file=config))
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


@app.command(
    help_epilogue="Exit codes: 0 done, 1 a run failed, 2 the command or a setting "
    "cannot be used."
)
def experiment(
    name: Annotated[str, Parameter(metavar="NAME")],
    /,
    *,
    quick: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    out: Annotated[str | None, Parameter(metavar="DIR")] = None,
    seeds: Number = None,
    seed: Number = None,
    agents: Number = None,
    workload: Annotated[str | None, Parameter(metavar="paper|PATH")] = None,
    arrivals: Annotated[str | None, Parameter(metavar="NAME|FILE")] = None,
    data: Annotated[str | None, Parameter(metavar="PATH")] = None,
    jobs: Number = None,
    json: FileOrDash = None,
) -> int:
    """Build tables and figures of the paper anew, the paper's figures beside ours.

    Writes a folder: report.html (one page that needs nothing else), results.json, a CSV
    for each table, figures as PNG and SVG. The same seeds give the same bytes whatever
    --jobs says; times of the clock are in timings.json. What was interrupted goes on
    where it was. Needs the extra "experiments".

    Parameters
    ----------
    name
        main, every scheduler; predictor, the cost of not knowing costs; cost, what to
        count as cost; starvation, an elephant among mice; noise, wrong predictions;
        density, how densely agents arrive; overhead, time of a decision; scale, up to a
        million inferences, and the lag against the bound; or all.
    quick
        Fewer seeds and smaller sizes: all within minutes.
    out
        The folder (default: results).
    seeds
        How many seeds, from --seed on (default: 5, with --quick 2).
    seed
        The first (default: 7).
    agents
        Agents in a run of the mix (default: 300).
    workload
        paper (default), the generated mix; a file of agents; or a folder of such files,
        to draw the mix from.
    arrivals
        poisson (default), workload (the workload's own), or a trace file.
    data
        For predictor: agents to learn from and to be judged by, a file or a folder
        (default: generated ones).
    jobs
        How many runs at once (default: one a core).
    json
        Write results.json there, too; - for standard output, in place of the tables.
    """
    from justitia import experimenting  # noqa: PLC0415 - see above
    from justitia.engines import EngineError  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415

    try:
        experimenting.experiment_settings(
            experimenting.load(
                name,
                quick=quick,
                out=out,
                seeds=seeds,
                seed=seed,
                agents=agents,
                workload=workload,
                arrivals=arrivals,
                data=data,
                jobs=jobs,
                json=json,
            )
        )
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


@app.command(
    help_epilogue="Exit codes: 0 all held, 1 a property is broken, 2 the scheduler or "
    "a setting cannot be used."
)
def verify(
    target: Annotated[str | None, Parameter(metavar="MODULE:CLASS")] = None,
    /,
    *,
    profile: Annotated[str | None, Parameter(metavar="quick|ci|long")] = None,
    seed: Number = None,
    property: Names = None,
    json: FileOrDash = None,
) -> int:
    """Put a scheduler through every property, and show what breaks those it breaks.

    Of each property that is broken it shows the shortest history found: what the
    scheduler was told and what it answered, in Python. Needs the extra "proofs".

    Parameters
    ----------
    target
        The class, or a function without arguments, that makes an object with the verbs
        of justitia.policy.Policy. MODULE is a module, the current folder being
        importable, or a file: ./mine.py:MyPolicy
        (default: justitia.policy:SelectivePampering).
    profile
        How hard to look: quick (default), within a minute; ci; long.
    seed
        The same seed finds the same (default: 7).
    property
        One to look at, several times for several (default: all).
    json
        Write the report there as JSON; - for standard output, in place of the table.
    """
    from justitia.policy import PolicyError  # noqa: PLC0415 - see above
    from justitia.verifying import VerifySettings, verify_settings  # noqa: PLC0415

    default = VerifySettings()
    settings = VerifySettings(
        default.target if target is None else target,
        default.profile if profile is None else profile,
        default.seed if seed is None else seed,
        tuple(property or ()),
        json,
    )
    try:
        held = verify_settings(settings)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE if held else BROKEN


@app.command(
    help_epilogue="Exit codes: those of the server; 1 the engine cannot be used, 2 the "
    "command or a setting cannot."
)
def serve(
    *further: str,
    engine: Name = None,
    model: Annotated[str | None, Parameter(metavar="PATH|NAME|tiny")] = None,
    policy: Name = None,
    admission: Name = None,
    options: Annotated[str | None, Parameter(metavar="JSON")] = None,
    linger: Number = None,
    most_agents: Number = None,
    predictor: Annotated[str | None, Parameter(metavar="DIR")] = None,
    host: Name = None,
    port: Number = None,
    config: Annotated[str | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Start an engine's own OpenAI server with the policy inside its scheduler.

    Every setting but --config can also be a variable (JUSTITIA_POLICY for --policy) or
    a key in the file of --config, and options of a policy are a table [policy.NAME]
    there. The server stops, with the reason, if the policy is not in force.

    Parameters
    ----------
    further
        Arguments of the engine's server, after --:
        justitia serve --model PATH -- --max-model-len 8192
    engine
        vllm (default) or sglang.
    model
        A folder, a name on a hub that the engine can reach, or tiny for a model made on
        the spot, to try things with.
    policy
        The policy (default: justitia).
    admission
        What is set aside before a request starts: none (default), max or, with vllm,
        prompt or predicted.
    options
        Options of the policy, as a JSON object (default: the table [policy.NAME] of the
        file).
    linger
        Seconds for which an agent without a request is remembered (default: 300); with
        sglang hundreds of iterations.
    most_agents
        Agents without a request that are remembered at most (default: 10000).
    predictor
        A model of justitia predictor train, which tells what a request will produce
        where it does not say so itself (default: as much as it may).
    host
        The address to listen on (default: 127.0.0.1, this machine only).
    port
        The port (default: 8000).
    config
        A TOML file with any of these settings. JUSTITIA_CONFIG names it, too.
    """
    from justitia import serving  # noqa: PLC0415 - see above
    from justitia.engines import EngineError  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415

    flags = {
        "engine": engine,
        "model": model,
        "policy": policy,
        "admission": admission,
        "options": options,
        "linger": linger,
        "most_agents": most_agents,
        "predictor": predictor,
        "host": host,
        "port": port,
    }
    try:
        serving.serve(serving.load(flags, further, file=config))
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


@app.command(
    help_epilogue="Exit codes: 0 stopped, 1 nothing can listen there, 2 the command or "
    "a setting cannot be used."
)
def gateway(
    *,
    config: Annotated[str | None, Parameter(metavar="FILE")] = None,
    engine: Annotated[list[str] | None, Parameter(metavar="URL", negative=())] = None,
    policy: Name = None,
    options: Annotated[str | None, Parameter(metavar="JSON")] = None,
    dispatch: Annotated[str | None, Parameter(metavar="gateway|engine")] = None,
    default_tokens: Number = None,
    linger: Number = None,
    most_agents: Number = None,
    predictor: Annotated[str | None, Parameter(metavar="DIR")] = None,
    host: Name = None,
    port: Number = None,
    open: Annotated[bool | None, Parameter(negative=())] = None,
    logs: Annotated[str | None, Parameter(metavar="text|json")] = None,
    store: Annotated[str | None, Parameter(metavar="FILE")] = None,
    keep_prompts: Annotated[bool | None, Parameter(negative=())] = None,
) -> int:
    """Serve OpenAI's API in front of engines, in the order of a policy.

    Clients change their base URL and name their agent (X-Justitia-Agent-Id). What would
    not fit into an engine's KV cache is held back here. Tenants with their keys, limits
    and what is known of an engine are in the table [gateway] of the file; every setting
    below can be there, too, or a variable (JUSTITIA_PORT for --port). Needs the extra
    "gateway".

    Parameters
    ----------
    config
        A TOML file with a table [gateway], and with options of a policy in a table
        [policy.NAME]. JUSTITIA_CONFIG names it, too.
    engine
        The base of an engine's API, http://127.0.0.1:8000, several times for several
        (JUSTITIA_ENGINES, with commas).
    policy
        The policy (default: justitia).
    options
        Options of the policy, as a JSON object.
    dispatch
        gateway (default): what has no room is held here. engine: all is sent at once,
        with a priority.
    default_tokens
        What a request is thought to produce that says nothing of it (default: 256).
    linger
        Seconds for which an agent without a request is remembered (default: 300).
    most_agents
        Agents without a request that are remembered at most (default: 10000).
    predictor
        A model of justitia predictor train, which tells what a request will produce
        where it does not say so itself (default: as much as it may).
    host
        The address to listen on (default: 127.0.0.1, this machine only).
    port
        The port (default: 8080).
    open
        Listen on an address that others can reach, though there are no keys.
    logs
        text (default), or json: an object a line.
    store
        A file in which agents' state and finished inferences are kept, so that a
        gateway that is killed goes on where it was (default: nothing is kept).
    keep_prompts
        Keep what prompts begin with there, too, for predictors to learn from.
    """
    from justitia.engines import EngineError  # noqa: PLC0415 - see above
    from justitia.policy import PolicyError  # noqa: PLC0415
    from justitia.relaying import relay  # noqa: PLC0415

    flags = {
        "engines": engine,
        "policy": policy,
        "options": options,
        "dispatch": dispatch,
        "default_tokens": default_tokens,
        "linger": linger,
        "most_agents": most_agents,
        "predictor": predictor,
        "host": host,
        "port": port,
        "open": open,
        "logs": logs,
        "store": store,
        "keep_prompts": keep_prompts,
    }
    try:
        relay(flags, config)
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


@app.command(
    help_epilogue="Exit codes: 0 done, 1 the engine cannot be used or a run failed, 2 "
    "the command or a setting cannot be used."
)
def calibrate(
    *,
    engine: Annotated[str | None, Parameter(metavar="vllm|sglang")] = None,
    model: Annotated[str | None, Parameter(metavar="NAME|PATH")] = None,
    out: FileOrDash = None,
    name: Name = None,
    rounds: Number = None,
    seed: Number = None,
) -> int:
    """Measure a real engine's step times on this machine, and write a preset of them.

    Loads of known shape run on the engine, in this process; a line is fitted to the
    times of their steps (prompt tokens, sequences, KV tokens), no part of it negative.
    justitia run --preset FILE then simulates that engine. It takes a minute or a few,
    on a machine that does nothing else.

    Parameters
    ----------
    engine
        vllm or sglang.
    model
        What the engine serves (default: a tiny model made on the spot).
    out
        The preset's file, mine.toml say; - (default) for standard output. Its first
        lines say what was measured, where, and how far off the fit is.
    name
        The preset's name, which results print (default: the model's and the engine's).
    rounds
        How often each load runs, after a round that warms up (default: 3). More make up
        for a machine that is busy.
    seed
        Of the order of the loads, and of the agents among them (default: 0).
    """
    from justitia import calibrating  # noqa: PLC0415 - see above
    from justitia.engines import EngineError  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415

    try:
        calibrating.calibrate_settings(
            calibrating.load(
                engine, model=model, out=out, name=name, rounds=rounds, seed=seed
            )
        )
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


@app.command(
    help_epilogue="Exit codes: 0 it honours priorities, 1 it does not or cannot be "
    "made to show, 2 the command cannot be used."
)
def probe(
    url: Annotated[str, Parameter(metavar="URL")],
    /,
    *,
    api_key: Annotated[str | None, Parameter(metavar="KEY")] = None,
    most: Number = None,
) -> int:
    """Find out whether a stock server honours the priorities of requests.

    vLLM and SGLang take every priority and ignore it unless they were started for it.
    This fills the server with requests until some of them wait, so it is for a server
    that has nothing else to do. Needs the extra "gateway".

    Parameters
    ----------
    url
        Of the server: http://127.0.0.1:8000
    api_key
        The server's key, if it has one; better in the variable JUSTITIA_API_KEY, since
        others on a machine can see its command lines.
    most
        Requests of low priority that it is sent at most (default: 4096).
    """
    from justitia import probing  # noqa: PLC0415 - see above
    from justitia.engines import EngineError  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415

    try:
        probing.probe_settings(probing.load(url, api_key, most))
    except EngineError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE


app.command(predictor_app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: done; 1: the run failed, or a property is broken; 2: the command or a setting
    cannot be used. Nothing that is typed, set or read from a file ends in a traceback.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of a file's strange name
    try:
        code = app(
            given,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is to be known here
    except CycloptsError as error:
        hint = ""
        if given[:1] == ["serve"] and isinstance(error, UnknownOptionError):
            hint = " The engine's own arguments go after --."
        return fail(f"{error}{hint} See: justitia {_named(given)} --help", USAGE)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()  # its reader has what it wanted
        return RUN_FAILED
    except OSError as error:
        _forget_output()
        return fail(
            f"{error.filename or 'standard output'}: cannot be written: "
            f"{error.strerror or error}",
            RUN_FAILED,
        )
    return code if isinstance(code, int) else DONE


def _named(given: Sequence[str]) -> str:
    """Return the command that was meant."""
    name, *rest = [*given, "", ""][:2]
    if name == predictor_app.name[0]:
        known = [name for name in predictor_app if not name.startswith("-")]
        return " ".join([name, *(one for one in rest if one in known)])
    commands = ("calibrate", "experiment", "verify", "serve", "gateway", "probe")
    return name if name in commands else "run"


def _forget_output() -> None:
    """Drop what standard output still holds, which Python would write at its end."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
