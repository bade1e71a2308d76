"""Why a pod failed or was removed, in the words of the kubelet and the control plane, as a closed set.

`status.reason` and the reason of a condition are free text in the API. Metrics and conditions take only what is here.
"""

from typing import Final

OUT_OF_RESOURCE: Final = "OutOfResource"
"""The kubelet's `OutOfNAME` of a resource that is not among the usual ones: names are anybody's to choose."""
_OUT_OF: Final = "OutOf"

KNOWN: Final = frozenset(
    {
        # The kubelet refused it
        "AdmissionError",
        "AppArmor",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodePorts",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        OUT_OF_RESOURCE,
        "PodFeatureUnsupported",
        "PodOSNotSupported",
        "SysctlForbidden",
        "Taint",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnsupportedPod",
        # The kubelet or the node controller ended it
        "DeadlineExceeded",
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Preempting",
        "Shutdown",
        "Terminated",
        # DisruptionTarget
        "DeletionByPodGC",
        "DeletionByTaintManager",
        "EvictionByEvictionAPI",
        "PreemptionByScheduler",
        "TerminationByKubelet",
    }
)


def known(reason: str, otherwise: str) -> str:
    """Return the reason if it is in the closed set, the set's word for it, or `otherwise`."""
    if reason in KNOWN:
        return reason
    return OUT_OF_RESOURCE if reason.startswith(_OUT_OF) else otherwise
