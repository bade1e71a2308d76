"""Wire the measurement of nodes: what the profile requests, by the settings of `signals.kubelets`."""

import pathlib
from collections.abc import Callable, Mapping

from boathouse.cluster import client
from boathouse.resources.config import OperatorConfig
from boathouse.scheduling import assembly
from boathouse.scheduling.scheduler import steady_clock
from boathouse.services.frame import controllers
from boathouse.services.instruments.counters import Rates
from boathouse.services.instruments.kubelet_client import KubeletClient, MetricsToken, counter
from boathouse.services.instruments.poller import STATES, Poller, Signals, SignalStatus
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import framework, model


def build(
    api: client.ApiClient,
    settings: OperatorConfig,
    observer: framework.Observer,
    scheduling: assembly.Scheduling,
    metrics: telemetry.Metrics,
) -> tuple[Signals, list[controllers.Work]]:
    """Return the signals for an observer, and what must run if it requests measurements and they are enabled."""
    options, signals, count = settings.signals.kubelets, Signals(), counter(metrics.registry)
    if not options.enabled or observer.measure_every_s <= 0:
        signals.update(SignalStatus(nodes={}, is_needed=observer.measure_every_s > 0, is_enabled=options.enabled))
        _add_gauge(metrics, lambda: {**STATES, "off": len(scheduling.nodes.objects)})
        return signals, []
    now, ca_file = steady_clock(), None if options.insecure_skip_verify else pathlib.Path(options.ca_file)
    poller = Poller(
        KubeletClient(ca_file),
        MetricsToken(api, settings.namespace),
        Rates(cpu_of_pods=options.cpu == "Pods"),
        lambda name, usage: observer.observe(model.Measured(now_s=now(), name=model.NodeName(name), usage=usage)),
        signals,
        interval_s=max(options.interval_seconds, observer.measure_every_s),
        port=options.port,
        cadvisor=options.cadvisor,
        count=count,
    )
    scheduling.nodes.subscribe(poller.on_node)
    _add_gauge(metrics, lambda: poller.status().nodes)
    return signals, [poller]


def _add_gauge(metrics: telemetry.Metrics, nodes: Callable[[], Mapping[str, int]]) -> None:
    metrics.gauges.add(
        telemetry.Gauge(
            name="boathouse_node_signals",
            documentation="Nodes by how recent their kubelet's measurements are; off: kubelets are not read",
            labels=("state",),
            read=lambda: {(state,): float(count) for state, count in nodes().items()},
        )
    )
