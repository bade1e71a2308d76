"""yarn-site.xml: the ResourceManager, its state, and what NodeManagers offer. Pure."""

from typing import Final

from boathouse.services.mrcluster import naming, ports
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.settings import paths, sizes
from boathouse_task.cluster_contract import TRANSIENT_LABEL

_ANY: Final = "0.0.0.0"  # noqa: S104 - inside the pod
APPLICATION_MASTER_ATTEMPTS: Final = "5"
"""Attempts of an application."""
_ENVIRONMENT: Final = ("JAVA_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "PATH", "LANG", "TZ")


def of(cluster: Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets."""
    return _resource_manager(cluster) | _node_manager() | _labels()


def defaults(cluster: Cluster) -> dict[str, str]:
    """Return settings that users may change. The exclude file has the timeouts of decommissions.

    A NodeManager is lost after three minutes without a heartbeat instead of ten: its tasks start again then.

    NodeManagers and ApplicationMasters retry to connect to a ResourceManager that starts every 5 s instead of 30.

    With Hadoop's two attempts, new settings would fail a job whose ApplicationMaster is twice on the core node that
    restarts next: YARN can count a container that its NodeManager stops as a failed attempt.

    Logs of containers would stay in HDFS for ever. The JobHistoryServer deletes them when it deletes the job's history.
    """
    master = naming.Names(cluster).fqdn(naming.MASTER)
    return {
        "yarn.application.classpath": sizes.classpath(cluster),
        "yarn.nm.liveness-monitor.expiry-interval-ms": "180000",
        "yarn.node-attribute.fs-store.root-dir": f"file://{paths.RM_STATE}/attributes",
        "yarn.log-aggregation.retain-seconds": str(7 * 24 * 3600),
        "yarn.log.server.url": f"http://{master}:{ports.HISTORY_HTTP}/jobhistory/logs",
        "yarn.resourcemanager.am.max-attempts": APPLICATION_MASTER_ATTEMPTS,
        "yarn.resourcemanager.connect.retry-interval.ms": "5000",
        "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs": "5",
        "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs": "-1",
    }


def _resource_manager(cluster: Cluster) -> dict[str, str]:
    """A small unit of allocation keeps the memory of a node in line with the number of its slots."""
    scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
    store = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
    return {
        "yarn.resourcemanager.hostname": naming.Names(cluster).fqdn(naming.MASTER),
        "yarn.resourcemanager.bind-host": _ANY,
        "yarn.resourcemanager.scheduler.class": scheduler,
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.store.class": store,
        "yarn.resourcemanager.fs.state-store.uri": f"file://{paths.RM_STATE}",
        "yarn.resourcemanager.nodes.exclude-path": paths.YARN_EXCLUDE,
        "yarn.scheduler.minimum-allocation-mb": str(sizes.UNIT_MB),
        "yarn.scheduler.maximum-allocation-mb": str(sizes.of(cluster).largest_mb),
        "yarn.log-aggregation-enable": "true",
    }


def _node_manager() -> dict[str, str]:
    """A NodeManager has its DataNode's name, so that YARN finds the node of a block; and a fixed port.

    Sizes and names differ between pods: they are variables of the container.
    """
    fqdn = paths.from_env(paths.FQDN_ENV, "localhost")
    return {
        "yarn.nodemanager.hostname": fqdn,
        "yarn.nodemanager.bind-host": _ANY,
        "yarn.nodemanager.address": f"{fqdn}:{ports.NODE_MANAGER}",
        "yarn.nodemanager.localizer.address": f"{fqdn}:{ports.LOCALIZER}",
        "yarn.nodemanager.webapp.address": f"{fqdn}:{ports.NODE_MANAGER_HTTP}",
        "yarn.nodemanager.local-dirs": f"{paths.LOCAL}/nm",
        "yarn.nodemanager.log-dirs": f"{paths.LOCAL}/log",
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",  # noqa: S108 - in HDFS
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.env-whitelist": ",".join(_ENVIRONMENT),
        "yarn.nodemanager.resource.memory-mb": paths.from_env(paths.YARN_MEMORY_ENV, "0"),
        "yarn.nodemanager.resource.cpu-vcores": paths.from_env(paths.YARN_VCORES_ENV, "0"),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "90",
    }


def _labels() -> dict[str, str]:
    """Transient nodes have a label that is not exclusive.

    YARN places containers of unlabelled requests there, but no ApplicationMasters.
    """
    return {
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.configuration-type": "distributed",
        "yarn.node-labels.fs-store.root-dir": f"file://{paths.RM_STATE}/labels",
        "yarn.nodemanager.node-labels.provider": paths.from_env(paths.LABELS_ENV),
        "yarn.nodemanager.node-labels.provider.configured-node-partition": TRANSIENT_LABEL,
    }
