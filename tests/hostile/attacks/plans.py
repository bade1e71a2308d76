"""Split plans that the attacker writes into its own namespace, under the names that the operator will read."""

import base64
import gzip

import msgspec

from boathouse_e2e import hostile, kubelets
from boathouse_task import contract
from tests.hostile.form import Attack

JOB = "planned"
SHAPE = kubelets.Shape(maps=3, reduces=0, cpu="50m")
BOMB_BYTES = 700 * 1024 * 1024
MANY = 1_500_000


def split(number=0):
    return contract.Split(url=f"s3://b/{number}", offset_bytes=0, length_bytes=1, size_bytes=1)


def zeros(size_bytes):
    """Gzip of a JSON string of zeros, made piece by piece."""
    packer = gzip.zlib.compressobj(9, gzip.zlib.DEFLATED, 31)
    piece = b"0" * 2**20
    return b"".join(
        [packer.compress(b'"'), *(packer.compress(piece) for _ in range(size_bytes // len(piece))), packer.flush()]
    )


def shard(uid, blob, *, digest, count="1", step=0, index=0):
    """A ConfigMap as the operator would write it."""
    metadata = {
        "name": f"{JOB}-{uid[:8]}-s{step}-plan-{index:03d}",
        "labels": {"boathouse.dev/job-uid": uid, "boathouse.dev/kind": "plan"},
        "annotations": {"boathouse.dev/plan-digest": digest, "boathouse.dev/plan-shards": count},
        "ownerReferences": [
            {
                "apiVersion": "boathouse.dev/v1alpha1",
                "kind": "MRJob",
                "name": JOB,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
    data = {"plan.json.gz": base64.b64encode(blob).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data, "immutable": True}


def forged(make):
    """Create the job and the shards while no operator runs, so that the next one finds them."""

    async def act(siege):
        uid = await siege.submit(hostile.job(JOB, maps=SHAPE.maps), SHAPE)
        await siege.attacker.create_all(make(uid))

    return act


def bomb(uid):
    blob = zeros(BOMB_BYTES)
    yield shard(uid, blob, digest="0" * 64)


def countless(uid):
    yield shard(uid, gzip.compress(b"{}"), digest="0" * 64, count="9999999")


def long_count(uid):
    yield shard(uid, gzip.compress(b"{}"), digest="0" * 64, count="9" * 5000)


def crowded(uid):
    """A plan that is what its digest says, of more splits than any job may have."""
    plan = contract.Plan(splits=[split()] * MANY, bytes_total=MANY)
    blob = gzip.compress(msgspec.json.encode(plan))
    yield shard(uid, blob, digest=contract.plan_digest(plan))


def another(uid):
    """A plan that is what its digest says, which no setup task has ever posted."""
    plan = contract.Plan(splits=[split(n) for n in range(50)], bytes_total=50)
    yield shard(uid, gzip.compress(msgspec.json.encode(plan)), digest=contract.plan_digest(plan))


def wrong(uid):
    plan = contract.Plan(splits=[split(n) for n in range(50)], bytes_total=50)
    yield shard(uid, gzip.compress(msgspec.json.encode(plan)), digest="0" * 64)


async def runs_by_the_plan_of_its_setup(siege):
    await siege.until(lambda: siege.has_ended(JOB), "the attacker's job ends")
    status = await siege.status(JOB)
    assert (status["phase"], status["maps"]["total"]) == ("Succeeded", SHAPE.maps), status


def attack(name, make, **more):
    return Attack(name=name, act=forged(make), first=True, holds=runs_by_the_plan_of_its_setup, **more)


ATTACKS = (
    attack("a plan of 700 MiB in one ConfigMap", bomb),
    attack("a plan of 9,999,999 shards", countless, long=True),
    attack("a plan whose number of shards has 5,000 digits", long_count, long=True),
    attack("a plan of 1,500,000 splits", crowded, long=True),
    attack("a plan that no setup has posted", another),
    attack("a plan with a wrong digest", wrong, long=True),
)
