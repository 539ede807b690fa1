"""Time stamps of the requests of a recorded trace."""

import os
from collections.abc import Iterator
from itertools import chain

from justitia.workloads.agents import WorkloadError
from justitia.workloads.files.lines import fault, lines, parsed
from justitia.workloads.files.row import Row
from justitia.workloads.files.table import cells_of, number, table
from justitia.workloads.files.vtc import TIME

_STAMP = "timestamp"


def read_stamps(path: str | os.PathLike[str]) -> list[float]:
    """Return the stamps of a trace in milliseconds, in the order of the file.

    Mooncake's JSON lines (``timestamp``, in ms) or VTC's CSV (``req_time``, in
    seconds), compressed or not.

    Raises
    ------
    WorkloadError
        Naming the file, the line and the field, when a stamp is missing, negative or
        no number (0 is one); or when there are none.
    """
    stamps = list(_stamps(path))
    if not stamps:
        raise WorkloadError(f"{path}: there are no time stamps in it")
    return stamps


def _stamps(path: str | os.PathLike[str]) -> Iterator[float]:
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        return
    whole = chain([first], numbered)
    if first[1].lstrip().startswith("{"):
        for line, text in whole:
            yield Row(path, line, parsed(path, line, text)).number(_STAMP)  # type: ignore[misc]
    elif TIME in cells_of(path, *first):
        for row in table(path, whole):
            yield number(row, TIME) * 1000
    else:
        raise fault(
            path,
            first[0],
            f'not a trace: JSON lines with "{_STAMP}" or a CSV with {TIME}',
        )
