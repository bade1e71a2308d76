"""All files of a cluster's ConfigMap, and the digest by which pods are rolled. Pure."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Final
from xml.sax import saxutils

from boathouse.resources.mrcluster.spec import closed_keys, open_settings
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.scripts import SCRIPTS
from boathouse.services.mrcluster.settings import capacity, core_site, hdfs_site, mapred_site, paths, yarn_site

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The configuration of a cluster.

    Attributes:
        files: Texts by name.
        digest: Of the files, and of the fields for pods. The settings of the operator are not in it, so that a new
            version of the operator restarts no cluster if its files are the same.
        overridden: Keys of the user that are ignored, sorted.
    """

    files: Mapping[str, str]
    digest: str
    overridden: tuple[str, ...]


def render(cluster: Cluster) -> Rendered:
    """Return the files of a cluster.

    Raises:
        ValueError: The daemons need more memory.
    """
    files = {
        **{name: _xml(settings) for name, settings in _sites(cluster).items()},
        "log4j.properties": _LOG4J,
        **SCRIPTS,
        USERS_FILE: _passwd(cluster),
        GROUPS_FILE: _group(cluster),
    }
    spec = cluster.spec
    maps = (spec.hadoop_settings, spec.hdfs.settings, spec.yarn.settings, spec.mapreduce.settings)
    return Rendered(files=files, digest=_digest(cluster, files), overridden=closed_keys(*maps))


def _sites(cluster: Cluster) -> dict[str, _Settings]:
    spec = cluster.spec
    sites = {
        "core-site.xml": _merged({}, spec.hadoop_settings, core_site.of(cluster)),
        "hdfs-site.xml": _merged(hdfs_site.defaults(cluster), spec.hdfs.settings, hdfs_site.of(cluster)),
    }
    if not spec.compute:
        return sites
    scheduling = {key: value for key, value in (spec.yarn.settings or {}).items() if key.startswith(capacity.PREFIX)}
    yarn = {key: value for key, value in (spec.yarn.settings or {}).items() if key not in scheduling}
    return sites | {
        "yarn-site.xml": _merged(yarn_site.defaults(cluster), yarn, yarn_site.of(cluster)),
        "capacity-scheduler.xml": _merged(capacity.defaults(), scheduling, capacity.of()),
        "mapred-site.xml": _merged(mapred_site.defaults(cluster), spec.mapreduce.settings, mapred_site.of(cluster)),
    }


def _merged(defaults: _Settings, user: _Settings | None, ours: _Settings) -> _Settings:
    return {**defaults, **open_settings(user), **ours}


def _xml(settings: _Settings) -> str:
    escape = saxutils.escape
    properties = (
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in sorted(settings.items())
    )
    return "\n".join(('<?xml version="1.0"?>', "<configuration>", *properties, "</configuration>", ""))


def user_ids(cluster: Cluster) -> tuple[int, int]:
    """Return user and group of the pods, which the files of users name."""
    template = cluster.spec.pod_template
    security = template.security_context if template else None
    return (security and security.run_as_user) or USER_ID, (security and security.run_as_group) or USER_ID


def _passwd(cluster: Cluster) -> str:
    """Hadoop does not start without a name for its user."""
    uid, gid = user_ids(cluster)
    return f"root:x:0:0:root:/root:/bin/sh\n{paths.USER}:x:{uid}:{gid}:{paths.USER}:/tmp:/bin/sh\n"


def _group(cluster: Cluster) -> str:
    return f"root:x:0:\n{paths.USER}:x:{user_ids(cluster)[1]}:\n"


def _digest(cluster: Cluster, files: Mapping[str, str]) -> str:
    """A default of `core.scratch` is not in it: clusters of versions without this field need not roll."""
    resources = [dataclasses.astuple(each) for each in (cluster.master, cluster.core, cluster.transient)]
    spec = cluster.spec
    pods = spec.model_dump(mode="json", include=set(_IN_PODS), exclude_none=True)
    core = spec.core.model_dump(mode="json", include={"scratch"}, exclude_defaults=True)
    parts = (files, cluster.image, resources, str(spec.transient.scratch), pods | core)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
