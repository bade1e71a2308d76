"""Closed set of the reasons for which the kubelet and the control plane end pods.

`status.reason` and the reason of a condition are free text in the API. Metrics and conditions use only these values.
"""

from typing import Final

OUT_OF_RESOURCE: Final = "OutOfResource"
"""Replaces the kubelet's `OutOfNAME` of an extended resource, whose name is arbitrary."""
_OUT_OF: Final = "OutOf"

KNOWN: Final = frozenset(
    {
        # Rejected by the kubelet
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
        # Ended by the kubelet or the node controller
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


def normalize(reason: str, otherwise: str) -> str:
    """Return the reason if it is in the closed set, `OUT_OF_RESOURCE` for an `OutOfNAME`, or else `otherwise`."""
    if reason in KNOWN:
        return reason
    return OUT_OF_RESOURCE if reason.startswith(_OUT_OF) else otherwise
