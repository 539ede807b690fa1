"""Writes what commands print into docs/results.md, below each command.

    python -m benchmarks.results_page [FOLDER]

A block of no language that is one command, ``justitia …``, is followed by a block
``text`` of what it prints. FOLDER is where results and cells go (default: results);
after a ``justitia experiment all`` with the same flags nothing is run again.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
SHOWN = re.compile(
    r"^```\n(?P<command>justitia [^\n]+)\n```\n\n```text\n(?P<printed>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def printed(command: str, folder: str = "results") -> str:
    """Return what a command prints.

    Raises
    ------
    CalledProcessError
        If it fails.
    """
    given = shlex.split(command)[1:]
    if given[0] == "experiment":
        given += ["--out", folder]
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "justitia", *given],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return ran.stdout.replace(f"{folder}/report.html", "results/report.html")


def main(folder: str = "results") -> int:
    """Rewrite the page."""
    page = PAGE.read_text("utf-8")

    def anew(match: re.Match[str]) -> str:
        command = match["command"]
        return f"```\n{command}\n```\n\n```text\n{printed(command, folder)}```"

    PAGE.write_text(SHOWN.sub(anew, page), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
