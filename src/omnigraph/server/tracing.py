"""Traces by OpenTelemetry: a span for each request, with spans of the engine below it.
Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set; the other `OTEL_…` variables of the SDK
apply too. The extra `otel` installs the SDK. A request with a `traceparent` belongs to the trace of its caller.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from omnigraph import __version__
from omnigraph.errors import BadRequest
from omnigraph.watching import About, End, watch_spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NAME = "omnigraph"

#: Whether the current call belongs to a traced request.
_is_traced: contextvars.ContextVar[bool] = contextvars.ContextVar("omnigraph_is_traced", default=False)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def open_tracing() -> Tracing | None:
    """The tracing of this process, configured by the environment; None when it is off."""
    if not is_wanted(os.environ):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise BadRequest(
            f"{error.name} is missing, and the environment asks for traces ({' or '.join(_ENDPOINTS)}); "
            "install it with: pip install 'omnigraph[otel]'"
        ) from None
    about: dict[str, str | int] = {"service.version": __version__, "process.pid": os.getpid()}
    if "OTEL_SERVICE_NAME" not in os.environ:
        about["service.name"] = _NAME
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)


class Tracing:
    """Makes the spans of one process."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer(_NAME, __version__)
        self._propagator = TraceContextTextMapPropagator()
        watch_spans(self)

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        """The span of one request; work in this context, also in threads with a copy of it, belongs to the span."""
        from opentelemetry.trace import SpanKind

        parent = self._propagator.extract(headers)
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER, record_exception=False) as span:
            token = _is_traced.set(True)
            try:
                yield RequestSpan(span)
            finally:
                _is_traced.reset(token)

    def span(self, name: str, about: dict[str, About]) -> AbstractContextManager[None]:
        """The span of a part of a request; work outside of requests, such as renewing a lease, is not traced."""
        return self._span(name, about)

    @contextmanager
    def _span(self, name: str, about: dict[str, About]) -> Iterator[None]:
        if not _is_traced.get():
            yield
            return
        # Error messages may contain rows or paths, so only the kind of an error is recorded, on the request's span.
        with self._tracer.start_as_current_span(name, attributes=_named(about), record_exception=False):
            yield

    def begun(self, name: str, about: dict[str, About]) -> End:
        """Begin the span of a part of a request; the returned function ends it."""
        if not _is_traced.get():
            return _nothing
        span = self._tracer.start_span(name, attributes=_named(about))

        def end(**known: About) -> None:
            span.set_attributes(_named(known))
            span.end()

        return end

    def close(self) -> None:
        """Send the remaining spans, and stop."""
        watch_spans(None)
        self._provider.shutdown()


class RequestSpan:
    """The span of a running request."""

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def trace_id(self) -> str:
        """The id of the trace, in 32 hex digits."""
        return f"{self._span.get_span_context().trace_id:032x}"

    def end(self, *, operation: str, method: str, status: int, graph: str | None, request_id: str) -> None:
        """Record the operation and the outcome of the request. Actors, bodies and error messages are not recorded."""
        from opentelemetry.trace import StatusCode

        self._span.update_name(operation)
        about: dict[str, Any] = {
            "http.request.method": method,
            "http.response.status_code": status,
            "omnigraph.operation": operation,
            "omnigraph.request_id": request_id,
        }
        if graph is not None:
            about["omnigraph.graph"] = graph
        self._span.set_attributes(about)
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)


def _named(about: Mapping[str, About]) -> dict[str, About]:
    return {f"omnigraph.{name}": value for name, value in about.items()}


def _nothing(**known: About) -> None:
    return None
