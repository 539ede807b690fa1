"""The trace of VTC's experiments: CSV, a request a row.

Columns ``req_id``, ``adapter_dir`` (the client), ``prompt_len``, ``output_len`` in
tokens, ``req_time`` in seconds. The trace does not say which requests belong together,
so each is an agent of its own with one inference; its kind is the client. Rows are
sorted by time, ties as they stand, and times count from the first.

Source: Sheng et al., OSDI 2024, https://github.com/Ying1123/VTC-artifact.
"""

from collections.abc import Iterable, Iterator

from justitia.workloads.agents import AgentSpec, InferenceSpec
from justitia.workloads.files.table import count, number, table

TIME = "req_time"
COLUMNS = ("req_id", "adapter_dir", "prompt_len", "output_len", TIME)


def rows(
    path: object, lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, AgentSpec]]:
    """Yield line number and agent of each request, the first to arrive first.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the column and the value.
    """
    requests = [(number(row, TIME), row) for row in table(path, lines)]
    requests.sort(key=lambda request: request[0])
    for time, row in requests:
        one = InferenceSpec(count(row, "prompt_len"), count(row, "output_len"))
        name, client = row.text("req_id"), row.text("adapter_dir")
        with row.here():
            agent = AgentSpec(
                id=name,
                inferences=(one,),
                kind=client,
                arrival=time - requests[0][0],
            )
        yield row.line, agent
