"""Wire the measurement of nodes: what the profile requests, by the settings of `signals.kubelets`, with a token for it.

The operator's own token never goes to a kubelet: a stolen node would have the operator's rights.
"""

import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from boathouse.cluster import client, errors, retries
from boathouse.resources.config import KubeletsConfig, OperatorConfig
from boathouse.scheduling import assembly, scheduler
from boathouse.services.frame import controllers
from boathouse.services.instruments.counters import Rates
from boathouse.services.instruments.kubelet_client import KubeletClient, ReadMetrics
from boathouse.services.instruments.missing import STATES, Signals, SignalStatus
from boathouse.services.instruments.poller import Options, Poller, Publish
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import framework, model

ACCOUNT: Final = "boathouse-signals"
TOKEN_LIFETIME_S: Final = 3600
RENEWED_AT: Final = 0.8
"""Share of the lifetime after which a token is renewed."""
TOKEN_RETRY_S: Final = 60.0
ROUND_S: Final = 1.0


class TokenSource(Protocol):
    """The API server: `ApiClient` implements it."""

    async def create_token(self, namespace: str, account: str, seconds: int) -> str:
        """Return a token of a service account."""
        ...


class MetricsToken:
    """A token of the service account `boathouse-signals`."""

    def __init__(self, api: TokenSource, namespace: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._namespace = namespace
        self._monotonic = monotonic
        self._token = ""
        self._renew_s = self._expires_s = 0.0

    async def current(self) -> str:
        """Return the token, after its renewal if that is due.

        Raises:
            errors.ClusterError: The API server did not create a token.
        """
        if not self._token or self._monotonic() >= self._renew_s:
            await self._renew(self._monotonic())
        return self._token

    def reject(self) -> None:
        """Renew the token soon, because a kubelet has refused it."""
        self._renew_s = min(self._renew_s, self._monotonic() + TOKEN_RETRY_S)

    async def _renew(self, now_s: float) -> None:
        try:
            self._token = await self._api.create_token(self._namespace, ACCOUNT, TOKEN_LIFETIME_S)
        except errors.ClusterError:
            if not self._token or now_s >= self._expires_s:
                raise
            self._renew_s = now_s + TOKEN_RETRY_S
        else:
            self._renew_s, self._expires_s = now_s + RENEWED_AT * TOKEN_LIFETIME_S, now_s + TOKEN_LIFETIME_S


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
