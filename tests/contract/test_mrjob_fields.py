"""Every row of the page of fields, on a real API server."""

import json

import pytest

from boathouse.cluster import errors
from tests.builders.crds import field_rows
from tests.contract.test_crd import MRJOBS, job, mrjobs

__all__ = ["mrjobs"]


@pytest.mark.parametrize(("wrong", "answer"), [(wrong, answer) for _, wrong, answer in field_rows("MRJob")])
async def test_a_wrong_value_gets_what_the_page_says(mrjobs, wrong, answer):
    with pytest.raises(errors.Invalid) as refused:
        await mrjobs.create(MRJOBS, job(**json.loads(wrong.replace("\\|", "|"))), "default", dry_run=True)
    assert answer in refused.value.message
