"""End pods whose own container has ended while containers that admission injected run on, such as a proxy.

A deadline ends such a pod: unlike a deletion it keeps the pod's object and its logs. The exit code of its own container
is written with the deadline, so that what the kubelet then says of the pod is not mistaken for the result.
"""

import collections
from collections.abc import Callable
from typing import Final

from boathouse.cluster import client, election, errors, store
from boathouse.resources import names
from boathouse.scheduling.pods import facts
from boathouse.telemetry import logs

log = logs.get(__name__)

PATIENCE_S: Final = 5.0  # the other containers may end by themselves, or the pod's creator may delete it
RETRY_S: Final = 30.0
ROUND_S: Final = 0.5
PER_NAMESPACE: Final = 8
PER_ROUND: Final = 64  # maximum number of pods that are ended in a round, of a namespace and in total


class OutlivedPods:
    """Pods to end. The watch shows them again after a restart, so nothing else is stored."""

    def __init__(self, api: client.ApiClient, leader: election.LeaderElection, clock: Callable[[], float]) -> None:
        self._api, self._leader, self._clock = api, leader, clock
        self._pods: dict[str, tuple[float, facts.PodFacts]] = {}  # when it is due, by UID

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of a pod that uses resources."""
        pod = store.subject(change)
        former = self._pods.pop(pod.metadata.uid, None)
        is_settled = pod.is_terminal or pod.metadata.deletion_timestamp is not None
        if pod.outlived_exit_code is None or is_settled or isinstance(change, store.Deleted):
            return
        if names.ANNOTATION_EXIT_CODE not in pod.metadata.annotations:
            self._pods[pod.metadata.uid] = (self._clock() + PATIENCE_S if former is None else former[0]), pod

    async def end_due(self) -> None:
        """End the pods whose time is up, those of a namespace in part."""
        now_s, turns, ended = self._clock(), collections.Counter[str](), 0
        for uid, (due_s, pod) in sorted(self._pods.items(), key=lambda item: item[1][0]):
            turns[pod.metadata.namespace] += 1
            if due_s > now_s or ended == PER_ROUND or not self._leader.valid():
                return
            if turns[pod.metadata.namespace] <= PER_NAMESPACE and uid in self._pods:
                ended += 1
                self._pods[uid] = now_s + RETRY_S, pod
                await self._end(pod)

    async def _end(self, pod: facts.PodFacts) -> None:
        metadata, code = pod.metadata, str(pod.outlived_exit_code)
        try:
            await self._api.end_pod(
                metadata.namespace, metadata.name, {names.ANNOTATION_EXIT_CODE: code}, uid=metadata.uid
            )
        except (errors.NotFound, errors.Conflict):
            self._pods.pop(metadata.uid, None)
        except errors.ClusterError as error:
            log.warning("a pod whose container has ended could not be ended", pod=metadata.key, error=str(error))
        else:
            log.info("ended a pod whose container has ended", pod=metadata.key, exit_code=code)
