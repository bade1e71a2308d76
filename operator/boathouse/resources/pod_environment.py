"""What the containers of pods get: environment variables from values, Secrets and ConfigMaps, and access to storage."""

import re
from collections.abc import Collection
from typing import Annotated, Any, Final

from pydantic import Field

from boathouse.resources import base

MAX_ENV_BYTES = 128 * 1024
_READ_BY_KUBERNETES: Final = re.compile(r"\$(?=[$(])")


def literal(text: str) -> str:
    """Return a text that Kubernetes expands to the given one, in a command, an argument or a variable.

    It reads `$(NAME)` as a reference and `$$` as a dollar sign; any other `$` stays.
    """
    return _READ_BY_KUBERNETES.sub("$$", text)


class KeyRef(base.Model):
    """A key of a ConfigMap or a Secret in the job's namespace."""

    name: base.ObjectName = Field(description="Name of the ConfigMap or Secret.")
    key: base.Key = Field(description="Key whose value is used.")


class EnvVarSource(base.Model):
    """Source of an environment variable's value."""

    model_config = base.checked(
        base.rule(
            "has(self.secretKeyRef) != has(self.configMapKeyRef)", "set exactly one of secretKeyRef and configMapKeyRef"
        )
    )
    secret_key_ref: KeyRef | None = base.optional("A key of a Secret in the object's namespace.")
    config_map_key_ref: KeyRef | None = base.optional("A key of a ConfigMap in the object's namespace.")


class EnvVar(base.Model):
    """An environment variable of the user's commands."""

    model_config = base.checked(
        base.rule(
            "!(has(self.value) && has(self.valueFrom))", "'env ' + self.name + ': set value or valueFrom, not both'"
        ),
        base.rule(
            "!self.name.startsWith('BOATHOUSE_')",
            "'env ' + self.name + ': names that begin with BOATHOUSE_ belong to the task runtime; choose another'",
        ),
    )
    name: str = Field(
        min_length=1, max_length=128, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", description="Name of the variable."
    )
    value: str | None = base.optional(
        "The value. As in any pod, $(NAME) is the value of an earlier variable, and $$ a dollar sign. "
        "Absent, without valueFrom: the empty text.",
        max_length=8192,
    )
    value_from: EnvVarSource | None = base.optional("Where the value comes from, instead of value.")


Environment = Annotated[
    list[EnvVar],
    Field(
        max_length=128,
        json_schema_extra={
            **base.map_list("name"),
            **base.rules(
                base.at_most_bytes("self.map(e, bytes(e.name + (has(e.value) ? e.value : '')))", MAX_ENV_BYTES, "env")
            ),
        },
    ),
]
S3_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Keys of the Secret of an S3 endpoint, and the variables that have their values in pods."""
S3_TOKEN: Final = "AWS_SESSION_TOKEN"  # noqa: S105 - its name
"""Optional key of the Secret, and variable: the token of temporary keys."""


class SecretRef(base.Model):
    """A Secret in the job's namespace."""

    name: base.ObjectName = Field(description="Name of the Secret.")


class S3(base.Model):
    """An S3 endpoint, which must support conditional writes (If-None-Match: *)."""

    endpoint_url: str | None = Field(
        default=None,
        alias="endpointURL",
        max_length=1024,
        description="Absent: the endpoint of AWS for the region.",
        json_schema_extra=base.holds(
            "self.startsWith('http://') || self.startsWith('https://')",
            "'\"' + self + '\" must begin with http:// or https://'",
        ),
    )
    region: str = Field(default="us-east-1", min_length=1, max_length=64, description="Region of the buckets.")
    secret_ref: SecretRef | None = base.optional(
        "Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary keys, AWS_SESSION_TOKEN. "
        "Absent: requests are unsigned."
    )

    def variables(self, given: Collection[str]) -> list[dict[str, Any]]:
        """Return the variables with the Secret's keys, and its token unless the user has `given` that variable."""
        if self.secret_ref is None:
            return []
        keys: list[dict[str, Any]] = [{"key": key} for key in S3_KEYS]
        if S3_TOKEN not in given:
            keys.append({"key": S3_TOKEN, "optional": True})
        source = {"name": self.secret_ref.name}
        return [{"name": key["key"], "valueFrom": {"secretKeyRef": source | key}} for key in keys]


class StorageVolume(base.Model):
    """A volume that all tasks mount, for file:/// URLs."""

    claim_name: base.ObjectName = Field(
        description="A PersistentVolumeClaim in the job's namespace, ReadWriteMany if tasks may run on several nodes."
    )
    mount_path: str = Field(
        default="/data",
        max_length=256,
        pattern=r"^(/[-._a-zA-Z0-9]+)+$",
        description="Mount path in tasks: file:///data/books is the folder books of the volume.",
        json_schema_extra=base.rules(
            base.rule(
                "!['work', 'tmp', 'files', 'var', 'dev', 'proc', 'sys', 'etc', 'usr', 'bin', 'lib', 'lib64', 'opt']"
                ".exists(taken, self == '/' + taken || self.startsWith('/' + taken + '/'))",
                "'\"' + self + '\" is taken in task pods: mount the volume at a folder of its own, such as /data'",
            ),
            base.rule("!self.contains('/.')", "write the path without folders that begin with a dot"),
        ),
    )


class Storage(base.Model):
    """Storage of the job's URLs."""

    s3: S3 | None = None
    volume: StorageVolume | None = None
