"""Counters of one service, in Prometheus' text format."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from primaldepth.app.engine import Engine

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class Metrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["route", "status"]
        self.requests = Counter(
            "primaldepth_requests", "Answers by route and status.", labels, registry=self.registry
        )
        seconds = partial(Histogram, buckets=_SECONDS, registry=self.registry)
        whole = "From the first byte in to the last byte out."
        self.latency = seconds("primaldepth_request_seconds", whole, labels[:1])
        self.compute = seconds("primaldepth_compute_seconds", "Computing one frame.", ["method"])
        ProcessCollector(registry=self.registry)

    def watch(self, engine: Engine) -> None:
        """Read the state of the queue whenever the metrics are asked for."""
        gauges = {
            "primaldepth_queue_length": ("Requests that wait.", lambda: engine.waiting),
            "primaldepth_running": ("Requests that are computed.", lambda: engine.running),
            "primaldepth_worker_restarts": (
                "How often the worker was started again.",
                lambda: engine.restarts,
            ),
        }
        for name, (text, read) in gauges.items():
            Gauge(name, text, registry=self.registry).set_function(read)

    def computed(self, method: str, seconds: float) -> None:
        """Count a computed frame and its seconds."""
        self.compute.labels(method).observe(seconds)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request and its seconds."""
        self.requests.labels(route, str(status)).inc()
        self.latency.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all counters in the text format of /metrics."""
        return generate_latest(self.registry)
