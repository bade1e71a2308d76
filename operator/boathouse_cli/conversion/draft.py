"""A job while it is made of something else; by default a SparkApp.

Beside the object there is what has no counterpart in it, the files of the user's machine that a submission takes along
in a ConfigMap, and keys and passwords, which are taken out: more people can read an object than the Secret that should
have them.
"""

import base64
import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from boathouse.resources import names
from boathouse.resources.crd import CustomResource
from boathouse.resources.sparkapp.status import SPARKAPP
from boathouse_cli.conversion import admission
from boathouse_cli.errors import UsageError

CARRIED_PATH: Final = "/mnt/submitted"
"""Where driver and executors have the files."""
CARRIED_VOLUME: Final = "submitted"
MAX_CARRIED_BYTES: Final = 900 * 1024
"""Of all files: a ConfigMap holds 1 MiB."""


class Carried:
    """The files that a submission takes along, by their names; the ConfigMap's name ends with the suffix."""

    def __init__(self, read: Callable[[str], bytes], suffix: str) -> None:
        self._read, self._suffix = read, suffix
        self._paths: dict[str, str] = {}
        self.files: dict[str, bytes] = {}

    def add(self, path: str, name: str = "") -> str:
        """Take a file along, by its path or `file:` URI; return its name in the ConfigMap, by default its own."""
        path = re.sub(r"^file:(//)?", "", path)
        name = name or posixpath.basename(path)
        if self._paths.get(name) == path:
            return name
        if name in self._paths:
            raise UsageError(f"{path} and {self._paths[name]} have the same name: rename one")
        if re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", name) is None:
            raise UsageError(f"{path}: rename it with letters, digits, -, _ and . only")
        try:
            content = self._read(path)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read on this machine ({error.strerror}): correct the path, or write local://PATH "
                "for a file of the image"
            ) from error
        total = len(content) + sum(map(len, self.files.values()))
        if total > MAX_CARRIED_BYTES:
            raise UsageError(
                f"{path}: local files of {total / 1024:.0f} KiB are too large to be taken along, at most "
                f"{MAX_CARRIED_BYTES // 1024} KiB are: put it into a store and name its URL, such as "
                f"s3a://BUCKET/{name}, or into the image and write local://PATH"
            )
        self.files[name], self._paths[name] = content, path
        return name

    def config_map_name(self, name: str) -> str:
        """Return the name of the ConfigMap of an object that has this name, or one that begins so."""
        return f"{name}-files-{self._suffix}"

    def manifest(self, name: str) -> dict[str, Any]:
        """Return the ConfigMap."""
        data: dict[str, dict[str, str]] = {"data": {}, "binaryData": {}}
        for key, content in self.files.items():
            try:
                data["data"][key] = content.decode()
            except UnicodeDecodeError:
                data["binaryData"][key] = base64.b64encode(content).decode()
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.config_map_name(name)}}
        return manifest | {"immutable": True} | {field: values for field, values in data.items() if values}


_USER: Final = re.compile(
    r"""(?P<scheme>\b[A-Za-z][-+.A-Za-z0-9]*://)(?:[^/?\#\s,'"@]*:[^/?\#\s,'"@]*@"""
    r"""|(?<=s3://)[^/?\#\s,'"@]*:[^?\#\s,'"@]*@|(?<=s3[an]://)[^/?\#\s,'"@]*:[^?\#\s,'"@]*@"""
    r"""|(?<=https://)[^/?\#\s,'"@]+@|(?<=http://)[^/?\#\s,'"@]+@)"""
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


DRIVER: Final = "driver"
EXECUTOR: Final = "executor"
ROLES: Final = (DRIVER, EXECUTOR)
_FIRST: Final = ("type", "mainApplicationFile", "mainClass", "clusterRef", "jar", "input", "output", "arguments")
"""The fields of a spec that people read first."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the object does not have, or has otherwise: the document or line, its field or option, and what to do."""

    source: str
    path: str
    advice: str

    @property
    def text(self) -> str:
        """The note in a line."""
        return f"{self.source}: {self.path}: {self.advice}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What became of one document or line; the last notes say why it has failed, or is no application."""

    manifest: dict[str, Any] | None
    notes: tuple[Note, ...]
    has_failed: bool = False
    would_fail: bool = False  # the operator or Spark would refuse the object


class Unconvertible(Exception):  # noqa: N818 - it is an answer
    """No object can be made of this; the arguments are those of a note."""

    def __init__(self, path: str, advice: str) -> None:
        super().__init__(f"{path}: {advice}")
        self.path, self.advice = path, advice


class Draft:
    """An object that is filled in, of a document or line; without `carried`, no files of this machine go along."""

    def __init__(self, source: str, resource: CustomResource = SPARKAPP, carried: Carried | None = None) -> None:
        self.source, self._resource, self.carried = source, resource, carried
        self.metadata: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.notes: list[Note] = []

    def note(self, path: str, advice: str) -> None:
        """Record what has no counterpart; the same note once, and without keys of a URL."""
        note = Note(source=self.source, path=hidden(path), advice=hidden(advice))
        if note not in self.notes:
            self.notes.append(note)

    def put(self, path: str, value: Any) -> None:
        """Set a field of the spec, such as `driver.memory`."""
        *parents, last = path.split(".")
        part = self.spec
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value

    def get(self, path: str) -> Any:
        """Return a field of the spec, None if it is absent."""
        part: Any = self.spec
        for name in path.split("."):
            part = part.get(name) if isinstance(part, dict) else None
        return part

    def merge(self, path: str, more: Mapping[str, Any]) -> None:
        """Add to a field that is a mapping."""
        if more:
            self.put(path, {**(self.get(path) or {}), **more})

    def extend(self, path: str, more: list[Any]) -> None:
        """Add to a field that is a list; an item with a known name replaces the former one."""
        taken = [item["name"] for item in more if isinstance(item, dict) and "name" in item]
        known = [
            item
            for item in self.get(path) or []
            if item not in more and not (isinstance(item, dict) and "name" in item and item["name"] in taken)
        ]
        if more:
            self.put(path, [*known, *more])

    def finish(self) -> Converted:
        """Return the object with what the operator would refuse of it, or what of it the API server would refuse."""
        self.spec = _without_users(self, self.spec, "spec")
        for path, name, value in _named(self.spec, "spec"):
            if is_secret(name) and value:
                self.note(path, "has a key that all who read the object can read: put it into a Secret, and name that")
        fields = admission.spec_schema(self._resource)["properties"]
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": self._resource.kind,
            "metadata": self.metadata,
            "spec": {field: self.spec[field] for field in dict.fromkeys([*_FIRST, *fields]) if field in self.spec},
        }
        refused = admission.problems(self._resource, manifest)
        later = [] if refused else admission.refusals(manifest)
        for path, message in (*refused, *later):
            self.note(path, message if ": " in message else f"{message}: correct it, and convert again")
        if refused:
            return self.refuse()
        return Converted(manifest=manifest, notes=tuple(self.notes), would_fail=bool(later))

    def refuse(self, why: Unconvertible | None = None) -> Converted:
        """Return that there is no SparkApp."""
        if why is not None:
            self.note(why.path, why.advice)
        return Converted(manifest=None, notes=tuple(self.notes), has_failed=True)


def _without_users(draft: Draft, value: Any, path: str) -> Any:
    """Return a part of the spec without users and passwords in URLs, and note them."""
    if isinstance(value, dict):
        return {key: _without_users(draft, part, f"{path}.{key}") for key, part in value.items()}
    if isinstance(value, list):
        return [_without_users(draft, part, f"{path}[{number}]") for number, part in enumerate(value)]
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
