"""Wire the measurement of nodes: what the profile requests, by the settings of `signals.kubelets`."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Final

from boathouse.cluster import client, retries
from boathouse.resources.config import KubeletsConfig, OperatorConfig
from boathouse.scheduling import assembly, scheduler
from boathouse.services.frame import controllers
from boathouse.services.instruments.identity import MetricsToken
from boathouse.services.instruments.kubelet_client import KubeletClient
from boathouse.services.instruments.metrics import ReadMetrics
from boathouse.services.instruments.missing import STATES, Signals, SignalStatus
from boathouse.services.instruments.poller import Options, Poller, Publish
from boathouse.services.instruments.rates import Rates
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import framework, model

ROUND_S: Final = 1.0


class _Polling:
    """Runs a poller until cancelled."""

    def __init__(self, poller: Poller, kubelets: KubeletClient, signals: Signals) -> None:
        self._poller, self._kubelets, self._signals = poller, kubelets, signals

    async def run(self) -> None:
        """Read kubelets until cancelled; then close the connections."""
        try:
            await retries.Loop("kubelets", self._round, every_s=ROUND_S).run()
        finally:
            self._kubelets.close()

    async def _round(self) -> None:
        try:
            await self._poller.run_once()
        finally:
            self._signals.update(self._poller.status())


def build(
    api: client.ApiClient,
    settings: OperatorConfig,
    observer: framework.Observer,
    scheduling: assembly.Scheduling,
    metrics: telemetry.Metrics,
) -> tuple[Signals, list[controllers.Work]]:
    """Return the signals for a profile's observer, and what must run for them.

    Nothing runs if the observer requests no measurements, or if the settings switch them off.
    """
    options, signals = settings.signals.kubelets, Signals()
    counts = ReadMetrics(metrics.registry)
    if not options.enabled or observer.measure_every_s <= 0:
        off = SignalStatus(nodes={}, is_needed=observer.measure_every_s > 0, is_enabled=options.enabled)
        signals.update(off)
        _add_gauge(metrics, lambda: {**STATES, "off": len(scheduling.nodes.objects)})
        return signals, []
    kubelets = KubeletClient(None if options.insecure_skip_verify else pathlib.Path(options.ca_file))
    poller = Poller(
        kubelets,
        MetricsToken(api, settings.namespace),
        Rates(cpu_of_pods=options.cpu == "Pods"),
        _publisher(observer),
        _poller_options(options, observer),
        count=counts.count,
    )
    scheduling.nodes.subscribe(poller.on_node)
    _add_gauge(metrics, lambda: poller.status().nodes)
    return signals, [_Polling(poller, kubelets, signals)]


def _add_gauge(metrics: telemetry.Metrics, nodes: Callable[[], Mapping[str, int]]) -> None:
    metrics.gauges.add(
        telemetry.Gauge(
            name="boathouse_node_signals",
            documentation="Nodes by how recent their kubelet's measurements are; off: kubelets are not read",
            labels=("state",),
            read=lambda: {(state,): float(count) for state, count in nodes().items()},
        )
    )


def _poller_options(options: KubeletsConfig, observer: framework.Observer) -> Options:
    return Options(
        interval_s=max(options.interval_seconds, observer.measure_every_s),
        port=options.port,
        cadvisor=options.cadvisor,
    )


def _publisher(observer: framework.Observer) -> Publish:
    now = scheduler.steady_clock()
    return lambda name, usage: observer.observe(model.Measured(now_s=now(), name=model.NodeName(name), usage=usage))
