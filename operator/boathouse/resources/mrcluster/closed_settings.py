"""Settings of Hadoop that Boathouse sets: a user's value of one of them is ignored, and a condition names it.

A key is closed in all files, because Hadoop merges them: `fs.defaultFS` in hdfs-site.xml would replace that of
core-site.xml. Deprecated names are closed with the setting that Hadoop converts them to.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

CLOSED: Final[Mapping[str, Sequence[str]]] = {
    "file system and security": (
        r"fs\.(defaultFS|default\.name)",
        r"hadoop\.(tmp\.dir|security\.(authentication|token\.service\.use_ip)|proxyuser\..*|http\.staticuser\.user)",
        r"(dfs|yarn|mapreduce\.jobhistory)\.http\.policy",
    ),
    "NameNode": (
        r"dfs\.(namenode\.|)(name|edits|name\.edits)\.dir",
        r"dfs\.namenode\.(shared\.edits\.dir|checkpoint\.(edits\.)?dir|hosts\.provider\.classname)",
        r"fs\.checkpoint\.(edits\.)?dir",
        r"dfs\.(namenode\.)?(secondary\.)?(rpc|http|https|servicerpc|lifeline\.rpc)(-address|\.address|-bind-host)",
        r"dfs\.namenode\.datanode\.registration\.ip-hostname-check",
        r"dfs\.(hosts(\.exclude)?|(internal\.)?nameservices|nameservice\.id|federation\..*|ha\..*)",
        r"dfs\.namenode\.(resource\.du\.reserved|replication\.max|fs-limits\.min-block-size)",
        r"dfs\.(replication\.max|blocksize|block\.size|replication)",
        r"dfs\.(webhdfs\.enabled|permissions(\.enabled)?|cluster\.administrators)",
    ),
    "DataNode": (
        r"dfs\.(datanode\.)?data\.dir",
        r"dfs\.datanode\.((http\.|https\.|ipc\.)?address|hostname|use\.datanode\.hostname)",
        r"dfs\.client\.use\.datanode\.hostname|slave\.host\.name",
    ),
    "ResourceManager": (
        r"yarn\.resourcemanager\.(hostname|bind-host|(scheduler\.|resource-tracker\.|admin\.)?address)",
        r"yarn\.resourcemanager\.(webapp\.(https\.)?address|ha\..*|cluster-id|scheduler\.class)",
        r"yarn\.resourcemanager\.(recovery\.enabled|store\.class|fs\.state-store\.uri)",
        r"yarn\.resourcemanager\.(work-preserving-recovery\.enabled|nodes\.(include|exclude)-path)",
        r"yarn\.node-labels\..*",
        r"yarn\.scheduler\.(minimum|maximum)-allocation-mb",
    ),
    "NodeManager": (
        r"yarn\.nodemanager\.(hostname|bind-host|address|(localizer|webapp(\.https)?)\.address)",
        r"yarn\.nodemanager\.(local-dirs|log-dirs|aux-services|env-whitelist|node-labels\..*)",
        r"yarn\.nodemanager\.(resource\.(memory-mb|cpu-vcores)|[vp]mem-check-enabled)",
        r"yarn\.nodemanager\.disk-health-checker\.max-disk-utilization-per-disk-percentage",
        r"yarn\.nodemanager\.remote-app-log-dir|yarn\.log-aggregation-enable",
    ),
    "CapacityScheduler": (
        r"yarn\.scheduler\.capacity\.(root\.)?(queues|(.*\.)?capacity|(.*\.)?maximum-am-resource-percent)",
        r"yarn\.scheduler\.capacity\.(resource-calculator|node-locality-delay|.*\.accessible-node-labels(\..*)?)",
    ),
    "MapReduce": (
        r"mapreduce\.(framework\.name|application\.classpath|job\.(tags|emit-timeline-data|am\.node-label-expression))",
        r"mapreduce\.jobhistory\.(bind-host|address|(admin|webapp|webapp\.https)\.address|(intermediate-)?done-dir)",
        r"yarn\.app\.mapreduce\.am\.staging-dir",
    ),
}
"""Regular expressions of keys, by what they configure."""

_CLOSED: Final = re.compile("|".join(f"(?:{part})" for parts in CLOSED.values() for part in parts))


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


def ignored(keys: Iterable[str]) -> str:
    """Return the message about settings of a user that are ignored."""
    return f"Boathouse sets {', '.join(keys)} itself: remove them from the spec"
