"""capacity-scheduler.xml: one queue, to which both partitions of nodes belong. Pure."""

from typing import Final

from boathouse_task.cluster_contract import TRANSIENT_LABEL

PREFIX: Final = "yarn.scheduler.capacity."
_CALCULATOR: Final = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"


def of() -> dict[str, str]:
    """Return the settings that Boathouse sets.

    With the default of 10 % for ApplicationMasters, jobs of a small cluster wait for their ApplicationMaster, and their
    tasks do not count as load. Slots are memory: with the CPU too, a node of one CPU would have one slot.
    """
    settings = {
        "maximum-am-resource-percent": "0.5",
        "node-locality-delay": "40",
        "resource-calculator": _CALCULATOR,
        "root.queues": "default",
        "root.default.capacity": "100",
    }
    for queue in ("root", "root.default"):
        settings[f"{queue}.accessible-node-labels"] = TRANSIENT_LABEL
        settings[f"{queue}.accessible-node-labels.{TRANSIENT_LABEL}.capacity"] = "100"
    return {f"{PREFIX}{key}": value for key, value in settings.items()}


def defaults() -> dict[str, str]:
    """Return settings that users may change."""
    return {f"{PREFIX}am.allow-non-exclusive-allocation": "false"}
