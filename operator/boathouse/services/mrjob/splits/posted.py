"""Decode and check a posted plan, which is untrusted input. Pure; runs outside the event loop.

A call of `msgspec` holds the GIL until it returns. The size of the JSON and its number of values are therefore checked
before it is decoded. With both at their limits, the longest call takes less than 0.2 s.
"""

import zlib
from typing import Final

import msgspec

from boathouse.resources.mrjob import spec
from boathouse.services.mrjob.splits import shards
from boathouse.services.mrjob.splits.shards import StoredPlan
from boathouse_task import contract

MAX_CONTAINERS: Final = 4 * spec.MAX_MAPS
"""Objects, and again arrays: a split is one object, its set of locations one array. URLs may hold such characters."""
MAX_VALUES: Final = 16 * spec.MAX_MAPS
"""Values, by the commas between them: a split has 6, its set of locations 3, and its URL may hold 7."""
_CHUNK_BYTES: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_BOUNDS: Final = ((b"{", MAX_CONTAINERS), (b"[", MAX_CONTAINERS), (b",", MAX_VALUES))


class TooLargeError(ValueError):
    """The plan exceeds the limits."""


def read(body: bytes, *, gzipped: bool) -> tuple[StoredPlan, int]:
    """Return the plan with its digest, compressed for the ConfigMaps, and the size of its JSON in bytes.

    Raises:
        TooLargeError: The plan has more bytes or values than a plan of `MAX_MAPS` splits needs.
        ValueError: The body is not a plan, or a number in it has more than 64 bits.
    """
    json = _inflated(body) if gzipped else body
    _check_size(json)
    try:
        plan = msgspec.json.decode(json, type=contract.Plan)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if fault := shards.fault(plan):
        raise ValueError(fault)
    size = len(json)
    del json  # it is encoded again from the plan, and must not be in memory twice
    return shards.encode(plan), size


def _inflated(body: bytes) -> bytearray:
    """Return the content of a gzip file, decompressed in pieces, so that a small body cannot expand without limit."""
    stream = zlib.decompressobj(_GZIP)
    json, rest = bytearray(), body
    try:
        while not stream.eof:
            piece = stream.decompress(rest, _CHUNK_BYTES)
            rest = stream.unconsumed_tail
            if not piece and not rest:
                raise ValueError("the compressed plan ends too early")
            json += piece
            if len(json) > contract.PLAN_MAX_BYTES:
                raise TooLargeError(f"its JSON has more than {contract.PLAN_MAX_BYTES} bytes")
    except zlib.error as error:
        raise ValueError(f"the body is not gzip: {error}") from error
    return json


def _check_size(json: bytes | bytearray) -> None:
    if len(json) > contract.PLAN_MAX_BYTES:
        raise TooLargeError(f"its JSON has more than {contract.PLAN_MAX_BYTES} bytes")
    for character, most in _BOUNDS:
        if json.count(character) > most:
            raise TooLargeError(f"its JSON has more than {most} times {character.decode()}")
