"""Save the estimates of the scheduling profile in a bounded ConfigMap in the operator's namespace.

The operator writes it at intervals and reads it once, when it becomes the leader. It drops a part that is malformed,
which then starts without estimates. It writes back the parts of other profiles unread, so a change of the profile keeps
what was learned. Only the operator should write the ConfigMap, but its content is checked: no content ends the process
or exceeds the memory limits below.
"""

import asyncio
import base64
import contextlib
import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from boathouse import failpoints
from boathouse.cluster import client, errors, wire
from boathouse.services import own_objects
from boathouse.telemetry import logs, metrics

_log = logs.get(__name__)

NAME: Final = "boathouse-learned"
KEY: Final = "state.json.gz"
EVERY_S: Final = 60.0
LAST_S: Final = 1.0  # timeout of the last save of a leader that stops
MAX_BYTES: Final = 512 * 1024  # maximum compressed size; etcd's limit is about twice the size after base64
MAX_PLAIN_BYTES: Final = 16 * 1024 * 1024  # maximum decompressed size
MAX_VALUES: Final = 500_000  # maximum numbers, texts, lists and objects of one part
MAX_UNREAD: Final = 32  # maximum parts of other profiles
MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024  # maximum decompressed size of the parts of other profiles together
_MAX_TEXT: Final = 1024
_LARGEST: Final = 1e200
_GZIP: Final = 16 + zlib.MAX_WBITS
_MALFORMED: Final = (KeyError, ValueError, zlib.error, msgspec.MsgspecError, RecursionError)


class Part(Protocol):
    """An object with state to save: an observer, the learner."""

    def dump(self) -> Mapping[str, Any]:
        """Return the state as JSON values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Replace the state by that of a dump."""


def key(part: object) -> str:
    """Return the name under which an observer is saved: its package in the policies and its class, in all profiles."""
    return f"{type(part).__module__.split('.')[1]}/{type(part).__name__}"


class SavedState:
    """Saves and loads the state of parts, whose names never change. `may_lead` is called before every write."""

    def __init__(
        self, api: client.ApiClient, namespace: str, parts: Mapping[str, Part], may_lead: Callable[[], bool]
    ) -> None:
        self._api, self._namespace, self._parts, self._may_lead = api, namespace, parts, may_lead
        self._dumps: dict[str, msgspec.Raw] = {}
        self._unread: dict[str, msgspec.Raw] = {}
        self._written, self._was_read = b"", False

    async def load(self) -> None:
        """Load the state that a previous leader saved; raises `errors.ClusterError` if the request failed."""
        config_map: wire.Manifest | None = None
        with contextlib.suppress(errors.NotFound):
            config_map = await self._api.get(own_objects.CONFIG_MAPS, NAME, self._namespace)
        self._was_read = True
        try:
            state = _unpacked((config_map.get("binaryData") or {})[KEY]) if config_map is not None else {}
        except _MALFORMED as error:
            _log.warning("cannot read the saved estimates; starting without them", config_map=NAME, error=str(error))
            return
        for name, part in self._parts.items():
            if name in state and _load_part(name, part, state[name]):
                self._dumps[name] = state[name].copy()
        self._unread = _newest({name: raw for name, raw in state.items() if name not in self._parts})

    async def save(self) -> None:
        """Save the state if it has changed; raises `errors.ClusterError`. A part that fails keeps its last dump."""
        for name, part in self._parts.items():
            try:
                self._dumps[name] = msgspec.Raw(msgspec.json.encode(part.dump()))
            except Exception:  # noqa: BLE001 - the fault of a part costs that part only
                _log.exception("cannot save the estimates of a part", part=name)
        plain = self._plain()
        if plain == self._written or not self._may_lead():
            return
        while len(packed := gzip.compress(plain, compresslevel=6, mtime=0)) > MAX_BYTES:
            if self._unread:
                dropped = next(iter(self._unread))
                _log.warning("dropped the saved estimates of another profile: all together are too large", part=dropped)
                del self._unread[dropped]
            else:
                largest = max(self._dumps, key=lambda name: len(bytes(self._dumps[name])))
                _log.warning("dropped the estimates of a part: all together are too large", part=largest)
                del self._dumps[largest]
            plain = self._plain()
        if plain == self._written:
            return
        with failpoints.around("learned.write"):
            binary = {"binaryData": {KEY: base64.b64encode(packed).decode()}}
            await own_objects.write_config_map(self._api, NAME, self._namespace, binary)
        self._written = plain

    async def save_last(self) -> None:
        """Save the state of a leader that stops in order, unless it has not read what earlier leaders saved."""
        if not self._was_read:
            return
        try:
            async with asyncio.timeout(LAST_S):
                await self.save()
        except (errors.ClusterError, TimeoutError) as error:
            _log.warning("what was learned since the last save is lost", error=str(error) or "no answer in time")

    def _plain(self) -> bytes:
        """Return all parts as JSON, those of other profiles first: the order of a ConfigMap's parts is by age."""
        return msgspec.json.encode(self._unread | self._dumps)

    def sizes(self) -> metrics.Reading:
        """Return the bytes of each part in the last save, and of those of other profiles together."""
        sizes: dict[tuple[str, ...], float] = {(name,): len(bytes(raw)) for name, raw in self._dumps.items()}
        return sizes | {("other",): sum(len(bytes(raw)) for raw in self._unread.values())}


def _unpacked(text: str) -> dict[str, msgspec.Raw]:
    """Return the dumps by the names of their parts, not yet decoded. Raises one of `_MALFORMED`."""
    inflate = zlib.decompressobj(_GZIP)
    plain = inflate.decompress(base64.b64decode(text), MAX_PLAIN_BYTES)
    if not inflate.eof:
        raise ValueError(f"it is truncated, or has more than {MAX_PLAIN_BYTES} bytes")
    return msgspec.json.decode(plain, type=dict[str, msgspec.Raw])


def _newest(parts: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """Return the last parts that are within the limits, without empty ones, as copies that hold no larger text."""
    kept: dict[str, msgspec.Raw] = {}
    left = MAX_UNREAD_BYTES
    for name, raw in reversed(parts.items()):
        size = len(bytes(raw))
        if size > left or len(kept) == MAX_UNREAD:
            _log.warning("dropped the saved estimates of another profile", part=name[:_MAX_TEXT], size_bytes=size)
        elif bytes(raw) != b"{}" and len(name) <= _MAX_TEXT:
            kept[name] = raw.copy()
            left -= size
    return dict(reversed(kept.items()))


def _load_part(name: str, part: Part, raw: msgspec.Raw) -> bool:
    """Load a part from its dump; returns whether it accepts the dump. Otherwise its state does not change."""
    before = part.dump()
    try:
        state = msgspec.json.decode(raw)
        _check(state)
        if state:
            part.load(state)
    except Exception as error:  # noqa: BLE001 - whatever a dump makes a part do, it costs that part's learning only
        _log.warning("cannot use the saved estimates; starting without them", part=name, error=str(error))
        part.load(before)
        return False
    _log.info("loaded the saved estimates", part=name)
    return True


def _check(state: object) -> None:
    """Raise ValueError unless the dump is an object whose values are few, short and finite."""
    if not isinstance(state, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - a malformed dump, like any other invalid value
    todo: list[object] = [state]
    count = 0
    while todo:
        value, count = todo.pop(), count + 1
        if isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            todo += value
        too_large = isinstance(value, int | float) and not abs(value) <= _LARGEST
        too_long = isinstance(value, str) and len(value) > _MAX_TEXT
        if too_large or too_long or count > MAX_VALUES or len(todo) > MAX_VALUES:
            raise ValueError("it has too many values, a text that is too long, or an invalid number")
