"""What the service tells of itself in Prometheus' format.

No label holds a path, a question or a key: they would be unbounded, and are nobody's business who scrapes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from clew.daemon.collections import Collections
from clew_client.answers import Answer
from clew_client.types import SearchResult

if TYPE_CHECKING:
    from clew.daemon.http.admission import Admission

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The figures of one app: a registry of its own, so that several can live in one process."""

    def __init__(self, collections: Collections, admission: Admission) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "clew_http_requests", "Requests by route and status.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "clew_http_request_seconds",
            "Seconds until the answer was sent, by route.",
            ("route",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._stages = Histogram(
            "clew_search_stage_seconds",
            "Seconds of each search path, of fusion, expansion and hits.",
            ("collection", "stage"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._degraded = Counter(
            "clew_search_degraded",
            "Searches that a path did not answer wholly.",
            ("collection", "path"),
            registry=self.registry,
        )
        self._answers = Counter(
            "clew_answers",
            "Answers by route; none: nothing was found.",
            ("collection", "route"),
            registry=self.registry,
        )
        self._answer_seconds = Histogram(
            "clew_answer_seconds",
            "Seconds of an answer, by route.",
            ("collection", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._spent = Counter(
            "clew_answer_cost",
            "What answers cost: model_calls, tokens_in, tokens_out, context_chars, money.",
            ("collection", "what"),
            registry=self.registry,
        )
        self.refused = Counter(
            "clew_refused", "Requests refused: overloaded, key, access.", ("reason",), registry=self.registry
        )
        self.registry.register(_State(collections, admission))

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request is done; status 0: its client had gone."""
        self._requests.labels(method, route, str(status) if status else "gone").inc()
        self._seconds.labels(route).observe(seconds)

    def observe_search(self, collection: str, result: SearchResult) -> None:
        """What a search took, stage by stage."""
        for stage, milliseconds in result.timings_ms.items():
            self._stages.labels(collection, stage).observe(milliseconds / 1000)
        for path in result.degraded:
            self._degraded.labels(collection, path).inc()

    def observe_answer(self, collection: str, answer: Answer, seconds: float) -> None:
        """The route of an answer, how long it took, and what it cost."""
        self._answers.labels(collection, "none" if answer.abstained else answer.route).inc()
        self._answer_seconds.labels(collection, answer.route).observe(seconds)
        for what in ("model_calls", "tokens_in", "tokens_out", "context_chars", "money"):
            self._spent.labels(collection, what).inc(getattr(answer.cost, what) or 0)

    def text(self) -> bytes:
        """All figures now."""
        return generate_latest(self.registry)


class _State:
    """What is looked up when somebody asks."""

    def __init__(self, collections: Collections, admission: Admission) -> None:
        self._collections = collections
        self._admission = admission

    def describe(self) -> Iterator[Any]:
        """Nothing ahead: no figure here can collide."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Gauges."""
        yield GaugeMetricFamily("clew_requests_running", "Requests being worked on.", self._admission.running)
        yield GaugeMetricFamily("clew_requests_waiting", "Requests that wait to be worked on.", self._admission.waiting)
        gauges = {
            "ready": "Whether a snapshot is served.",
            "snapshot": "Number of the served snapshot.",
            "newest_snapshot": "Number of the newest snapshot seen.",
            "snapshot_age_seconds": "Seconds since the served snapshot was published.",
            "seconds_since_look": "Seconds since the last look for a newer snapshot.",
            "moves": "How often a newer snapshot took over.",
            "events_waiting": "Places that events named and that were not looked at yet.",
            "upkeep_failures": "Failures since the last look that went well.",
            "commits": "Snapshots published by this service.",
            "freshness_seconds": "From the first event of the last commit to being searchable.",
        }
        samples: dict[str, list[tuple[str, float]]] = {name: [] for name in gauges}
        counted: dict[str, list[tuple[str, str, float]]] = {"files": [], "links": []}
        sizes: dict[str, list[tuple[str, float]]] = {"documents": [], "chunks": [], "vectors": []}
        for collection in self._collections:
            fresh = collection.freshness
            samples["ready"].append((collection.name, float(collection.ready)))
            samples["moves"].append((collection.name, float(collection.moves)))
            if fresh.checked is not None:
                samples["seconds_since_look"].append((collection.name, fresh.checked))
            if fresh.snapshot is not None and fresh.published_ns is not None:
                samples["snapshot"].append((collection.name, fresh.snapshot))
                samples["newest_snapshot"].append((collection.name, fresh.newest or fresh.snapshot))
                samples["snapshot_age_seconds"].append((collection.name, time.time() - fresh.published_ns / 1e9))
            if collection.upkeep is not None:
                state = collection.upkeep.state
                samples["events_waiting"].append((collection.name, float(state.waiting)))
                samples["upkeep_failures"].append((collection.name, float(state.failures)))
                samples["commits"].append((collection.name, float(state.commits)))
                if state.freshness is not None:
                    samples["freshness_seconds"].append((collection.name, state.freshness))
            statistics = collection.statistics
            if statistics is None:
                continue
            counted["files"] += [(collection.name, state, count) for state, count in statistics.files.items()]
            counted["links"] += [(collection.name, state, count) for state, count in statistics.links.items()]
            for name in sizes:
                sizes[name].append((collection.name, float(getattr(statistics, name))))
        for name, text in gauges.items():
            yield _gauge(f"clew_collection_{name}", text, ("collection",), [(one,) for one, _ in samples[name]],
                         [value for _, value in samples[name]])  # fmt: skip
        for name in counted:
            rows = counted[name]
            yield _gauge(f"clew_collection_{name}", f"{name.capitalize()} of the served snapshot, by state.",
                         ("collection", "state"), [row[:2] for row in rows], [row[2] for row in rows])  # fmt: skip
        for name, values in sizes.items():
            yield _gauge(f"clew_collection_{name}", f"{name.capitalize()} of the served snapshot.", ("collection",),
                         [(one,) for one, _ in values], [value for _, value in values])  # fmt: skip


def _gauge(
    name: str, text: str, labels: tuple[str, ...], keys: list[tuple[str, ...]], values: list[float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in zip(keys, values, strict=True):
        family.add_metric(key, value)
    return family
