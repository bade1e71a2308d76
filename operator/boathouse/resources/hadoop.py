"""Settings of Hadoop in a spec, for clusters and for jobs on them."""

import re
from typing import Annotated, Final

from pydantic import Field

from boathouse.resources.base import rule, rules

MAX_SETTINGS: Final = 256
MAX_VALUE: Final = 4096

_KEY: Final = "[A-Za-z0-9._-]{1,256}"
_KEYS = rule(
    f"self.all(key, key.matches('^{_KEY}$'))",
    "a setting's name has 1 to 256 letters, digits, dots, dashes and underscores",
)
_VALUES = rule(
    r"self.all(key, !self[key].matches('[\\x00-\\x1f\\x7f\\x{fffe}\\x{ffff}]'))",
    "values of settings have no control characters: remove them",
)
Settings = Annotated[
    dict[str, Annotated[str, Field(max_length=MAX_VALUE)]],
    Field(max_length=MAX_SETTINGS, json_schema_extra=rules(_KEYS, _VALUES)),
]
"""Settings of Hadoop; those that Boathouse sets are ignored, and a condition names them."""


def is_setting(key: str, value: str) -> bool:
    """Return whether Hadoop can be given a setting: the rules of `Settings`."""
    return bool(re.fullmatch(_KEY, key)) and not re.search("[\x00-\x1f\x7f\ufffe\uffff]", value)
