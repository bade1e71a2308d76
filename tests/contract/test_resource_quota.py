"""The example of a ResourceQuota: what it counts is counted, and a job beyond it is refused."""

from __future__ import annotations

import itertools
import pathlib

import pytest
import yaml

from boathouse.cluster import catalogue, errors
from tests.contract.test_crd import MRJOBS, job, mrjobs

__all__ = ["mrjobs"]

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "resource-quota.yaml"
QUOTAS = catalogue.Resource(plural="resourcequotas", kind="ResourceQuota", view=dict)


async def test_the_second_job_is_refused_where_the_quota_is_one(mrjobs, namespace, eventually):
    quota = yaml.safe_load(EXAMPLE.read_text())
    quota["spec"]["hard"]["count/mrjobs.boathouse.dev"] = "1"
    await mrjobs.create(QUOTAS, quota, namespace)
    sizes = itertools.count(1000)

    async def takes_a_job():
        # The controller looks for new kinds twice a minute, and counts at once only in a quota that changes.
        await mrjobs.patch(QUOTAS, "boathouse", {"spec": {"hard": {"count/pods": str(next(sizes))}}}, namespace)
        try:
            await mrjobs.create(MRJOBS, job(), namespace)
        except errors.Forbidden:  # "status unknown for quota"
            return False
        return True

    await eventually(takes_a_job)
    with pytest.raises(errors.Forbidden, match=r"exceeded quota: boathouse.*count/mrjobs.boathouse.dev=1"):
        await mrjobs.create(MRJOBS, job(), namespace)
