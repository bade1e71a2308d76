"""The program of a SparkApp: its file, its arguments, and what it depends on."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from boathouse.resources.base import Model, rule, rules

ATOMIC: JsonDict = {"x-kubernetes-list-type": "atomic"}
SCHEMES = ("local", "file", "s3a", "s3", "https", "http", "hdfs", "gs", "abfss")
"""Spark's Hadoop resolves them: gs and abfss need their connectors in the image."""
MAX_ARGUMENTS_BYTES = 64 * 1024

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
        json_schema_extra=rules(
            rule(
                f"self.matches('^{_NAME}:{_NAME}:[-A-Za-z0-9_.+]+$')",
                "'\"' + self + '\" is not a package: write GROUP:ARTIFACT:VERSION'",
            )
        ),
    ),
]
Excluded = Annotated[
    str,
    Field(
        max_length=256,
        json_schema_extra=rules(
            rule(f"self.matches('^{_NAME}:{_NAME}$')", "'\"' + self + '\" is not an excluded package: GROUP:ARTIFACT'")
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

    jars: UriList | None = Field(default=None, description="Jars on the class path, as spark.jars.")
    py_files: UriList | None = Field(
        default=None, description="Python files and archives on PYTHONPATH, as spark.submit.pyFiles."
    )
    files: UriList | None = Field(default=None, description="Files in the working folder, as spark.files.")
    archives: UriList | None = Field(default=None, description="Unpacked in the working folder: URI or URI#NAME.")
    packages: Annotated[list[Package], Field(max_length=64, json_schema_extra=ATOMIC)] | None = Field(
        default=None, description="Maven coordinates that the driver resolves, as spark.jars.packages."
    )
    exclude_packages: Annotated[list[Excluded], Field(max_length=64, json_schema_extra=ATOMIC)] | None = Field(
        default=None, description="Dependencies of packages to leave out, as spark.jars.excludes."
    )
    repositories: Annotated[list[Repository], Field(max_length=16, json_schema_extra=ATOMIC)] | None = Field(
        default=None, description="Maven repositories beside the central one."
    )


Argument = Annotated[str, Field(max_length=4096)]
_arguments_rules = rules(
    rule(r"self.all(each, !each.matches('\\x00'))", "arguments have no NUL: remove it"),
    rule(
        f"self.map(each, bytes(each).size()).sum() <= {MAX_ARGUMENTS_BYTES}",
        f"arguments may have {MAX_ARGUMENTS_BYTES} bytes in all: put long texts into a file",
    ),
)


class Program(Model):
    """What runs."""

    type: Literal["Python", "Java", "Scala"] = Field(description="Language of the program.")
    main_application_file: Uri = Field(
        description="The Python file or the jar. local:// is in the image, file:// on a mounted volume."
    )
    main_class: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[A-Za-z_$][A-Za-z0-9_$.]*$")] | None = (
        Field(default=None, description="Of a Java or Scala application.")
    )
    arguments: (
        Annotated[list[Argument], Field(max_length=256, json_schema_extra={**ATOMIC, **_arguments_rules})] | None
    ) = Field(default=None, description="Arguments of the program.")
    deps: Dependencies | None = None


program_rules = (
    rule(
        "self.type == 'Python' || has(self.mainClass)",
        "spec.mainClass is missing: name the class of the jar that has the main method",
    ),
    rule("self.type != 'Python' || !has(self.mainClass)", "a Python application has no mainClass: remove it"),
)
