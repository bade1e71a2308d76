"""What the operator itself has written: its certificate authorities, and what its profile has learned."""

import base64
import contextlib
import gzip
import json

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse_e2e import hostile, install, kubelets
from tests.hostile.form import Attack

CONFIG_MAPS = catalogue.CONFIG_MAPS.untyped()
SHAPE = kubelets.Shape(maps=2, reduces=0, cpu="50m")
RESTORED_S = 60
"""The operator restores them every 30 s; the rest is for a busy machine."""


async def bundle(siege, namespace=hostile.ATTACKER):
    try:
        found = await siege.admin.get(CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, namespace)
    except errors.NotFound:
        return None
    return found.get("data", {}).get(names.PROGRESS_CA_KEY)


async def runs_one_job(siege):
    await siege.submit(hostile.job("first", maps=SHAPE.maps), SHAPE)
    await siege.until(lambda: siege.has_ended("first"), "a first job has had the authorities published")


async def deletes_the_authorities(siege):
    await runs_one_job(siege)
    await siege.attacker.api.delete(CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, hostile.ATTACKER)


async def edits_the_authorities(siege):
    await runs_one_job(siege)
    change = {"data": {names.PROGRESS_CA_KEY: "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"}}
    await siege.attacker.api.patch(CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, change, hostile.ATTACKER)


async def are_restored(siege):
    """What the namespace's tasks trust is what other namespaces' tasks trust."""

    async def restored():
        published = await bundle(siege)
        return published is not None and published == await bundle(siege, hostile.VICTIM)

    await siege.until(restored, "the authorities are there again", patience_s=RESTORED_S)


def learned(content):
    """An administrator's hand, or a fault: the ConfigMap holds what no operator has written."""

    async def act(siege):
        metadata = {"name": "boathouse-learned", "namespace": install.NAMESPACE}
        data = {"state.json.gz": base64.b64encode(content()).decode()}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}
        with contextlib.suppress(errors.NotFound):
            await siege.admin.delete(CONFIG_MAPS, metadata["name"], install.NAMESPACE)
        await siege.admin.create(CONFIG_MAPS, manifest, install.NAMESPACE)

    return act


def packed(value):
    return lambda: gzip.compress(json.dumps(value).encode())


WRONG = {"version": -1, "estimates": {"a/b": [float("1e308")] * 10}, "observer": [[["x"]]], "learner": {"x": None}}

ATTACKS = (
    Attack(
        name="certificate authorities that a tenant deletes",
        act=deletes_the_authorities,
        holds=are_restored,
        long=True,
    ),
    Attack(
        name="certificate authorities that a tenant edits", act=edits_the_authorities, holds=are_restored, long=True
    ),
    Attack(name="learned state that is no gzip", act=learned(lambda: b"junk"), first=True),
    Attack(name="learned state of the wrong shape", act=learned(packed(WRONG)), first=True, long=True),
    Attack(name="learned state that is a list", act=learned(packed([1, 2, 3])), first=True, long=True),
    Attack(
        name="learned state of 700 MB", act=learned(lambda: gzip.compress(b" " * 700_000_000)), first=True, long=True
    ),
)
