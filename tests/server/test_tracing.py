"""Traces: what a receiver of OpenTelemetry gets of a served request, and that nothing is made when nobody asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from omnigraph import watching
from omnigraph.errors import BadRequest
from omnigraph.server.tracing import open_tracing
from tests.server.serving import ADD, Served
from tests.server.test_process import _eventually, started

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
KNOWN = "query q() { match { $p: Person $p knows $f } return { $p.name, $f.name as friend } }"


class Receiver:
    """A server that takes spans over OTLP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.bodies: list[bytes] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.bodies.append(body)
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        receiver.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def named(self, name: str) -> Any:
        """The newest span with a name."""
        return [span for span in self.spans if span.name == name][-1]

    def names(self, trace: str) -> set[str]:
        return {span.name for span in self.spans if span.trace_id.hex() == trace}


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    yield receiver
    receiver.server.shutdown()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_the_spans_of_requests(graph_path: Path, tmp_path: Path) -> None:
    with receiving() as receiver:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        with started(tmp_path, str(graph_path), **variables) as server, server.client() as http:
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            found = http.post("/graphs/people/query", json={"query": KNOWN}, headers=headers)
            assert found.json()["row_count"] == 1
            made = http.post("/graphs/people/mutate", json={"query": ADD, "params": {"name": "secret-name"}})
            assert made.status_code == 200
            assert http.post("/graphs/people/query", json={"query": "secret-text"}).status_code == 400
            http.get("/graphs/nowhere/schema")
            _eventually(lambda: any(span.name == "apply" or len(receiver.spans) > 12 for span in receiver.spans))
            token = server.token()
        # What is left is sent when the server stops.
        query = next(span for span in receiver.spans if span.name == "query" and span.trace_id.hex() == TRACE)
        assert query.parent_span_id.hex() == PARENT
        told = attributes(query)
        assert told.pop("omnigraph.request_id") == found.headers["x-request-id"]
        assert told == {
            "http.request.method": "POST",
            "http.response.status_code": 200,
            "omnigraph.operation": "query",
            "omnigraph.graph": "people",
        }
        assert receiver.names(TRACE) == {"query", "compile", "plan", "execute", "scan", "traverse"}
        execute = receiver.named("execute")
        assert execute.parent_span_id == query.span_id
        assert {receiver.named(name).parent_span_id for name in ("scan", "traverse")} == {execute.span_id}
        assert attributes(receiver.named("traverse")) == {"omnigraph.operator": "Expand", "omnigraph.rows": 1}
        mutate = receiver.named("mutate")
        assert mutate.parent_span_id == b"", "without a traceparent a request is a trace of its own"
        phases = {"commit.record", "commit.effects", "commit.publish", "commit.finish"}
        assert phases <= receiver.names(mutate.trace_id.hex())
        for name in phases:
            span = receiver.named(name)
            assert mutate.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
            assert span.end_time_unix_nano <= mutate.end_time_unix_nano
        refused = next(span for span in receiver.spans if attributes(span).get("http.response.status_code") == 400)
        assert not refused.events, "the text of an error is no part of a trace"
        sent = b"".join(receiver.bodies)
        assert not [text for text in ("secret-name", "secret-text", token, "ada") if text.encode() in sent]
        lines = [line for line in server.log() if line.get("operation") == "query"]
        assert lines[0]["trace_id"] == TRACE


def test_a_receiver_that_is_away_disturbs_nobody(graph_path: Path, tmp_path: Path) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    with started(tmp_path, str(graph_path), "--drain-seconds", "1", **variables) as server, server.client() as http:
        for traceparent in ("", "zz", f"00-{'0' * 32}-{PARENT}-01", "x" * 10_000):
            answer = http.post("/graphs/people/query", json={"query": KNOWN}, headers={"traceparent": traceparent})
            assert answer.status_code == 200


def test_nothing_is_made_when_nobody_asked(served: Served) -> None:
    assert served.state.tracing is None
    assert watching.span("compile") is watching.span("plan")
    assert watching.begun("scan") is None


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_traces_are_turned_off_as_the_sdk_says(off: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (off | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}).items():
        monkeypatch.setenv(name, value)
    assert open_tracing() is None


def test_traces_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(BadRequest, match=r"pip install 'omnigraph\[otel\]'"):
        open_tracing()


def test_events_of_the_engine_are_counted(served: Served) -> None:
    for event in (watching.RETRY, watching.RECOVERY, watching.RECOVERY, watching.SPARK_JOB):
        watching.happened(event)
    served.post("/query", {"query": KNOWN})
    text = served.http.get("/metrics").text
    assert "omnigraph_retries_total 1.0" in text
    assert "omnigraph_recoveries_total 2.0" in text
    assert "omnigraph_spark_jobs_total 1.0" in text
    assert 'omnigraph_cache_entries{graph="people"}' in text
    assert float(text.partition('omnigraph_cache_bytes{graph="people"} ')[2].split()[0]) >= 0
