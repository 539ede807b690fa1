"""The policy is the standard library and itself: no clock, no I/O, no chance."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.policy.builders import VARIANTS
from tests.policy.history import dispatch_log

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "policy").glob("*.py"))
ALLOWED = {
    "__future__", "abc", "collections", "fractions", "heapq", "inspect", "math",
    "numbers", "types", "typing", "justitia.policy",
}  # fmt: skip
"""No time, datetime, random, os, sys, io, logging, threading, and nothing of others."""
FORBIDDEN = {"open", "print", "input", "eval", "exec", "__import__", "hash", "id"}


def imported(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module))
    return found


def test_there_are_files() -> None:
    assert {"__init__.py", "clock.py", "ledger.py"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_B12_no_policy_file_reads_a_clock_or_does_anything_else(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    for module in imported(tree):
        ours = module == "justitia.policy" or module.startswith("justitia.policy.")
        assert ours or module.partition(".")[0] in ALLOWED, module
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    uses = called & FORBIDDEN
    # An address or a hash may be looked at where it cannot decide an order.
    if path.name == "costs.py":
        uses -= {"hash"}  # __hash__ of a model
    if path.name == "agents.py":
        uses -= {"hash"}  # __hash__ of a value
    if path.name == "clock.py":
        uses -= {"id"}  # _check: whether an entry is in the heap
    assert not uses


ALONE = """
import sys, types
sys.path = [p for p in sys.path if "site-packages" not in p]

refused = set()

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top != "justitia":
            refused.add(top)
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
package = types.ModuleType("justitia")
package.__path__ = [sys.argv[1]]
sys.modules["justitia"] = package
before = set(sys.modules)

from justitia.policy import Agent, Inference, Step, create, names
for name in names():
    policy = create(name)
    for agent in ("B", "A"):
        policy.arrive(Agent(agent, 10))
        policy.submit(Inference(agent + "/0", agent, 3, 2))
    head = policy.pop()
    policy.serve(Step({head.id: 3}, {head.id: 1}))
    assert [i.id for i in policy.order()] == ["A/0"], name
    policy._check()
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
assert not loaded & {"random", "logging", "socket", "threading", "asyncio"}, loaded
assert refused <= {"org"}, refused  # copy.py asks whether this is Jython
print("ran alone")
"""


def run(*arguments: str, **environment: str) -> str:
    """Run Python, which finds our code and what this process finds, and no more."""
    where = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        env={**os.environ, "PYTHONPATH": where, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_policy_runs_with_nothing_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ran alone\n", done.stderr


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_B07_the_hash_seed_is_nothing_to_the_order(seed: str) -> None:
    told = json.loads(run("-m", "tests.policy.history", PYTHONHASHSEED=seed))
    here = {variant: dispatch_log(variant) for variant in VARIANTS}
    assert told == json.loads(json.dumps(here))
    assert len(here["justitia"]) > 40


def test_B60_profiles_that_do_not_depend_on_the_machine() -> None:
    ci = settings.get_profile("ci")
    assert (ci.deadline, ci.derandomize, ci.print_blob) == (None, True, True)
    assert [check.name for check in ci.suppress_health_check] == ["too_slow"]
    for name in ("quick", "long"):
        assert settings.get_profile(name).deadline is None
    long = settings.get_profile("long")
    assert (long.max_examples, long.stateful_step_count) == (1000, 200)
    assert not long.derandomize
