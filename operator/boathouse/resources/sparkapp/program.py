"""The program of a SparkApp: its file, its arguments, what it depends on, and the volumes that its pods mount."""

from typing import Annotated, Literal

from pydantic import Field

from boathouse.resources import base
from boathouse.resources.base import ATOMIC, Model, ObjectName, checked, holds, optional, rule, rules

SCHEMES = ("local", "file", "s3a", "s3", "https", "http", "hdfs", "gs", "abfss")
"""Spark's Hadoop resolves them: gs and abfss need their connectors in the image."""

_URI = rule(
    f"self.matches('^({'|'.join(SCHEMES)})://[^, ]+$')",
    f"'\"' + self + '\" is not a URI that a driver can load: begin it with {', '.join(f'{s}://' for s in SCHEMES)}, "
    "without commas and spaces'",
)
_LOCAL = rule(
    "!self.matches('^(local|file):') || self.matches('^(local|file):///[^/]')",
    "'\"' + self + '\" has no absolute path: write three slashes, as in local:///opt/app/main.py'",
)
_PRINTABLE = rule(r"!self.matches('[\\x00-\\x1f\\x7f]')", "a URI has no control characters: remove them")
Uri = Annotated[str, Field(min_length=1, max_length=1024, json_schema_extra=rules(_URI, _LOCAL, _PRINTABLE))]
UriList = Annotated[list[Uri], Field(max_length=64, json_schema_extra=ATOMIC)]
_NAME = "[-A-Za-z0-9_.]+"
Package = Annotated[
    str,
    Field(
        max_length=256,
        json_schema_extra=holds(
            f"self.matches('^{_NAME}:{_NAME}:[-A-Za-z0-9_.+]+$')",
            "'\"' + self + '\" is not a package: write GROUP:ARTIFACT:VERSION'",
        ),
    ),
]
Excluded = Annotated[
    str,
    Field(
        max_length=256,
        json_schema_extra=holds(
            f"self.matches('^{_NAME}:{_NAME}$')", "'\"' + self + '\" is not an excluded package: GROUP:ARTIFACT'"
        ),
    ),
]
Repository = Annotated[
    str,
    Field(
        max_length=1024,
        json_schema_extra=rules(
            rule(
                "self.matches('^https?://[^, ]+$')",
                "'\"' + self + '\" is not a repository: begin it with https://, without commas and spaces'",
            ),
            _PRINTABLE,
        ),
    ),
]


class Dependencies(Model):
    """Dependencies of the program; the driver loads them, never the operator."""

    jars: UriList | None = optional("Jars on the class path, as spark.jars.")
    py_files: UriList | None = optional("Python files and archives on PYTHONPATH, as spark.submit.pyFiles.")
    files: UriList | None = optional("Files in the working folder, as spark.files.")
    archives: UriList | None = optional("Unpacked in the working folder: URI or URI#NAME.")
    packages: Annotated[list[Package], Field(max_length=64, json_schema_extra=ATOMIC)] | None = optional(
        "Maven coordinates that the driver resolves, as spark.jars.packages."
    )
    exclude_packages: Annotated[list[Excluded], Field(max_length=64, json_schema_extra=ATOMIC)] | None = optional(
        "Dependencies of packages to leave out, as spark.jars.excludes."
    )
    repositories: Annotated[list[Repository], Field(max_length=16, json_schema_extra=ATOMIC)] | None = optional(
        "Maven repositories beside the central one."
    )


Argument = Annotated[str, Field(max_length=4096)]


class Program(Model):
    """What runs."""

    type: Literal["Python", "Java", "Scala"] = Field(description="Language of the program.")
    main_application_file: Uri = Field(
        description="The Python file or the jar. local:// is in the image, file:// on a mounted volume."
    )
    main_class: base.MainClass | None = optional("Of a Java or Scala application.")
    arguments: Annotated[list[Argument], Field(max_length=256, json_schema_extra=base.arguments("in all"))] | None = (
        optional("Arguments of the program.")
    )
    deps: Dependencies | None = None


program_rules = (
    rule(
        "self.type == 'Python' || has(self.mainClass)",
        "spec.mainClass is missing: name the class of the jar that has the main method",
    ),
    rule("self.type != 'Python' || !has(self.mainClass)", "a Python application has no mainClass: remove it"),
)

_SOURCES = ("claimName", "configMapName", "secretName", "emptyDirSize")
TAKEN_FOLDERS = (
    *("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "tmp", "usr", "opt/spark", "opt/boathouse"),
    *("var/data/spark-local", "var/run"),
)
"""Where a volume may not be mounted, and what is below."""


class Volume(Model):
    """A volume in all pods of the application."""

    model_config = checked(
        rule(
            f"[{', '.join(f'has(self.{source})' for source in _SOURCES)}].filter(given, given).size() == 1",
            f"'volume ' + self.name + ': set exactly one of {', '.join(_SOURCES)}'",
        ),
        rule(
            "!self.name.startsWith('boathouse-') && !self.name.startsWith('spark-')",
            "names of volumes that begin with boathouse- or spark- are taken: choose another",
        ),
    )
    name: base.DnsLabel = Field(description="Name of the volume in the pods.")
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
    claim_name: ObjectName | None = optional("A PersistentVolumeClaim, ReadWriteMany if pods may run on several nodes.")
    config_map_name: ObjectName | None = optional("A ConfigMap, with a file for each key.")
    secret_name: ObjectName | None = optional("A Secret, with a file for each key.")
    empty_dir_size: base.Quantity | None = optional("An empty folder of at most this size.")


Volumes = Annotated[
    list[Volume],
    Field(
        max_length=16,
        description="Volumes in all pods of the application.",
        json_schema_extra={
            **base.map_list("name"),
            **holds(
                "self.all(v, self.exists_one(other, other.mountPath == v.mountPath))",
                "two volumes have the same mountPath: give each its own",
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
    event_log_dir: Uri | None = optional("Write event logs there, for Spark's history server. Absent: none.")


class UserInterface(Model):
    """Spark's web UI."""

    service: bool = Field(default=True, description="Create a Service for the UI of the driver that runs.")
