"""Volumes that driver and executors mount."""

from typing import Annotated

from pydantic import ConfigDict, Field

from boathouse.resources.base import DnsLabel, Model, ObjectName, Quantity, rule, rules
from boathouse.resources.sparkapp.program import Uri

_SOURCES = ("claimName", "configMapName", "secretName", "emptyDirSize")
TAKEN_FOLDERS = (
    *("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "tmp", "usr", "opt/spark", "opt/boathouse"),
    *("var/data/spark-local", "var/run"),
)
"""Where a volume may not be mounted, and what is below."""


class Volume(Model):
    """A volume in all pods of the application."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"[{', '.join(f'has(self.{source})' for source in _SOURCES)}].filter(given, given).size() == 1",
                f"'volume ' + self.name + ': set exactly one of {', '.join(_SOURCES)}'",
            ),
            rule(
                "!self.name.startsWith('boathouse-') && !self.name.startsWith('spark-')",
                "names of volumes that begin with boathouse- or spark- are taken: choose another",
            ),
        )
    )
    name: DnsLabel = Field(description="Name of the volume in the pods.")
    mount_path: str = Field(
        max_length=256,
        pattern=r"^(/[-._a-zA-Z0-9]+)+$",
        description="Mount path in driver and executors.",
        json_schema_extra=rules(
            rule(
                f"!{list(TAKEN_FOLDERS)}.exists(taken, self == '/' + taken || self.startsWith('/' + taken + '/'))",
                "'\"' + self + '\" is taken in the pods of an application: mount the volume at a folder of its own'",
            ),
            rule("!self.contains('/.')", "write the path without folders that begin with a dot"),
        ),
    )
    read_only: bool = Field(default=False, description="Whether pods cannot write to it.")
    claim_name: ObjectName | None = Field(
        default=None, description="A PersistentVolumeClaim, ReadWriteMany if pods may run on several nodes."
    )
    config_map_name: ObjectName | None = Field(default=None, description="A ConfigMap, with a file for each key.")
    secret_name: ObjectName | None = Field(default=None, description="A Secret, with a file for each key.")
    empty_dir_size: Quantity | None = Field(default=None, description="An empty folder of at most this size.")


Volumes = Annotated[
    list[Volume],
    Field(
        max_length=16,
        description="Volumes in all pods of the application.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules(
                rule(
                    "self.all(v, self.exists_one(other, other.mountPath == v.mountPath))",
                    "two volumes have the same mountPath: give each its own",
                )
            ),
        },
    ),
]

_MOUNTS = (
    "((has(self.storage) && has(self.storage.volume) ? [self.storage.volume.mountPath] : []) + "
    "(has(self.volumes) ? self.volumes.map(v, v.mountPath) : []))"
)


def _is_mounted(uri: str) -> str:
    return f"!{uri}.startsWith('file:') || {_MOUNTS}.exists(mount, {uri}.startsWith('file://' + mount + '/'))"


def _rule(holds: str, field: str) -> dict[str, str]:
    return rule(
        holds,
        f"spec.{field}: file:// is for files on a mounted volume: set spec.storage.volume or spec.volumes, and begin "
        "the path with its mountPath; what is in the image is local://",
    )


file_rules = (
    _rule(_is_mounted("self.mainApplicationFile"), "mainApplicationFile"),
    *(
        _rule(
            f"!has(self.deps) || !has(self.deps.{field}) || self.deps.{field}.all(uri, {_is_mounted('uri')})",
            f"deps.{field}",
        )
        for field in ("jars", "pyFiles", "files", "archives")
    ),
    _rule(
        f"!has(self.monitoring) || !has(self.monitoring.eventLogDir) || {_is_mounted('self.monitoring.eventLogDir')}",
        "monitoring.eventLogDir",
    ),
)


class Monitoring(Model):
    """Monitoring of the application."""

    prometheus: bool = Field(
        default=False,
        description="Serve the metrics of driver and executors at the driver's UI port, with annotations for scraping.",
    )
    event_log_dir: Uri | None = Field(
        default=None, description="Write event logs there, for Spark's history server. Absent: none."
    )


class UserInterface(Model):
    """Spark's web UI."""

    service: bool = Field(default=True, description="Create a Service for the UI of the driver that runs.")
