"""Every row of the page of fields, on a real API server."""

import json

import pytest

from boathouse.cluster import errors
from tests.builders.crds import field_rows
from tests.contract.test_crd import MRJOBS, job

pytestmark = pytest.mark.usefixtures("crds")


@pytest.mark.parametrize(("wrong", "answer"), [(wrong, answer) for _, wrong, answer in field_rows("MRJob")])
async def test_a_wrong_value_gets_what_the_page_says(api, wrong, answer):
    with pytest.raises(errors.Invalid) as refused:
        await api.create(MRJOBS, job(**json.loads(wrong.replace("\\|", "|"))), "default", dry_run=True)
    assert answer in refused.value.message
