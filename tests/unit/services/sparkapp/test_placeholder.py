"""Placeholders of drivers and executors: what decides about nodes, within Pod Security `restricted`, and no more."""

import pytest

from boathouse.services.sparkapp import pods
from boathouse.services.sparkapp.gang import DriverFactory
from tests.builders.sparkapps import ATTEMPT, UID, app, only_container

FIELDS = {
    "nodeSelector": {"pool": "spark"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "podTemplate": {
        "priorityClassName": "low",
        "securityContext": {"runAsUser": 1234},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"team": "red"}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        },
    },
    "volumes": [
        {"name": "c", "mountPath": "/c", "claimName": "claim"},
        {"name": "s", "mountPath": "/s", "secretName": "secret"},
    ],
    "envFrom": [{"secretRef": {"name": "keys"}}],
    "executor": {"instances": 2, "extendedResources": {"example.com/gpu": "1"}},
}
BUILD = {False: pods.trial_executor, True: pods.driver}


@pytest.fixture(params=BUILD, ids=["executor", "driver"])
def pair(request):
    """Return a placeholder, and the pod for which it stands."""
    given = app(**FIELDS)
    factory = DriverFactory(app=given, attempt=ATTEMPT)
    return factory.build_placeholder(is_driver=request.param), BUILD[request.param](given, ATTEMPT)


def test_it_needs_the_same_nodes(pair):
    mine, theirs = pair
    for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "schedulerName"):
        assert mine["spec"][field] == theirs["spec"][field], field
    assert only_container(mine)["resources"] == only_container(theirs)["resources"]
    assert only_container(mine)["image"] == only_container(theirs)["image"]
    assert mine["spec"]["volumes"] == [{"name": "c", "persistentVolumeClaim": {"claimName": "claim"}}]


def test_it_is_restricted_and_has_no_secrets(pair):
    mine, _ = pair
    security, container = mine["spec"]["securityContext"], only_container(mine)
    assert (security["runAsNonRoot"], security["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container.keys() & {"env", "envFrom", "volumeMounts", "args"}
    assert mine["spec"]["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in mine["spec"]


def test_it_goes_with_the_application_and_no_driver_takes_it_for_an_executor(pair):
    mine, _ = pair
    (owner,) = mine["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("SparkApp", UID, True)
    assert mine["metadata"]["labels"]["boathouse.dev/job-uid"] == UID
    assert not {"spark-app-selector", "spark-exec-id"} & mine["metadata"]["labels"].keys()
