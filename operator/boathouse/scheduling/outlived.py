"""End pods whose own container has ended while containers that admission injected run on, such as a proxy.

A deadline ends such a pod: unlike a deletion it keeps the pod's object and its logs, and its room comes free. The exit
code of its own container, which is its result, is written with the deadline, so that what the kubelet then says of the
pod is not mistaken for it.
"""

import collections
import dataclasses
from collections.abc import Callable
from typing import Final

from boathouse.cluster import client, errors, store
from boathouse.resources import names
from boathouse.scheduling import writer
from boathouse.scheduling.pods import facts
from boathouse.telemetry import logs

log = logs.get(__name__)

PATIENCE_S: Final = 5.0
"""Time in which the other containers may end by themselves, or the creator of the pod may delete it."""
RETRY_S: Final = 30.0
ROUND_S: Final = 0.5
PER_NAMESPACE: Final = 8
PER_ROUND: Final = 64
"""Maximum number of pods that are ended in a round, of a namespace and in total."""


@dataclasses.dataclass(slots=True)
class _Outlived:
    pod: facts.PodFacts
    due_s: float


class OutlivedPods:
    """Pods to end. The watch shows them again after a restart, so nothing else is stored.

    Args:
        api: Client of the API server.
        leader: Leader election, which is checked before every write.
        clock: Returns seconds.
    """

    def __init__(self, api: client.ApiClient, leader: writer.Leadership, clock: Callable[[], float]) -> None:
        self._api, self._leader, self._clock = api, leader, clock
        self._pods: dict[str, _Outlived] = {}

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of a pod that uses resources."""
        pod = change.old if isinstance(change, store.Deleted) else change.new
        if isinstance(change, store.Deleted) or not _is_due(pod):
            self._pods.pop(pod.metadata.uid, None)
        elif (outlived := self._pods.get(pod.metadata.uid)) is not None:
            outlived.pod = pod
        else:
            self._pods[pod.metadata.uid] = _Outlived(pod, self._clock() + PATIENCE_S)

    async def end_due(self) -> None:
        """End the pods whose time is up, those of a namespace in part."""
        now_s, turns, ended = self._clock(), collections.Counter[str](), 0
        for outlived in sorted(self._pods.values(), key=lambda outlived: outlived.due_s):
            turns[outlived.pod.metadata.namespace] += 1
            if outlived.due_s > now_s or ended == PER_ROUND or not self._leader.valid():
                return
            if turns[outlived.pod.metadata.namespace] <= PER_NAMESPACE:
                ended += 1
                outlived.due_s = now_s + RETRY_S
                await self._end(outlived.pod)

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


def _is_due(pod: facts.PodFacts) -> bool:
    is_settled = pod.is_terminal or pod.metadata.deletion_timestamp is not None
    return (
        pod.outlived_exit_code is not None
        and not is_settled
        and names.ANNOTATION_EXIT_CODE not in pod.metadata.annotations
    )
