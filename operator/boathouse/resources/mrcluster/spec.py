"""The spec of an MRCluster. Its rules are CEL, checked by the API server; their messages say what to do.

A setting of Hadoop that Boathouse sets is closed: a user's value of it is ignored, and a condition names it. A key is
closed in all files, because Hadoop merges them: `fs.defaultFS` in hdfs-site.xml would replace that of core-site.xml.
Deprecated names are closed with the setting that Hadoop converts them to.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from boathouse.resources.base import DnsLabel, HadoopSettings, Model, amount, holds, optional, rule, spec_config, whole
from boathouse.resources.mrcluster.nodes import Core, Master, Resizing, Transient
from boathouse.resources.pod_environment import Environment
from boathouse.resources.pod_template import NodeLabels, PodTemplate, TemplateFields, Tolerations

CLOSED: Final = (
    # file system and security
    r"fs\.(defaultFS|default\.name)",
    r"hadoop\.(tmp\.dir|security\.(authentication|token\.service\.use_ip)|proxyuser\..*|http\.staticuser\.user)",
    r"(dfs|yarn|mapreduce\.jobhistory)\.http\.policy",
    # NameNode
    r"dfs\.(namenode\.|)(name|edits|name\.edits)\.dir",
    r"dfs\.namenode\.(shared\.edits\.dir|checkpoint\.(edits\.)?dir|hosts\.provider\.classname)",
    r"fs\.checkpoint\.(edits\.)?dir",
    r"dfs\.(namenode\.)?(secondary\.)?(rpc|http|https|servicerpc|lifeline\.rpc)(-address|\.address|-bind-host)",
    r"dfs\.namenode\.datanode\.registration\.ip-hostname-check",
    r"dfs\.(hosts(\.exclude)?|(internal\.)?nameservices|nameservice\.id|federation\..*|ha\..*)",
    r"dfs\.namenode\.(resource\.du\.reserved|replication\.max|fs-limits\.min-block-size)",
    r"dfs\.(replication\.max|blocksize|block\.size|replication)",
    r"dfs\.(webhdfs\.enabled|permissions(\.enabled)?|cluster\.administrators)",
    # DataNode
    r"dfs\.(datanode\.)?data\.dir",
    r"dfs\.datanode\.((http\.|https\.|ipc\.)?address|hostname|use\.datanode\.hostname)",
    r"dfs\.client\.use\.datanode\.hostname|slave\.host\.name",
    # ResourceManager
    r"yarn\.resourcemanager\.(hostname|bind-host|(scheduler\.|resource-tracker\.|admin\.)?address)",
    r"yarn\.resourcemanager\.(webapp\.(https\.)?address|ha\..*|cluster-id|scheduler\.class)",
    r"yarn\.resourcemanager\.(recovery\.enabled|store\.class|fs\.state-store\.uri)",
    r"yarn\.resourcemanager\.(work-preserving-recovery\.enabled|nodes\.(include|exclude)-path)",
    r"yarn\.node-labels\..*",
    r"yarn\.scheduler\.(minimum|maximum)-allocation-mb",
    # NodeManager
    r"yarn\.nodemanager\.(hostname|bind-host|address|(localizer|webapp(\.https)?)\.address)",
    r"yarn\.nodemanager\.(local-dirs|log-dirs|aux-services|env-whitelist|node-labels\..*)",
    r"yarn\.nodemanager\.(resource\.(memory-mb|cpu-vcores)|[vp]mem-check-enabled)",
    r"yarn\.nodemanager\.disk-health-checker\.max-disk-utilization-per-disk-percentage",
    r"yarn\.nodemanager\.remote-app-log-dir|yarn\.log-aggregation-enable",
    # CapacityScheduler
    r"yarn\.scheduler\.capacity\.(root\.)?(queues|(.*\.)?capacity|(.*\.)?maximum-am-resource-percent)",
    r"yarn\.scheduler\.capacity\.(resource-calculator|node-locality-delay|.*\.accessible-node-labels(\..*)?)",
    # MapReduce
    r"mapreduce\.(framework\.name|application\.classpath|job\.(tags|emit-timeline-data|am\.node-label-expression))",
    r"mapreduce\.jobhistory\.(bind-host|address|(admin|webapp|webapp\.https)\.address|(intermediate-)?done-dir)",
    r"yarn\.app\.mapreduce\.am\.staging-dir",
)
_CLOSED: Final = re.compile("|".join(f"(?:{part})" for part in CLOSED))


def is_closed(key: str) -> bool:
    """Return whether Boathouse sets a setting itself."""
    return _CLOSED.fullmatch(key) is not None


def open_settings(settings: Mapping[str, str] | None) -> dict[str, str]:
    """Return the settings that users may make."""
    return {key: value for key, value in (settings or {}).items() if not is_closed(key)}


def closed_keys(*maps: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the keys that are ignored, sorted."""
    keys: Iterable[str] = (key for settings in maps for key in settings or ())
    return tuple(sorted(filter(is_closed, keys)))


def ignored_settings(keys: Iterable[str]) -> str:
    """Return the message about settings of a user that are ignored."""
    return f"Boathouse sets {', '.join(keys)} itself: remove them from the spec"


VERSION: Final = "3.4.2"
CLASSPATH: Final = "/opt/hadoop/lib/*"
JAVA_HOME: Final = "/opt/java"
MAX_SETTINGS_BYTES: Final = 64 * 1024
RESERVED_VARIABLES: Final = ("JAVA_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME")
_MUTABLE: Final = frozenset(
    {
        *("image", "imagePullPolicy", "imagePullSecrets", "classpath", "javaHome", "serviceAccountName", "podTemplate"),
        *("env", "envFrom", "nodeSelector", "tolerations", "zones", "master", "core", "transient", "resizing"),
        "weight",
        *("hdfs", "yarn", "mapreduce", "hadoopSettings", "ttlSecondsAfterIdle", "networkPolicy"),
    }
)
"""All but queue, version, compute and dataPolicy; the volumes of nodes have rules of their own."""

BlockSize = Annotated[
    int | str,
    amount(
        "1Mi",
        "smaller blocks make more of them than a NameNode can hold",
        rule(
            "!isQuantity(string(self)) || !quantity(string(self)).isInteger() || "
            "quantity(string(self)).asInteger() % 512 == 0",
            "'\"' + string(self) + '\" is not a multiple of 512 bytes, HDFS\\'s unit of checksums'",
        ),
    ),
]


class Hdfs(Model):
    """HDFS of the cluster."""

    replication: int | None = optional(
        "Copies of each block of new files. Absent: 3, or the first number of core nodes if that is less.", ge=1, le=10
    )
    block_size: BlockSize = Field(default="128Mi", description="Of new files.")
    settings: HadoopSettings | None = optional("For hdfs-site.xml.")


class Yarn(Model):
    """YARN of the cluster."""

    settings: HadoopSettings | None = optional(
        "For yarn-site.xml; keys of the CapacityScheduler go to capacity-scheduler.xml."
    )


class MapReduce(Model):
    """MapReduce of the cluster."""

    settings: HadoopSettings | None = optional("For mapred-site.xml.")


def _bytes(path: str, *parents: str) -> str:
    given = " && ".join(f"has(self.{field})" for field in (*parents, path))
    return f"({given} ? self.{path}.map(key, bytes(key).size() + bytes(self.{path}[key]).size()).sum() : 0)"


_settings_bytes = " + ".join(
    (
        _bytes("hadoopSettings"),
        _bytes("hdfs.settings", "hdfs"),
        _bytes("yarn.settings", "yarn"),
        _bytes("mapreduce.settings", "mapreduce"),
    )
)
_rules = (
    rule(
        "!has(self.hdfs.replication) || self.hdfs.replication <= self.core.count",
        "hdfs.replication is more than core.count: lower it, because a block has at most one copy on a core node",
    ),
    rule(
        "!(self.resizing.policy in ['GSP', 'GGP']) || self.transient.minimum < self.transient.maximum",
        "the policies GSP and GGP change the number of transient nodes: set transient.maximum above transient.minimum",
    ),
    rule(
        "self.resizing.policy != 'GGDP' || (has(self.core.maximum) && self.core.count < self.core.maximum)",
        "the policy GGDP adds core nodes: set core.maximum above core.count",
    ),
    rule(
        "self.compute || (self.transient.maximum == 0 && self.resizing.policy == 'Static' && "
        "!has(self.yarn.settings) && !has(self.mapreduce.settings))",
        "a cluster with compute: false is HDFS alone: it has no transient nodes, no resizing policy but Static, and no "
        "settings of YARN and MapReduce; remove them",
    ),
    rule(
        "self.dataPolicy == 'Delete' || (!self.master.volume.emptyDir && !self.core.volume.emptyDir)",
        "the data in an emptyDir cannot be kept: set dataPolicy: Delete",
    ),
    rule(
        f"!has(self.env) || self.env.all(e, !(e.name in {list(RESERVED_VARIABLES)}))",
        f"spec.env: Boathouse sets {', '.join(RESERVED_VARIABLES)}: use spec.javaHome, or remove them",
    ),
    rule(
        f"{_settings_bytes} <= {MAX_SETTINGS_BYTES}",
        f"settings may have {MAX_SETTINGS_BYTES} bytes in total: remove some",
    ),
)


_Zone = Annotated[str, Field(min_length=1, max_length=63)]
_Zones = Annotated[list[_Zone], Field(min_length=1, max_length=32, json_schema_extra={"x-kubernetes-list-type": "set"})]


class MRClusterSpec(TemplateFields):
    """Desired state of the cluster. A change of most fields restarts the nodes, one after the other."""

    model_config = spec_config(*_rules, always_mutable=_MUTABLE, mutable_while_suspended=(), noun="cluster")
    queue: DnsLabel | None = optional(
        "Queue of the cluster. Absent: the namespace's default queue, or that of the chart."
    )
    image: str | None = optional(
        "Image with Hadoop's jars, a JRE and sh. Absent: the chart's.",
        min_length=1,
        max_length=512,
        json_schema_extra=holds(
            r"!self.matches('[\\x00-\\x20\\x7f]')", "an image has no spaces and no control characters: remove them"
        ),
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="When the kubelet pulls the image."
    )
    version: str = Field(
        default=VERSION,
        max_length=16,
        pattern=r"^3\.[0-9]+\.[0-9]+$",
        description="Version of Hadoop in the image. HDFS cannot change to another one. A cluster whose image has "
        "another version is degraded (VersionMismatch).",
    )
    classpath: str = Field(
        default=CLASSPATH,
        max_length=2048,
        pattern=r"^(/[-._+a-zA-Z0-9]+)+(/[*])?(:(/[-._+a-zA-Z0-9]+)+(/[*])?)*$",
        description="Folders and jars of Hadoop in the image, absolute and separated by colons.",
    )
    java_home: str = Field(
        default=JAVA_HOME,
        max_length=256,
        pattern=r"^(/[-._+a-zA-Z0-9]+)+$",
        description="Folder of the JRE in the image, 17 or later.",
    )
    master: Master = whole(Master)
    core: Core = whole(Core)
    transient: Transient = whole(Transient)
    resizing: Resizing = whole(Resizing)
    weight: int = Field(default=1, ge=1, le=1000, description="Share of offered nodes relative to the other clusters.")
    zones: _Zones | None = optional("Values of topology.kubernetes.io/zone. Absent: any node.")
    node_selector: NodeLabels | None = optional("Labels that nodes of the pods must have.")
    tolerations: Tolerations | None = optional("Taints of nodes that the pods tolerate.")
    env: Environment | None = optional("Of all containers with Hadoop.")
    pod_template: PodTemplate | None = optional("Fields of the pods of all nodes. A change restarts the nodes.")
    hdfs: Hdfs = whole(Hdfs)
    yarn: Yarn = whole(Yarn)
    mapreduce: MapReduce = whole(MapReduce)
    hadoop_settings: HadoopSettings | None = optional("For core-site.xml.")
    compute: bool = Field(default=True, description="False: HDFS without YARN.")
    ttl_seconds_after_idle: int | None = optional(
        "The cluster is deleted when it has had no application, no job with clusterRef and no unfinished "
        "job that names its HDFS for this time. Absent: never.",
        ge=60,
        le=365 * 86400,
    )
    data_policy: Literal["Retain", "Delete"] = Field(
        default="Retain", description="What happens to the claims of master and core nodes when the cluster is deleted."
    )
    network_policy: Literal["Namespace", "Cluster", "None"] = Field(
        default="Namespace",
        description="The pods that reach the cluster's ports. Namespace: those of its namespace. Cluster: its own, and "
        "those that Boathouse creates for jobs of its namespace. None: all. A client that reaches them can act as any "
        "user of Hadoop.",
    )
