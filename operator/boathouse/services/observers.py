"""The observers of a profile, guarded, and what its shadow would have decided."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from typing_extensions import override

from boathouse.cluster import client, server_time
from boathouse.resources import names
from boathouse.scheduling import shadow
from boathouse.services import own_objects
from boathouse.telemetry import logs, metrics
from boathouse_policies import framework, model

_log = logs.get(__name__)
EVERY_S: Final = 30.0
SHOWN: Final = 20  # differences that are published, the newest
_MAX_TEXT: Final = 200


class GuardedObservers(framework.Observer):
    """Passes events to observers. If an observer raises an error, it misses this event and others are not affected.

    An observer that raised still gets later events. Otherwise one tenant's tasks could disable it for all tenants.
    """

    def __init__(self, observers: Iterable[framework.Observer], scrape: metrics.ScrapeGauges) -> None:
        self._observers = [(type(observer).__name__, observer) for observer in observers]
        self.report_every_s = _shortest(observer.report_every_s for _, observer in self._observers)
        self.measure_every_s = _shortest(observer.measure_every_s for _, observer in self._observers)
        self._failures = {name: 0 for name, _ in self._observers}
        scrape.add(
            metrics.Gauge(
                name="boathouse_observer_failures",
                documentation="Events for which an observer of the profile raised an error",
                labels=("observer",),
                read=lambda: {(name,): float(count) for name, count in self._failures.items()},
                counts=True,
            )
        )

    @override
    def observe(self, event: model.Event) -> None:
        """Pass an event to each observer; log the first, second, fourth, eighth ... failure of each."""
        for name, observer in self._observers:
            try:
                observer.observe(event)
            except Exception:  # noqa: BLE001 - an observer's error must not affect others
                self._failures[name] += 1
                if self._failures[name].bit_count() == 1:
                    _log.exception("an observer of the profile raised an error", observer=name)


def _shortest(intervals_s: Iterable[float]) -> float:
    return min((interval_s for interval_s in intervals_s if interval_s > 0), default=0.0)


class PublishedShadow:
    """Publishes how a shadow profile's decisions differ; `may_lead` is called before every write."""

    def __init__(
        self,
        api: client.ApiClient,
        namespace: str,
        profile: str,
        subject: shadow.Shadow,
        may_lead: Callable[[], bool],
        scrape: metrics.ScrapeGauges,
    ) -> None:
        self._api, self._namespace, self._profile = api, namespace, profile
        self._shadow, self._may_lead = subject, may_lead
        self._written: dict[str, Any] = {}
        scrape.add(
            metrics.Gauge(
                name="boathouse_shadow_cycles",
                documentation="Cycles that the shadow profile decided alike (agreed) or not (differed), or dropped",
                labels=("result",),
                read=lambda: {(name,): float(count) for name, count in self._counts().items()},
                counts=True,
            ),
            metrics.Gauge(
                name="boathouse_shadow_failures",
                documentation="Failures of the shadow profile; after the first it is off until the operator restarts",
                read=lambda: {(): float(bool(self._shadow.error))},
                counts=True,
            ),
        )

    def _counts(self) -> dict[str, int]:
        return {"agreed": self._shadow.agreed, "differed": self._shadow.differed, "dropped": self._shadow.dropped}

    async def save(self) -> None:
        """Write the ConfigMap if anything has changed; raises `errors.ClusterError` if the write failed."""
        report = {
            "profile": self._profile,
            "shadow": self._shadow.name,
            "since": _time(self._shadow.since_s),
            **self._counts(),
            "error": self._shadow.error[:_MAX_TEXT],
            "differences": list(map(_difference, list(self._shadow.differences)[-SHOWN:])),
        }
        if report == self._written or not self._may_lead():
            return
        text = msgspec.json.encode(report | {"updated": _time(server_time.SERVER_TIME.now_s())}).decode()
        await own_objects.write_config_map(self._api, names.SHADOW, self._namespace, {"data": {names.SHADOW_KEY: text}})
        self._written = report


def _difference(difference: shadow.Difference) -> dict[str, Any]:
    return {
        "time": _time(difference.now_s),
        "subject": difference.subject[:_MAX_TEXT],
        "profile": _decision(difference.real, difference.real_reason),
        "shadow": _decision(difference.shadow, difference.shadow_reason),
    }


def _decision(places: tuple[shadow.Place, ...], reason: str) -> dict[str, Any]:
    sizes = [{"node": node, "cpuMilli": size.cpu_milli, "memoryBytes": size.memory_bytes} for node, size in places]
    return {"places": sizes, "reason": reason}


def _time(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_s))
