"""Keys and passwords in what is converted: more people can read an object than the Secret that should have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_cli.conversion.draft import Draft

_USER: Final = re.compile(
    r"""(?P<scheme>\b[A-Za-z][-+.A-Za-z0-9]*://)(?:[^/?\#\s,'"@]*:[^/?\#\s,'"@]*@"""
    r"""|(?<=s3://)[^/?\#\s,'"@]*:[^?\#\s,'"@]*@|(?<=s3[an]://)[^/?\#\s,'"@]*:[^?\#\s,'"@]*@"""
    r"""|(?<=https://)[^/?\#\s,'"@]+@|(?<=http://)[^/?\#\s,'"@]+@)""",
)
"""A user with a password before the host of a URL, or a token; keys of S3 may have slashes."""
_SIGNED: Final = re.compile(
    r"(?P<key>[?&](?:X-Amz-(?:Signature|Credential|Security-Token)|AWSAccessKeyId|Signature|sig|access_token|token"
    r"|password|secret)=)[^&#\s,'\"]+",
    re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(
    r"(?:^|[._-])(?:secret[._-]?(?:access[._-]?)?key|access[._-]?key(?:[._-]?id)?|secret|pass(?:word|wd|phrase)?"
    r"|session[._-]?token|api[._-]?key|(?:auth|access)[._-]?token|account[._-]key(?:[._-].*)?|private[._-]?key"
    r"|awsAccessKeyId|awsSecretAccessKey)$",
    re.IGNORECASE,
)
_HIDDEN: Final = "***"


def hidden(text: str) -> str:
    """Return a text for messages, without keys in its URLs."""
    return _SIGNED.sub(rf"\g<key>{_HIDDEN}", _USER.sub(rf"\g<scheme>{_HIDDEN}@", text))


def is_secret(name: str) -> bool:
    """Return whether a property or variable of this name has a key or a password."""
    return _SECRET_NAME.search(name) is not None


def take_out(draft: Draft) -> None:
    """Remove users and passwords from all URLs of the object, and note them and what else has a key in the clear."""
    draft.spec = _without_users(draft, draft.spec, "spec")
    for path, name, value in _named(draft.spec, "spec"):
        if is_secret(name) and value:
            draft.note(path, "has a key that all who read the object can read: put it into a Secret, and name that")


def _without_users(draft: Draft, value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _without_users(draft, each, f"{path}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_without_users(draft, each, f"{path}[{number}]") for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value
    found = _USER.sub(r"\g<scheme>", value)
    if found != value:
        draft.note(path, f"the user and the key in {hidden(value)} are left out: put them into a Secret")
    elif hidden(value) != value:
        draft.note(path, "has a signature that all who read the object can read: name the file without it")
    return found


def _named(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield variables and properties with their paths, names and values."""
    if not isinstance(value, dict):
        return
    for variable in value.get("env") or ():
        yield f"{path}.env.{variable['name']}", variable["name"], variable.get("value") or ""
    for field in ("sparkConf", "hadoopConf", "conf", "settings"):
        for key, text in (value.get(field) or {}).items():
            yield f'{path}.{field}["{key}"]', key, text
    for part in ("driver", "executor", "hadoop"):
        yield from _named(value.get(part), f"{path}.{part}")
