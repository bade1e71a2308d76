"""Composition root: read the options, wire the parts, and run until a signal or until a part ends.

    start -> publish the authority -> standby -> lead (watches, then scheduler, endpoint, Kopf, reconcilers) -> stop

Every part is essential: if one ends, the process exits, and another continues from the state in the API server.
"""

import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import Sequence

import pydantic
from pydantic.alias_generators import to_camel

from boathouse import failpoints, leader, options
from boathouse.cluster import client, config, election, errors, events, retries, server_time
from boathouse.listening import listener
from boathouse.services import own_objects
from boathouse.services.progress import certificates
from boathouse.telemetry import health, logs, metrics, server

_log = logs.get(__name__)
EXIT_FAILED, EXIT_USAGE = 1, 2
STOP_S = 5.0
"""Timeout for parts to stop; less than 10 s in total with the last save, the release of the lease and last events."""
CONTROLLER = "boathouse.dev/operator"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator; returns the exit code."""
    try:
        operator_options = options.parse(arguments)
        armed = failpoints.arm()
    except pydantic.ValidationError as error:
        sys.stderr.write("".join(f"boathouse: {problem}\n" for problem in _problems(error)))
        return EXIT_USAGE
    except (OSError, ValueError) as error:
        sys.stderr.write(f"boathouse: {error}\n")
        return EXIT_USAGE
    if operator_options.list_failpoints:
        sys.stdout.write("".join(f"{name}\n" for name in failpoints.NAMES))
        return 0
    logs.configure(log_format=operator_options.config.log_format, level=operator_options.config.log_level)
    if armed:
        _log.warning("a failpoint is armed: this process will be killed", failpoint=armed)
    try:
        return asyncio.run(_run(operator_options))
    except errors.ConfigError as error:
        sys.stderr.write(f"boathouse: {error}\n")
        return EXIT_USAGE


def _problems(error: pydantic.ValidationError) -> list[str]:
    named = [(".".join(to_camel(str(part)) for part in detail["loc"]), detail["msg"]) for detail in error.errors()]
    return [f"{name or 'configuration'}: {message}" for name, message in named]


async def _run(operator_options: options.Options) -> int:
    cluster = config.load(operator_options.kubeconfig)
    state = health.Health()
    operator_metrics = metrics.Metrics(profile=operator_options.config.profile)
    stop = asyncio.Event()
    listen_for_signals(stop)
    settings, pages = operator_options.config, server.metrics_application(operator_metrics.registry)
    async with (
        client.ApiClient(cluster) as api,
        listener.serve(pages, port=settings.metrics_port, limits=server.LIMITS),
        listener.serve(server.health_application(state), port=settings.health_port, limits=server.PROBE_LIMITS),
    ):
        return await _Life(operator_options, cluster, api, state, operator_metrics, stop).run()


class _Life:
    """Runs the process as standby, then as leader, until its end."""

    def __init__(
        self,
        operator_options: options.Options,
        cluster: config.ClusterConfig,
        api: client.ApiClient,
        state: health.Health,
        operator_metrics: metrics.Metrics,
        stop: asyncio.Event,
    ) -> None:
        self._options, self._cluster, self._api, self._state = operator_options, cluster, api, state
        self._metrics, self._stop = operator_metrics, stop
        self._ending = False
        self._leader: leader.Leader | None = None
        settings, identity = operator_options.config, operator_options.identity
        self._election = election.LeaderElection(
            api, namespace=settings.namespace, identity=identity, on_lost=die, lease=settings.lease
        )
        rate_per_s = settings.tenant_limits.events_per_second
        self._events = events.EventWriter(api, controller=CONTROLLER, instance=identity, rate_per_s=rate_per_s)

    async def run(self) -> int:
        """Wait for the lease, run the leader's parts, and stop."""
        work = asyncio.create_task(self._work(), name="work")
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        reloading = asyncio.create_task(self._reload(), name="reload")
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        reloading.cancel()
        requested = self._stop.is_set()
        if work.done():
            _log.error("a part of the operator has ended", exc_info=None if work.cancelled() else work.exception())
        if requested and self._leader is not None:
            await self._leader.save_learned()
        # Release the lease first: from then on `valid()` is false, nothing is written, and a standby takes over.
        self._ending = True
        await self._election.release()
        await self._events.drain(1.0)
        work.cancel()
        await asyncio.wait({work}, timeout=STOP_S)
        _log.info("stopped", requested=requested)
        return 0 if requested else EXIT_FAILED

    def _fatal(self, reason: str) -> None:
        """Exit at once, unless the process has released its lease and is stopping in order."""
        if not self._ending:
            die(reason)

    async def _reload(self) -> None:
        if self._options.config_path is not None:
            await options.file_changed(self._options.config_path, self._options.file)
            self._stop.set()

    async def _work(self) -> None:
        namespace, replica = self._options.config.namespace, self._options.identity
        await retries.until_done(  # before the certificate, because the response tells the time
            lambda: own_objects.unmark_leader(self._api, namespace, replica),
            what=f"use the API server {self._cluster.server}",
        )
        authority = certificates.authority(_private(self._options.state_folder), replica, server_time.SERVER_TIME.now())
        self._state.liveness["certificate"] = certificates.expiry_probe(authority)
        bundles = certificates.Bundles(self._api, namespace=namespace, replica=replica, now=server_time.SERVER_TIME.now)
        await retries.until_done(lambda: bundles.add(authority.pem), what="publish the authority of this replica")
        cluster_id = await retries.until_done(lambda: own_objects.cluster_id(self._api), what="identify the cluster")
        authority_check = retries.Loop("authority", bundles.republish, every_s=certificates.REPUBLISH_S)
        async with asyncio.TaskGroup() as group:
            leader.start(group, self._election.run(), "leader election")
            leader.start(group, self._events.run(), "events")
            leader.start(group, authority_check.run(), "authority")
            _log.info("standby", identity=replica)
            with failpoints.around("leader.acquired"):
                epoch = await self._election.acquired()
            _log.info("became leader", identity=replica, epoch=epoch)
            self._leader = leader.Leader(
                leader.LeaderContext(
                    options=self._options,
                    cluster=self._cluster,
                    api=self._api,
                    state=self._state,
                    metrics=self._metrics,
                    election=self._election,
                    events=self._events,
                    bundles=bundles,
                    authority=authority,
                    cluster_id=cluster_id,
                    on_fatal=self._fatal,
                    after_kopf=lambda: listen_for_signals(self._stop),
                )
            )
            leader.start(group, self._leader.run(), "leader")


def listen_for_signals(stop: asyncio.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT; called again after Kopf's start, which replaces the handlers."""
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)


def die(reason: str) -> None:
    """Exit at once, because further writes may be wrong."""
    _log.critical("terminating immediately", reason=reason)
    sys.stderr.flush()
    os._exit(EXIT_FAILED)


def _private(folder: pathlib.Path | None) -> pathlib.Path | None:
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o077 == 0:
            return folder
        _log.warning("the state folder is accessible to other users and is not used", folder=str(folder))
    except OSError as error:
        _log.warning("the state folder cannot be used", folder=str(folder), error=str(error))
    return None
