"""A split plan as data: posted, which is untrusted input, and in ConfigMaps. Pure.

A posted plan is decoded and checked outside of the event loop. A call of `msgspec` holds the GIL until it returns. The
size of the JSON and its number of values are therefore checked before it is decoded. With both at their limits, the
longest call takes less than 0.2 s.

ConfigMaps have the gzip of the accepted plan's JSON, cut into shards; they are immutable and owned by the job. The
first shard has the number of shards and the plan's digest, so that no LIST is needed.
"""

import base64
import dataclasses
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names, spec, status as mrjob_status
from boathouse.services.frame import manifests
from boathouse.services.mrjob.model import MRJOBS, Job
from boathouse_task import contract

SHARD_BYTES = 180 * 1024  # with a third more for base64, each ConfigMap has less than 256 KiB
_SHARD_CHARS = -(-SHARD_BYTES // 3) * 4
MAX_HOSTS = 16  # in a set of locations, each of which is looked up for each map; the runtime sends 3
KEY = "plan.json.gz"
KIND = "plan"
MAX_URL = 16 * 1024  # characters of a split's URL, which becomes a variable and an annotation of its pod
_NUMBER = re.compile("[0-9]{1,9}")
MAX_CONTAINERS: Final = 4 * spec.MAX_MAPS
"""Objects, and again arrays: a split is one object, its set of locations one array. URLs may hold such characters."""
MAX_VALUES: Final = 16 * spec.MAX_MAPS
"""Values, by the commas between them: a split has 6, its set of locations 3, and its URL may hold 7."""
_CHUNK_BYTES: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_BOUNDS: Final = ((b"{", MAX_CONTAINERS), (b"[", MAX_CONTAINERS), (b",", MAX_VALUES))


@dataclasses.dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan with its digest and its compressed shards. Compression takes tenths of a second."""

    plan: contract.Plan
    digest: str
    pieces: tuple[bytes, ...]
    json_bytes: int

    @property
    def status_entry(self) -> mrjob_status.PlanStatus:
        """Entry of the accepted plan in the status."""
        return mrjob_status.PlanStatus(
            splits=len(self.plan.splits), digest=self.digest, bytes=self.plan.bytes_total, shards=len(self.pieces)
        )


def encode(plan: contract.Plan) -> StoredPlan:
    """Return the plan with its digest and its shards."""
    json = msgspec.json.encode(plan)
    blob = gzip.compress(json, compresslevel=6, mtime=0)
    pieces = tuple(blob[start : start + SHARD_BYTES] for start in range(0, len(blob), SHARD_BYTES))
    return StoredPlan(plan, hashlib.sha256(json).hexdigest(), pieces, len(json))


def fault(plan: contract.Plan) -> str:
    """Return the error in an untrusted plan, or an empty text."""
    if any(len(hosts) > MAX_HOSTS for hosts in plan.location_sets):
        return f"a set of locations has more than {MAX_HOSTS} hosts"
    numbers = [plan.bytes_total]
    for split in plan.splits:
        numbers += (split.offset_bytes, split.length_bytes, split.size_bytes, split.combined)
        if len(split.url) > MAX_URL:
            return f"a split's URL has more than {MAX_URL} characters"
        if split.locations >= len(plan.location_sets):
            return f"a split names the set of locations {split.locations}, of {len(plan.location_sets)}"
    is_valid = min(numbers) >= 0 and max(numbers) <= contract.MAX_AMOUNT
    return "" if is_valid else "a number is negative or has more than 64 bits"


def shard_name(job: Job, step: int, index: int) -> str:
    """Return the name of a shard's ConfigMap, `JOB-UID8-s0-plan-000`."""
    return manifests.derived_name(job.name, job.uid, f"s{step}-plan-{index:03d}")


def config_maps(job: Job, step: int, stored: StoredPlan) -> list[dict[str, Any]]:
    """Return the manifests of the plan's ConfigMaps."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": shard_name(job, step, index),
                "namespace": job.namespace,
                "labels": {names.APP_MANAGED_BY: names.MANAGER, names.LABEL_JOB_UID: job.uid, names.LABEL_KIND: KIND},
                "annotations": {
                    mrjob_names.ANNOTATION_PLAN_DIGEST: stored.digest,
                    mrjob_names.ANNOTATION_PLAN_SHARDS: str(len(stored.pieces)),
                },
                "ownerReferences": [manifests.owner_reference(MRJOBS, job)],
            },
            "immutable": True,
            "binaryData": {KEY: base64.b64encode(piece).decode()},
        }
        for index, piece in enumerate(stored.pieces)
    ]


def same(manifest: Mapping[str, Any], existing: Mapping[str, Any]) -> bool:
    """Return whether an existing ConfigMap equals the shard."""
    return (
        digest_of(existing) == digest_of(manifest)
        and existing.get("binaryData") == manifest["binaryData"]
        and existing.get("immutable") is True
        and [owner["uid"] for owner in existing["metadata"].get("ownerReferences", ())]
        == [owner["uid"] for owner in manifest["metadata"]["ownerReferences"]]
    )


def digest_of(config_map: Mapping[str, Any]) -> str | None:
    """Return the digest of the plan that a shard belongs to."""
    value: str | None = (config_map["metadata"].get("annotations") or {}).get(mrjob_names.ANNOTATION_PLAN_DIGEST)
    return value


def count_of(first: Mapping[str, Any]) -> int:
    """Return the number of shards in the first shard; 0 if it is absent or larger than the largest plan needs."""
    text = (first["metadata"].get("annotations") or {}).get(mrjob_names.ANNOTATION_PLAN_SHARDS, "")
    count = int(text) if _NUMBER.fullmatch(text) else 0
    return count if count <= contract.PLAN_MAX_BYTES // SHARD_BYTES + 1 else 0


def piece(config_map: Mapping[str, Any], job: Job, digest: str) -> bytes | None:
    """Return the content of a shard; None unless it is immutable, owned by the job, of this plan and of valid size."""
    owners = [owner.get("uid") for owner in config_map["metadata"].get("ownerReferences") or ()]
    text = (config_map.get("binaryData") or {}).get(KEY, "")
    ours = job.uid in owners and config_map.get("immutable") is True and digest_of(config_map) == digest
    return base64.b64decode(text) if ours and 0 < len(text) <= _SHARD_CHARS else None


def read_stored(pieces: Iterable[bytes], digest: str) -> StoredPlan | None:
    """Return the plan of the shards' contents; None if it is invalid or has another digest."""
    try:
        stored, _ = read_posted(b"".join(pieces), gzipped=True)
    except ValueError:
        return None
    return stored if stored.digest == digest and len(stored.plan.splits) <= spec.MAX_MAPS else None


class TooLargeError(ValueError):
    """The plan exceeds the limits."""


def read_posted(body: bytes, *, gzipped: bool) -> tuple[StoredPlan, int]:
    """Return the plan with its digest, compressed for the ConfigMaps, and the size of its JSON in bytes.

    Raises:
        TooLargeError: The plan has more bytes or values than a plan of `MAX_MAPS` splits needs.
        ValueError: The body is not a plan, or a number in it has more than 64 bits.
    """
    json = _inflated(body) if gzipped else body
    if len(json) > contract.PLAN_MAX_BYTES:
        raise TooLargeError(f"its JSON has more than {contract.PLAN_MAX_BYTES} bytes")
    for character, most in _BOUNDS:
        if json.count(character) > most:
            raise TooLargeError(f"its JSON has more than {most} times {character.decode()}")
    try:
        plan = msgspec.json.decode(json, type=contract.Plan)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if problem := fault(plan):
        raise ValueError(problem)
    size = len(json)
    del json  # it is encoded again from the plan, and must not be in memory twice
    return encode(plan), size


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
                return json  # which is refused
    except zlib.error as error:
        raise ValueError(f"the body is not gzip: {error}") from error
    return json
