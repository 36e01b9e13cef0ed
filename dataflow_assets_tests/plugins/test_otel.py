import http.server
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dataflow_assets_tests.crash.command import Finished, environment, finish, start
from dataflow_assets_tests.dagster_side.webserver import free_port
from dataflow_assets_tests.http_servers import listening


class Collector:
    """A collector that takes OTLP over HTTP and keeps all spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            values = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(values["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> Span:
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    with listening(found.server):
        yield found


def run_with(project: Path, **values: str) -> Finished:
    return finish(start(project, "run", "four.yaml", env=environment(values)))


def attributes(span: Span) -> dict[str, object]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value")
        for each in span.attributes
    }


def test_a_run_is_a_tree_of_spans(project: Path, collector: Collector) -> None:
    assert run_with(project, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url).code == 5
    whole, sized = collector.named("pipeline four"), collector.named("step sized")
    batches = [span for span in collector.spans if span.parent_span_id == sized.span_id]
    assert whole.parent_span_id == b"" and sized.parent_span_id == whole.span_id
    assert sorted(span.name for span in batches) == [f"batch in_b0000{number}" for number in range(6)]
    assert {span.trace_id for span in collector.spans} == {whole.trace_id}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in collector.spans)
    found = attributes(sized)
    assert (found["dataflow.rows.in"], found["dataflow.rows.failed"]) == (60, 1)
    assert attributes(whole)["dataflow.outcome"] == "done"
    assert collector.services == {"dataflow-assets"}


def test_a_failed_run_has_an_error(project: Path, collector: Collector) -> None:
    file = project / "four.yaml"
    check = "checks: [{max_failed_share: 0, blocking: true}]"
    file.write_text(file.read_text().replace("chars: int64}}", f"chars: int64}}}}, {check}"))
    values = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "mine"}
    assert run_with(project, **values).code == 1
    whole = collector.named("pipeline four")
    assert whole.status.code == whole.status.STATUS_CODE_ERROR
    assert "max_failed_share" in whole.status.message
    assert collector.services == {"mine"}


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, None])
def test_it_is_off_unless_it_is_asked_for(
    project: Path, collector: Collector, off: dict[str, str] | None
) -> None:
    values = {} if off is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **off}
    assert run_with(project, **values).code == 5
    assert not collector.spans


def test_a_collector_that_is_down_stops_nothing(project: Path) -> None:
    values = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    assert run_with(project, **values, OTEL_EXPORTER_OTLP_TIMEOUT="1").code == 5


def test_an_exporter_that_is_not_installed_is_named_and_stops_nothing(project: Path) -> None:
    done = run_with(project, OTEL_TRACES_EXPORTER="zipkin_of_nobody")
    assert done.code == 5
    assert "plugin 'otel' cannot be made and is off: RunError: the exporter 'zipkin_of_nobody'" in done.err
