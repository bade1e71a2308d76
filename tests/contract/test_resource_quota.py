"""The example of a ResourceQuota: what it counts is counted, and a job beyond it is refused."""

from __future__ import annotations

import itertools
import pathlib
import re

import pytest
import yaml

from boathouse.cluster import catalogue, errors
from tests.contract.test_crd import MRJOBS, job

pytestmark = pytest.mark.usefixtures("crds")

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "resource-quota.yaml"
QUOTAS = catalogue.Resource(plural="resourcequotas", kind="ResourceQuota", view=dict)
EXCEEDED = re.compile(r"exceeded quota: boathouse.*count/mrjobs.boathouse.dev=1")


async def test_the_second_job_is_refused_where_the_quota_is_one(api, namespace, eventually):
    quota = yaml.safe_load(EXAMPLE.read_text())
    quota["spec"]["hard"]["count/mrjobs.boathouse.dev"] = "1"
    await api.create(MRJOBS, job(), namespace)
    await api.create(QUOTAS, quota, namespace)
    sizes = itertools.count(1000)

    async def counts_the_first():
        # The controller looks for new kinds twice a minute, and counts at once only in a quota that changes.
        changed = {"spec": {"hard": {"count/pods": str(next(sizes))}}}
        await api.patch(QUOTAS, "boathouse", changed, namespace)
        used = (await api.get(QUOTAS, "boathouse", namespace)).get("status", {}).get("used", {})
        return used.get("count/mrjobs.boathouse.dev") == "1"

    async def refuses_another():  # once the API server has seen what the controller counted
        try:
            await api.create(MRJOBS, job(), namespace)
        except errors.Forbidden as refused:
            return EXCEEDED.search(str(refused))
        return False

    await eventually(counts_the_first)
    await eventually(refuses_another)
