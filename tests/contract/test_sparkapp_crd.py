"""The CRD of SparkApps on a real API server: what it accepts, and what it says to what is wrong."""

from __future__ import annotations

import json

import pytest

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse.resources.sparkapp.fields import is_closed
from tests.builders.crds import SPARK_KUBERNETES_KEYS, complete_key, field_rows
from tests.spark import configurations

pytestmark = pytest.mark.usefixtures("crds")

SPARKAPPS = catalogue.Resource(group=names.GROUP, version=names.VERSION, plural="sparkapps", kind="SparkApp", view=dict)
GOOD = {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"}
KUBERNETES_KEYS = sorted({complete_key(key) for key in SPARK_KUBERNETES_KEYS})
CLOSED_KEYS = [key for key in KUBERNETES_KEYS if is_closed(key)]
OPEN_KEYS = [key for key in KUBERNETES_KEYS if not is_closed(key)]
LARGE = (
    ({"arguments": ["x" * 4097]}, "Too long"),
    ({"arguments": ["x" * 4096] * 17}, "arguments may have 65536 bytes in all"),
    ({"sparkConf": {f"spark.{n}": "x" * 16000 for n in range(9)}}, "sparkConf may have 131072 bytes in all"),
)


def application(**spec):
    given = {key: value for key, value in {**GOOD, **spec}.items() if value is not None}
    metadata = {"name": "pi", "namespace": "default"}
    return {"apiVersion": names.API_VERSION, "kind": "SparkApp", "metadata": metadata, "spec": given}


@pytest.mark.parametrize(("field", "wrong", "answer"), field_rows("SparkApp"))
async def test_a_wrong_value_gets_what_the_page_says(api, field, wrong, answer):
    assert answer in await refused(api, json.loads(wrong.replace("\\|", "|"))), field


@pytest.mark.parametrize(("wrong", "answer"), LARGE, ids=["one argument", "arguments", "properties"])
async def test_what_is_too_large_is_refused(api, wrong, answer):
    assert answer in await refused(api, wrong)


@pytest.mark.parametrize("key", CLOSED_KEYS)
async def test_each_key_that_boathouse_sets_is_refused(api, key):
    assert f"sparkConf: {key} is set by Boathouse" in await refused(api, {"sparkConf": {key: "x"}})


async def test_every_other_key_is_accepted(api):
    body = application(sparkConf=dict.fromkeys(OPEN_KEYS, "x"))
    await api.create(SPARKAPPS, body, "default", dry_run=True)


async def refused(api, wrong):
    with pytest.raises(errors.Invalid) as error:
        await api.create(SPARKAPPS, application(**wrong), "default", dry_run=True)
    return error.value.message


@pytest.mark.parametrize("configuration", configurations.ALL, ids=lambda configuration: configuration.name)
async def test_each_recorded_configuration_is_accepted(api, configuration):
    await api.create(SPARKAPPS, application(**configuration.spec), "default", dry_run=True)


async def test_most_fields_are_immutable_unless_the_application_is_suspended(api):
    body = application(suspend=False, queue="one")
    body["metadata"]["name"] = "immutable"
    made = await api.create(SPARKAPPS, body, "default")
    with pytest.raises(errors.Invalid, match=r"spec\.arguments is immutable: delete and recreate the application"):
        await api.patch(SPARKAPPS, "immutable", {"spec": {"arguments": ["1"]}}, "default")
    with pytest.raises(errors.Invalid, match=r"spec\.queue can only be changed while the application is suspended"):
        await api.patch(SPARKAPPS, "immutable", {"spec": {"queue": "two"}}, "default")
    await api.patch(SPARKAPPS, "immutable", {"spec": {"suspend": True}}, "default")
    await api.patch(SPARKAPPS, "immutable", {"spec": {"queue": "two", "suspend": False}}, "default")
    await api.delete(SPARKAPPS, "immutable", "default", uid=made["metadata"]["uid"])


async def test_defaults_are_filled_in(api):
    made = await api.create(SPARKAPPS, application(driver={}), "default", dry_run=True)
    assert made["spec"]["driver"] == {}  # the account is the operator's to say
    assert made["spec"]["restartPolicy"]["type"] == "Never"
    assert made["spec"]["timeouts"]["driverLostSeconds"] == 300
