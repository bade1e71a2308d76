"""Least rights: all that the chart lets the operator do, by role, and what a real API server makes of it."""

from typing import Any

import pytest
import yaml

from boathouse_cli.changing import enable_spark
from tests.contract.chart.builders import object_

OPERATOR = "system:serviceaccount:boathouse-system:boathouse"
CLUSTER_WIDE = {
    "nodes": {"list", "watch"},
    "pods": {"get", "list", "watch"},
    "persistentvolumeclaims": {"list", "watch"},
    "resourcequotas": {"list", "watch"},
    "persistentvolumes": {"list", "watch"},
    "storageclasses.storage.k8s.io": {"list", "watch"},
    "csinodes.storage.k8s.io": {"list", "watch"},
    "csidrivers.storage.k8s.io": {"list", "watch"},
    "csistoragecapacities.storage.k8s.io": {"list", "watch"},
    "volumeattachments.storage.k8s.io": {"list", "watch"},
    "deviceclasses.resource.k8s.io": {"list", "watch"},
    "namespaces": {"get", "list", "watch"},
    "priorityclasses.scheduling.k8s.io": {"get"},
    "tokenreviews.authentication.k8s.io": {"create"},
}
WHERE_JOBS_RUN = {
    "pods": {"create", "delete", "patch"},
    "pods/binding": {"create"},
    "persistentvolumeclaims": {"get", "create", "patch"},
    "pods/status": {"patch"},
    "pods/resize": {"patch"},
    "events.events.k8s.io": {"list", "create", "patch"},
    "configmaps": {"get", "create", "patch", "delete"},
    "services": {"get", "create"},
    "serviceaccounts": {"get"},
    "networkpolicies.networking.k8s.io": {"get", "create", "patch", "delete"},
    "mrclusters.boathouse.dev": {"get", "list", "watch", "patch", "delete"},
    "mrclusters/status.boathouse.dev": {"patch"},
    "mrjobs.boathouse.dev": {"get", "list", "watch", "patch", "delete"},
    "mrjobs/status.boathouse.dev": {"patch"},
    "sparkapps.boathouse.dev": {"get", "list", "watch", "patch", "delete"},
    "sparkapps/status.boathouse.dev": {"patch"},
}
OF_DRIVERS = {
    "pods": {"get", "list", "watch", "create", "patch", "delete", "deletecollection"},
    "configmaps": {"create", "get", "list", "delete", "deletecollection"},
    "accounts.boathouse.dev": {"use"},
}
IN_ITS_OWN_NAMESPACE = {
    "leases.coordination.k8s.io": {"create"},
    "leases.coordination.k8s.io boathouse": {"get", "update"},
    "configmaps": {"create"},
    "configmaps boathouse-progress-ca boathouse-learned": {"get", "update"},
    "pods": {"patch"},
}


def rights(role: dict[str, Any]) -> dict[str, set[str]]:
    """What a role allows: verbs by `resource.group`, and by the object's name where it is bound to one."""
    allowed: dict[str, set[str]] = {}
    for rule in role["rules"]:
        for resource in rule["resources"]:
            group = "".join(f".{group}" for group in rule["apiGroups"] if group)
            names = "".join(f" {name}" for name in rule.get("resourceNames", ()))
            allowed.setdefault(f"{resource}{group}{names}", set()).update(rule["verbs"])
    return allowed


SIGNALS = {"kubelets": {"enabled": True, "insecureSkipVerify": True}}
VALUES = {"namespaces": ["team"], "signals": SIGNALS}


def bindings(manifests) -> dict[tuple[str, str | None], str]:
    """The role behind each binding to the operator's account, by kind and namespace."""
    account = {"kind": "ServiceAccount", "name": "boathouse", "namespace": "boathouse-system"}
    found = manifests.of("ClusterRoleBinding", "RoleBinding")
    assert all(binding["subjects"] == [account] for binding in found)
    return {(binding["roleRef"]["name"], binding["metadata"].get("namespace")): binding["kind"] for binding in found}


def test_in_all_namespaces_one_cluster_role_lets_it_run_jobs(defaults):
    assert bindings(defaults) == {
        ("boathouse-reader", None): "ClusterRoleBinding",
        ("boathouse-volumes", None): "ClusterRoleBinding",
        ("boathouse", None): "ClusterRoleBinding",
        ("boathouse-leader", "boathouse-system"): "RoleBinding",
    }
    assert rights(defaults.find("ClusterRole", "boathouse-reader")) == CLUSTER_WIDE
    assert rights(defaults.find("ClusterRole", "boathouse")) == WHERE_JOBS_RUN
    assert rights(defaults.find("Role", "boathouse-leader")) == IN_ITS_OWN_NAMESPACE


def test_with_namespaces_a_role_in_each_lets_it_run_jobs_there_and_nowhere_else(chart):
    manifests = chart.render(namespaces=["a", "b"])
    assert bindings(manifests) == {
        ("boathouse-reader", None): "ClusterRoleBinding",
        ("boathouse-volumes", None): "ClusterRoleBinding",
        ("boathouse", "a"): "RoleBinding",
        ("boathouse", "b"): "RoleBinding",
        ("boathouse-leader", "boathouse-system"): "RoleBinding",
    }
    assert rights(manifests.find("ClusterRole", "boathouse-reader")) == CLUSTER_WIDE
    assert rights(manifests.find("Role", "boathouse", "a")) == WHERE_JOBS_RUN
    assert rights(manifests.find("Role", "boathouse", "b")) == WHERE_JOBS_RUN


@pytest.mark.parametrize("namespaces", [[], ["a"]])
def test_nothing_is_allowed_by_a_wildcard_and_nothing_reads_secrets(chart, namespaces):
    for role in chart.render(namespaces=namespaces).of("ClusterRole", "Role"):
        for right, verbs in rights(role).items():
            assert "*" not in right
            assert "*" not in verbs
            assert "secret" not in right
            assert not right.startswith(("pods/exec", "nodes/", "serviceaccounts/"))


def test_metrics_of_kubelets_are_read_by_an_account_of_their_own(chart, defaults):
    assert not [manifest for manifest in defaults if manifest["metadata"]["name"] == "boathouse-signals"]
    manifests = chart.render(signals=SIGNALS)
    assert rights(manifests.find("ClusterRole", "boathouse-signals")) == {"nodes/metrics": {"get"}}
    account = {"kind": "ServiceAccount", "name": "boathouse-signals", "namespace": "boathouse-system"}
    assert manifests.find("ClusterRoleBinding", "boathouse-signals")["subjects"] == [account]
    assert manifests.find("ServiceAccount", "boathouse-signals")["automountServiceAccountToken"] is False
    token = {"serviceaccounts/token boathouse-signals": {"create"}}
    assert rights(manifests.find("Role", "boathouse-leader")) == IN_ITS_OWN_NAMESPACE | token
    assert rights(manifests.find("ClusterRole", "boathouse-reader")) == CLUSTER_WIDE


def test_people_get_jobs_with_the_built_in_roles(chart, defaults):
    viewer, editor = (defaults.find("ClusterRole", f"boathouse-{name}") for name in ("viewer", "editor"))
    assert viewer["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert editor["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    for kind in ("mrclusters", "mrjobs", "sparkapps"):
        assert rights(viewer)[f"{kind}.boathouse.dev"] == {"get", "list", "watch"}
        assert rights(editor)[f"{kind}.boathouse.dev"] == {"create", "update", "patch", "delete", "deletecollection"}
    assert len(chart.render(rbac={"aggregate": False}).of("ClusterRole")) == 5


def test_drivers_create_executors_and_config_maps_and_nothing_else(chart, defaults):
    assert rights(defaults.find("ClusterRole", "boathouse-spark-driver")) == OF_DRIVERS
    assert not defaults.of("RoleBinding")[1:]  # the first is the leader's
    with_class = chart.render(spark={"priorityClasses": ["batch-low"]}).find("ClusterRole", "boathouse-spark-driver")
    allowed = {"priorityclasses.scheduling.k8s.io batch-low": {"use"}}
    assert rights(with_class) == OF_DRIVERS | allowed


@pytest.mark.parametrize("account", ["boathouse-spark", "boathouse-spark-etl"])
def test_drivers_have_an_account_in_the_namespaces_of_the_value(chart, account):
    manifests = chart.render(spark={"namespaces": ["a", "b"], "serviceAccount": account})
    for namespace in ("a", "b"):
        assert manifests.find("ServiceAccount", account, namespace)["automountServiceAccountToken"] is False
        bound = manifests.find("RoleBinding", account, namespace)
        assert bound["roleRef"]["name"] == "boathouse-spark-driver"
        assert bound["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]


def test_the_command_line_enables_a_namespace_as_the_chart_does(chart, capsys):
    enable_spark(namespace="a", name="boathouse-spark", dry_run=True)
    printed = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(capsys.readouterr().out)}
    manifests = chart.render(spark={"namespaces": ["a"]})
    for kind, fields in {
        "ServiceAccount": ["automountServiceAccountToken"],
        "RoleBinding": ["roleRef", "subjects"],
    }.items():
        ours = manifests.find(kind, "boathouse-spark", "a")
        assert printed[kind]["metadata"]["name"] == ours["metadata"]["name"]
        assert [printed[kind][field] for field in fields] == [ours[field] for field in fields]


def test_who_administers_a_namespace_may_let_boathouse_run_pods_as_its_service_accounts(defaults):
    admin, run_as = (defaults.find("ClusterRole", f"boathouse-{name}") for name in ("admin", "run-as"))
    assert admin["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
    assert rights(admin) == {"clusterroles.rbac.authorization.k8s.io boathouse-run-as boathouse-spark-driver": {"bind"}}
    assert rights(run_as) == {"accounts.boathouse.dev": {"use"}}


MAY = [
    ("list", "nodes", ""),
    ("watch", "pods", ""),
    ("create", "pods", "team"),
    ("create", "pods/binding", "team"),
    ("patch", "persistentvolumeclaims", "team"),
    ("patch", "persistentvolumes", ""),
    ("patch", "mrjobs/status", "team"),
    ("patch", "sparkapps/status", "team"),
    ("watch", "sparkapps", "team"),
    ("patch", "mrclusters/status", "team"),
    ("create", "services", "team"),  # of Spark's UI and of Hadoop clusters; see the policy boathouse-account-services
    ("create", "persistentvolumeclaims", "team"),  # of Hadoop clusters; see the policy boathouse-account-claims
    ("patch", "networkpolicies", "team"),  # of Hadoop clusters; see the policy boathouse-account-network
    ("get", "serviceaccounts", "team"),
    ("watch", "resourcequotas", ""),
    ("patch", "mrjobs", "team"),  # a finalizer; the policy boathouse-account-jobs lets nothing else through
    ("delete", "mrjobs", "team"),  # those whose ttlSecondsAfterFinished is over
    ("patch", "pods", "boathouse-system"),
]
MAY_NOT = [
    ("get", "secrets", "team"),
    ("list", "secrets", ""),
    ("create", "pods/exec", "team"),
    ("create", "serviceaccounts/token", "team"),
    ("patch", "nodes", ""),
    ("get", "nodes/proxy", ""),
    ("get", "nodes/metrics", ""),  # by the account boathouse-signals only
    ("get", "nodes/stats", ""),
    ("create", "mrjobs", "team"),
    ("create", "sparkapps", "team"),
    ("watch", "sparkapps", "elsewhere"),
    ("create", "services", "elsewhere"),
    ("create", "mrclusters", "team"),
    ("delete", "persistentvolumeclaims", "team"),
    ("create", "persistentvolumeclaims", "elsewhere"),
    ("list", "networkpolicies", "team"),
    ("create", "networkpolicies", "elsewhere"),
    ("patch", "services", "team"),
    ("get", "serviceaccounts", "elsewhere"),
    ("create", "serviceaccounts", "team"),
    ("patch", "resourcequotas", "team"),
    ("delete", "mrjobs", "elsewhere"),
    ("patch", "mrjobs", "elsewhere"),
    ("update", "mrjobs", "team"),
    ("patch", "validatingadmissionpolicies", ""),
    ("patch", "persistentvolumeclaims", "elsewhere"),
    ("update", "persistentvolumes", ""),
    ("delete", "persistentvolumes", ""),
    ("create", "pods", "elsewhere"),
    ("delete", "pods", "elsewhere"),
    ("delete", "pods", ""),
    ("create", "pods/binding", "elsewhere"),
    ("patch", "pods/status", "elsewhere"),
    ("update", "configmaps", "boathouse-system"),
    ("create", "configmaps", "elsewhere"),
]


@pytest.fixture(scope="module")
def in_one_namespace(cluster, installation):
    """The chart with `namespaces: [team]`."""
    cluster.apply(*(object_("Namespace", name) for name in ("team", "elsewhere")))
    installation.take(VALUES)
    operator = cluster.acting_as(OPERATOR)
    cluster.until(lambda: operator.may("create", "pods", "team"), "yes")
    cluster.until(lambda: operator.may("create", "pods", "elsewhere"), "no")
    return cluster


@pytest.fixture(scope="module")
def operator(in_one_namespace):
    return in_one_namespace.acting_as(OPERATOR)


@pytest.mark.apiserver
@pytest.mark.parametrize(("verb", "resource", "namespace"), MAY)
def test_the_operator_may(operator, verb, resource, namespace):
    operator.until(lambda: operator.may(verb, resource, namespace), "yes")


@pytest.mark.apiserver
@pytest.mark.parametrize(("verb", "resource", "namespace"), MAY_NOT)
def test_the_operator_may_not(operator, verb, resource, namespace):
    assert operator.may(verb, resource, namespace) == "no"


@pytest.mark.apiserver
def test_the_operator_gets_tokens_of_the_account_for_kubelets_only(operator):
    def may(account):
        return operator.may("create", "serviceaccounts/token", "boathouse-system", name=account)

    operator.until(lambda: may("boathouse-signals"), "yes")
    assert [may(account) for account in ("boathouse", "default")] == ["no", "no"]


@pytest.mark.apiserver
def test_the_account_for_kubelets_reads_metrics_of_nodes_and_nothing_else(in_one_namespace):
    account = in_one_namespace.acting_as("system:serviceaccount:boathouse-system:boathouse-signals")
    account.until(lambda: account.may("get", "nodes/metrics"), "yes")
    for verb, resource in (("get", "nodes/proxy"), ("create", "nodes/proxy"), ("get", "nodes/stats"), ("get", "pods")):
        assert account.may(verb, resource) == "no"


@pytest.mark.apiserver
def test_the_operator_holds_only_its_own_lease(operator):
    operator.until(lambda: operator.may("update", "leases", "boathouse-system", name="boathouse"), "yes")
    assert operator.may("update", "leases", "boathouse-system", name="kube-scheduler") == "no"


@pytest.mark.apiserver
def test_a_job_where_boathouse_does_not_run_is_refused_with_the_reason(in_one_namespace):
    job = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "metadata": {"name": "wc", "namespace": "team"}}
    storage = {"s3": {"endpointURL": "http://s3:7070", "secretRef": {"name": "s3-credentials"}}}
    job["spec"] = {"input": ["s3://b/in"], "output": "s3://b/out", "mapper": {"command": ["cat"]}, "storage": storage}
    elsewhere = job | {"metadata": {"name": "wc", "namespace": "elsewhere"}}
    refusal = "Boathouse does not run in this namespace (it runs in team)"
    in_one_namespace.until(lambda: in_one_namespace.creates(elsewhere), refusal)
    assert in_one_namespace.creates(job) == "admitted"


@pytest.mark.apiserver
def test_a_pod_where_boathouse_does_not_run_is_refused_rather_than_left_waiting(in_one_namespace):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "elsewhere"}}
    pod["spec"] = {"schedulerName": "boathouse", "containers": [{"name": "c", "image": "i"}]}
    refusal = "schedulerName boathouse: Boathouse does not run in this namespace (it runs in team)"
    in_one_namespace.until(lambda: in_one_namespace.creates(pod), refusal)
