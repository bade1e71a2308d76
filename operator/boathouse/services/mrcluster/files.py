"""All files of a cluster's ConfigMap, and the digest by which pods are rolled. Pure.

These are the configuration files of Hadoop, a file of users and one of groups, and shell scripts of the containers,
which need `sh` and a JRE of the image.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Final
from xml.sax import saxutils

from boathouse.resources import quantity
from boathouse.resources.mrcluster import spec as mrcluster_spec
from boathouse.services import hadoop
from boathouse.services.mrcluster import daemons, model, sizes
from boathouse_task.cluster_contract import TRANSIENT_LABEL

SCRIPTS: Final = {
    name: resources.files("boathouse.services.mrcluster").joinpath("scripts", name).read_text(encoding="utf-8")
    for name in ("start.sh", "refresh.sh", "client.sh")
}
"""The texts of the scripts by name."""
_CAPACITY_PREFIX: Final = "yarn.scheduler.capacity."
_ANY: Final = "0.0.0.0"  # noqa: S104 - inside the pod
APPLICATION_MASTER_ATTEMPTS: Final = "5"
"""Attempts of an application."""
ADD_OPENS: Final = "--add-opens=java.base/java.lang=ALL-UNNAMED"
"""Guice, cglib and WebHDFS need it on Java 17."""
USERS_FILE: Final = "passwd"
GROUPS_FILE: Final = "group"
USER_ID: Final = 10001
_Settings = Mapping[str, str]
_LOG4J: Final = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_IN_PODS: Final = (
    *("image_pull_policy", "image_pull_secrets", "classpath", "java_home", "service_account_name", "pod_template"),
    *("env", "env_from", "node_selector", "tolerations"),
)
"""Fields of the spec for pods: a change of them rolls the nodes."""

CAPACITY_SCHEDULER: Final = {
    f"{_CAPACITY_PREFIX}{key}": value
    for key, value in {
        "maximum-am-resource-percent": "0.5",
        "node-locality-delay": "40",
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
        "root.queues": "default",
        "root.default.capacity": "100",
        "root.accessible-node-labels": TRANSIENT_LABEL,
        f"root.accessible-node-labels.{TRANSIENT_LABEL}.capacity": "100",
        "root.default.accessible-node-labels": TRANSIENT_LABEL,
        f"root.default.accessible-node-labels.{TRANSIENT_LABEL}.capacity": "100",
    }.items()
}
"""The settings that Boathouse sets.

With the default of 10 % for ApplicationMasters, jobs of a small cluster wait for their ApplicationMaster, and their
tasks do not count as load. Slots are memory: with the CPU too, a node of one CPU would have one slot.
"""
CAPACITY_DEFAULTS: Final = {f"{_CAPACITY_PREFIX}am.allow-non-exclusive-allocation": "false"}
"""Settings that users may change."""


def core_site(cluster: model.Cluster) -> dict[str, str]:
    """Return Boathouse's settings. Tokens name services by host: a pod that is created again has another address."""
    return {
        "fs.defaultFS": f"hdfs://{cluster.fqdn(model.MASTER)}:{daemons.NAME_NODE_PORT}",
        "hadoop.http.staticuser.user": hadoop.USER,
        "hadoop.security.authentication": "simple",
        "hadoop.security.token.service.use_ip": "false",
        "hadoop.tmp.dir": "/tmp/hadoop",  # noqa: S108 - inside the pod
    }


def hdfs_defaults(cluster: model.Cluster) -> dict[str, str]:
    """Return settings that users may change. A DataNode is dead after 90 s without heartbeat.

    Clients of HDFS wait for a NameNode that starts again, at first for a minute, then for five: without this policy,
    which they read from the same file, they give up after 10 s, and with them the running jobs. A volume is full when
    only a 20th is free, which is reserved. By default, a DataNode demands 1 GiB beside.
    """
    return {
        "dfs.client.retry.policy.enabled": "true",
        "dfs.client.retry.policy.spec": "2000,30,10000,30",
        "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
        "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "0",
        "dfs.datanode.du.reserved": str(quantity.units(cluster.spec.core.volume.size) // 20),
        "dfs.heartbeat.interval": "3",
        "dfs.namenode.checkpoint.period": "3600",
        "dfs.namenode.decommission.interval": "10",
        "dfs.namenode.heartbeat.recheck-interval": "30000",
        "dfs.namenode.safemode.extension": "0",
        "dfs.reformat.disabled": "true",
    }


def hdfs_site(cluster: model.Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets.

    Nothing here depends on the number of nodes, so that a cluster that grows need not restart. No file may have more
    replicas than `dfs.replication`, which is at most the first number of core nodes: otherwise no core node could be
    decommissioned while the file exists.
    """
    master = cluster.fqdn(model.MASTER)
    return {
        "dfs.namenode.name.dir": f"file://{daemons.NAME_FOLDER}",
        "dfs.namenode.checkpoint.dir": f"file://{daemons.CHECKPOINT_FOLDER}/dfs",
        "dfs.namenode.rpc-address": f"{master}:{daemons.NAME_NODE_PORT}",
        "dfs.namenode.rpc-bind-host": _ANY,
        "dfs.namenode.http-address": f"{master}:{daemons.NAME_NODE_HTTP_PORT}",
        "dfs.namenode.http-bind-host": _ANY,
        "dfs.namenode.secondary.http-address": f"{_ANY}:{daemons.CHECKPOINT_HTTP_PORT}",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.hosts.exclude": daemons.HDFS_EXCLUDE,
        "dfs.replication": str(cluster.replication),
        "dfs.namenode.replication.max": str(cluster.replication),
        "dfs.blocksize": str(quantity.units(cluster.spec.hdfs.block_size)),
        "dfs.namenode.fs-limits.min-block-size": str(1024**2),
        "dfs.namenode.resource.du.reserved": str(100 * 1024**2),  # with less free space: safe mode
        "dfs.webhdfs.enabled": "true",
        "dfs.permissions.enabled": "true",
        "dfs.cluster.administrators": hadoop.USER,
        "dfs.datanode.data.dir": f"file://{daemons.BLOCKS_FOLDER}/data",
        "dfs.datanode.address": f"{_ANY}:{daemons.DATA_NODE_PORT}",
        "dfs.datanode.http.address": f"{_ANY}:{daemons.DATA_NODE_HTTP_PORT}",
        "dfs.datanode.ipc.address": f"{_ANY}:{daemons.DATA_NODE_IPC_PORT}",
        "dfs.datanode.hostname": daemons.from_env(daemons.FQDN_ENV, "localhost"),
        "dfs.datanode.use.datanode.hostname": "true",
        "dfs.client.use.datanode.hostname": "true",
    }


def yarn_defaults(cluster: model.Cluster) -> dict[str, str]:
    """Return settings that users may change. The exclude file has the timeouts of decommissions.

    A NodeManager is lost after three minutes without a heartbeat instead of ten: its tasks start again then.
    NodeManagers and ApplicationMasters retry to connect to a ResourceManager that starts every 5 s instead of 30. With
    Hadoop's two attempts, new settings would fail a job whose ApplicationMaster is twice on the core node that restarts
    next: YARN can count a container that its NodeManager stops as a failed attempt. Logs of containers would stay in
    HDFS for ever. The JobHistoryServer deletes them when it deletes the job's history.
    """
    master = cluster.fqdn(model.MASTER)
    return {
        "yarn.application.classpath": _classpath(cluster),
        "yarn.nm.liveness-monitor.expiry-interval-ms": "180000",
        "yarn.node-attribute.fs-store.root-dir": f"file://{daemons.RM_STATE_FOLDER}/attributes",
        "yarn.log-aggregation.retain-seconds": str(7 * 24 * 3600),
        "yarn.log.server.url": f"http://{master}:{daemons.HISTORY_HTTP_PORT}/jobhistory/logs",
        "yarn.resourcemanager.am.max-attempts": APPLICATION_MASTER_ATTEMPTS,
        "yarn.resourcemanager.connect.retry-interval.ms": "5000",
        "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs": "5",
        "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs": "-1",
    }


def yarn_site(cluster: model.Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets.

    A small unit of allocation keeps the memory of a node in line with the number of its slots. A NodeManager has its
    DataNode's name, so that YARN finds the node of a block; and a fixed port. Sizes and names differ between pods: they
    are variables of the container. Transient nodes have a label that is not exclusive: YARN places containers of
    unlabelled requests there, but no ApplicationMasters.
    """
    fqdn, memory = daemons.from_env(daemons.FQDN_ENV, "localhost"), sizes.of(cluster)
    scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
    store = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
    return {
        "yarn.resourcemanager.hostname": cluster.fqdn(model.MASTER),
        "yarn.resourcemanager.bind-host": _ANY,
        "yarn.resourcemanager.scheduler.class": scheduler,
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.store.class": store,
        "yarn.resourcemanager.fs.state-store.uri": f"file://{daemons.RM_STATE_FOLDER}",
        "yarn.resourcemanager.nodes.exclude-path": daemons.YARN_EXCLUDE,
        "yarn.scheduler.minimum-allocation-mb": str(sizes.UNIT_MB),
        "yarn.scheduler.maximum-allocation-mb": str(max(memory.core_mb, memory.transient_mb)),
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.hostname": fqdn,
        "yarn.nodemanager.bind-host": _ANY,
        "yarn.nodemanager.address": f"{fqdn}:{daemons.NODE_MANAGER_PORT}",
        "yarn.nodemanager.localizer.address": f"{fqdn}:{daemons.LOCALIZER_PORT}",
        "yarn.nodemanager.webapp.address": f"{fqdn}:{daemons.NODE_MANAGER_HTTP_PORT}",
        "yarn.nodemanager.local-dirs": f"{daemons.LOCAL_FOLDER}/nm",
        "yarn.nodemanager.log-dirs": f"{daemons.LOCAL_FOLDER}/log",
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",  # noqa: S108 - in HDFS
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,HADOOP_USER_NAME,PATH,LANG,TZ",
        "yarn.nodemanager.resource.memory-mb": daemons.from_env(daemons.YARN_MEMORY_ENV, "0"),
        "yarn.nodemanager.resource.cpu-vcores": daemons.from_env(daemons.YARN_VCORES_ENV, "0"),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "90",
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.configuration-type": "distributed",
        "yarn.node-labels.fs-store.root-dir": f"file://{daemons.RM_STATE_FOLDER}/labels",
        "yarn.nodemanager.node-labels.provider": daemons.from_env(daemons.LABELS_ENV),
        "yarn.nodemanager.node-labels.provider.configured-node-partition": TRANSIENT_LABEL,
    }


def _classpath(cluster: model.Cluster) -> str:
    return ",".join((daemons.CONF_FOLDER, *cluster.spec.classpath.split(":")))


def mapred_site(cluster: model.Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets."""
    master = cluster.fqdn(model.MASTER)
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": _classpath(cluster),
        "mapreduce.job.emit-timeline-data": "false",
        "mapreduce.jobhistory.bind-host": "0.0.0.0",  # noqa: S104 - inside the pod
        "mapreduce.jobhistory.address": f"{master}:{daemons.HISTORY_PORT}",
        "mapreduce.jobhistory.webapp.address": f"{master}:{daemons.HISTORY_HTTP_PORT}",
        "mapreduce.jobhistory.intermediate-done-dir": "/mr-history/tmp",
        "mapreduce.jobhistory.done-dir": "/mr-history/done",
        "yarn.app.mapreduce.am.staging-dir": "/tmp/hadoop-yarn/staging",  # noqa: S108 - in HDFS
    }


def mapred_defaults(cluster: model.Cluster) -> dict[str, str]:
    """Return settings that users may change. Streaming runs beside a JVM: heaps are 0.6 of a container, not 0.8."""
    memory = sizes.of(cluster)
    first, last = daemons.APPLICATION_MASTER_PORTS
    return {
        "mapreduce.am.max-attempts": APPLICATION_MASTER_ATTEMPTS,
        "mapreduce.admin.map.child.java.opts": ADD_OPENS,
        "mapreduce.admin.reduce.child.java.opts": ADD_OPENS,
        "mapreduce.client.submit.file.replication": str(min(10, cluster.replication)),  # 10: the default
        "mapreduce.job.heap.memory-mb.ratio": "0.6",
        sizes.MAP_MEMORY: str(memory.map_mb),
        "mapreduce.reduce.memory.mb": str(memory.map_mb),
        "mapreduce.task.io.sort.mb": str(min(100, memory.map_mb // 4)),
        "yarn.app.mapreduce.am.admin-command-opts": ADD_OPENS,
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{memory.am_mb * 3 // 4}m",
        "yarn.app.mapreduce.am.job.client.port-range": f"{first}-{last}",
        sizes.AM_MEMORY: str(memory.am_mb),
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The configuration of a cluster.

    The digest is of the files, and of the fields for pods. The settings of the operator are not in it, so that a new
    version of the operator restarts no cluster if its files are the same. `overridden` are keys of the user that are
    ignored, sorted.
    """

    files: Mapping[str, str]
    digest: str
    overridden: tuple[str, ...]


def render(cluster: model.Cluster) -> Rendered:
    """Return the files of a cluster."""
    user, (uid, gid) = hadoop.USER, user_ids(cluster)  # Hadoop does not start without a name for its user
    files = {
        **{name: _xml(settings) for name, settings in _sites(cluster).items()},
        "log4j.properties": _LOG4J,
        **SCRIPTS,
        USERS_FILE: f"root:x:0:0:root:/root:/bin/sh\n{user}:x:{uid}:{gid}:{user}:/tmp:/bin/sh\n",
        GROUPS_FILE: f"root:x:0:\n{user}:x:{gid}:\n",
    }
    spec = cluster.spec
    maps = (spec.hadoop_settings, spec.hdfs.settings, spec.yarn.settings, spec.mapreduce.settings)
    return Rendered(files=files, digest=_digest(cluster, files), overridden=mrcluster_spec.closed_keys(*maps))


def _sites(cluster: model.Cluster) -> dict[str, _Settings]:
    spec = cluster.spec
    sites = {
        "core-site.xml": _merged({}, spec.hadoop_settings, core_site(cluster)),
        "hdfs-site.xml": _merged(hdfs_defaults(cluster), spec.hdfs.settings, hdfs_site(cluster)),
    }
    if not spec.compute:
        return sites
    scheduling = {key: value for key, value in (spec.yarn.settings or {}).items() if key.startswith(_CAPACITY_PREFIX)}
    yarn = {key: value for key, value in (spec.yarn.settings or {}).items() if key not in scheduling}
    return sites | {
        "yarn-site.xml": _merged(yarn_defaults(cluster), yarn, yarn_site(cluster)),
        "capacity-scheduler.xml": _merged(CAPACITY_DEFAULTS, scheduling, CAPACITY_SCHEDULER),
        "mapred-site.xml": _merged(mapred_defaults(cluster), spec.mapreduce.settings, mapred_site(cluster)),
    }


def _merged(defaults: _Settings, user: _Settings | None, ours: _Settings) -> _Settings:
    return {**defaults, **mrcluster_spec.open_settings(user), **ours}


def _xml(settings: _Settings) -> str:
    escape = saxutils.escape
    properties = (
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in sorted(settings.items())
    )
    return "\n".join(('<?xml version="1.0"?>', "<configuration>", *properties, "</configuration>", ""))


def user_ids(cluster: model.Cluster) -> tuple[int, int]:
    """Return user and group of the pods, which the files of users name."""
    template = cluster.spec.pod_template
    security = template.security_context if template else None
    return (security and security.run_as_user) or USER_ID, (security and security.run_as_group) or USER_ID


def _digest(cluster: model.Cluster, files: Mapping[str, str]) -> str:
    """A default of `core.scratch` is not in it: clusters of versions without this field need not roll."""
    resources = [dataclasses.astuple(requests) for requests in cluster.requests.values()]
    spec = cluster.spec
    pods = spec.model_dump(mode="json", include=set(_IN_PODS), exclude_none=True)
    core = spec.core.model_dump(mode="json", include={"scratch"}, exclude_defaults=True)
    parts = (files, cluster.image, resources, str(spec.transient.scratch), pods | core)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
