"""Pods that name a group of pods, on an API server that keeps the field: a feature that is off by default."""

import pytest

from tests.contract.chart import installations
from tests.contract.chart.api_server import ApiServer
from tests.contract.chart.builders import pod

pytestmark = pytest.mark.apiserver

# The version of the API of groups differs by release.
SWITCHED_ON = ("--feature-gates=GenericWorkload=true", "--runtime-config=api/alpha=true")
GROUPS = {"schedulingGroup": {"podGroupName": "g"}, "workloadRef": {"name": "w", "podGroup": "g"}}


@pytest.fixture(scope="module")
def cluster(start_control_plane, tmp_path_factory):
    control_plane = start_control_plane("groups", apiserver_args=SWITCHED_ON)
    return ApiServer(control_plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module")
def installation(cluster, chart):
    with installations.on(cluster, chart) as shared:
        yield shared


@pytest.mark.parametrize("field", GROUPS)
def test_a_pod_of_a_group_is_refused_by_the_field_that_the_api_server_has(alice, field):
    group = {field: GROUPS[field]}
    served = alice.has_field(f"pod.spec.{field}")
    complaint = f"spec.{field} is not supported by the scheduler" if served else f'unknown field "spec.{field}"'
    assert complaint in alice.creates(pod(schedulerName="boathouse", **group))


def test_the_api_server_has_one_of_the_fields_that_name_a_group(alice):
    (field,) = (field for field in GROUPS if alice.has_field(f"pod.spec.{field}"))
    assert alice.creates(pod(**{field: GROUPS[field]})) == "admitted"
