"""Environment variables of the containers, from literal values, Secrets and ConfigMaps."""

import re
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from boathouse.resources.base import Key, Model, ObjectName, at_most_bytes, rule, rules

MAX_ENV_BYTES = 128 * 1024
_READ_BY_KUBERNETES: Final = re.compile(r"\$(?=[$(])")


def literal(text: str) -> str:
    """Return a text that Kubernetes expands to the given one, in a command, an argument or a variable.

    It reads `$(NAME)` as a reference and `$$` as a dollar sign; any other `$` stays.
    """
    return _READ_BY_KUBERNETES.sub("$$", text)


class KeyRef(Model):
    """A key of a ConfigMap or a Secret in the job's namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap or Secret.")
    key: Key = Field(description="Key whose value is used.")


class EnvVarSource(Model):
    """Source of an environment variable's value."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.secretKeyRef) != has(self.configMapKeyRef)",
                "set exactly one of secretKeyRef and configMapKeyRef",
            )
        )
    )
    secret_key_ref: KeyRef | None = Field(default=None, description="A key of a Secret in the object's namespace.")
    config_map_key_ref: KeyRef | None = Field(
        default=None, description="A key of a ConfigMap in the object's namespace."
    )


class EnvVar(Model):
    """An environment variable of the user's commands."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(has(self.value) && has(self.valueFrom))", "'env ' + self.name + ': set value or valueFrom, not both'"
            ),
            rule(
                "!self.name.startsWith('BOATHOUSE_')",
                "'env ' + self.name + ': names that begin with BOATHOUSE_ belong to the task runtime; choose another'",
            ),
        )
    )
    name: str = Field(
        min_length=1, max_length=128, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", description="Name of the variable."
    )
    value: str | None = Field(
        default=None,
        max_length=8192,
        description="The value. As in any pod, $(NAME) is the value of an earlier variable, and $$ a dollar sign. "
        "Absent, without valueFrom: the empty text.",
    )
    value_from: EnvVarSource | None = Field(default=None, description="Where the value comes from, instead of value.")


Environment = Annotated[
    list[EnvVar],
    Field(
        max_length=128,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules(at_most_bytes("self.map(e, bytes(e.name + (has(e.value) ? e.value : '')))", MAX_ENV_BYTES, "env")),
        },
    ),
]
"""The variables of a container."""
