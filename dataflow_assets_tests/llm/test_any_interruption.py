"""Pauses, kills and signals in any order, over several files and both scopes, change nothing in the end."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dataflow_assets_tests.crash.command import finish
from dataflow_assets_tests.fault_server import FaultServer
from dataflow_assets_tests.llm.moments import wait_for_requests
from dataflow_assets_tests.llm.project import ASKS, Project

CONCURRENCY = 8
UNIQUE = {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}
EXAMPLES = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def interrupted(project: Project, server: FaultServer, how: str, after: int, command: str) -> int:
    """Begins the command, ends it in this way after so many more requests; gives its exit code."""
    seen = server.stats().count
    process = project.start(command)
    if wait_for_requests(server, seen + after, process):
        if how == "pause":
            project.pause()
        elif how == "kill":
            process.kill()
        else:
            process.terminate()
    return finish(process).code


@pytest.mark.long
@EXAMPLES
@given(
    st.lists(
        st.tuples(st.sampled_from(["pause", "kill", "signal"]), st.integers(1, 25)), min_size=1, max_size=3
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 30),
)
def test_the_end_is_as_if_nothing_had_happened(
    fault_server: FaultServer,
    events: Sequence[tuple[str, int]],
    files: Sequence[int],
    dataset_scope: bool,
    batch_rows: int,
) -> None:
    fault_server.reset()
    fault_server.default(delay_s=0.01)
    with tempfile.TemporaryDirectory() as name:
        steps = [UNIQUE, ASKS] if dataset_scope else [ASKS]
        serving = {"concurrency": CONCURRENCY}
        source = {"path": "part*.jsonl"}
        project = Project(Path(name), fault_server, [], steps, serving, source=source, batch_rows=batch_rows)
        texts = [[f"row {row}" for row in range(start, start + count)] for start, count in enumerate(files)]
        for number, some in enumerate(texts):
            project.write(f"part{number}.jsonl", some)
        for how, after in events:
            assert interrupted(project, fault_server, how, after, "resume") in (0, 3, -9)
        assert project.run("resume").code == 0
        everything = [text for some in texts for text in some]
        expected = list(dict.fromkeys(everything)) if dataset_scope else everything
        assert [row["answer"] for row in project.rows(len(steps))] == expected
        repeated = fault_server.stats().count - len(set(everything))
        assert repeated <= (CONCURRENCY + CONCURRENCY // 8) * sum(how == "kill" for how, _ in events)
