"""The NetworkPolicies of the chart and of the examples, judged by an evaluator: no network enforces them here."""

import json
from pathlib import Path

import pytest
import yaml

from boathouse.services.mrcluster import objects
from tests.builders import mrclusters
from tests.contract.chart.builders import submission
from tests.contract.chart.network import Pod, allowed, selects

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
EXAMPLE = EXAMPLES / "network-policy.yaml"
SPARK_EXAMPLE = EXAMPLES / "spark-network-policy.yaml"
PROGRESS, HEALTH, METRICS = 8443, 8081, 8080
TASK = Pod(namespace="demo", labels={"app.kubernetes.io/name": "boathouse-task"})
OTHER = Pod(namespace="elsewhere", labels={"app": "web"})
PROMETHEUS = Pod(namespace="monitoring", labels={"app": "prometheus"})
NEIGHBOUR = Pod(namespace="boathouse-system", labels={"app": "neighbour"})
DNS = Pod(namespace="kube-system", labels={"k8s-app": "kube-dns"})


@pytest.fixture(scope="module")
def operator(defaults):
    """The operator's pod, as the Deployment makes it."""
    template = defaults.find("Deployment")["spec"]["template"]
    ports = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
    return Pod(namespace="boathouse-system", labels=template["metadata"]["labels"], ports=ports)


@pytest.fixture(scope="module")
def policies(chart):
    """Render the chart's policies for some values."""

    def render(**network):
        return chart.render(networkPolicy={"enabled": True, **network.pop("policy", {})}, **network).of("NetworkPolicy")

    return render


def test_without_the_value_everything_is_open(chart, operator):
    assert not chart.render(networkPolicy={"enabled": False}).of("NetworkPolicy")
    assert allowed([], OTHER, operator, HEALTH)


def test_by_default_no_pod_reaches_metrics_and_health(defaults, operator):
    for source in (TASK, OTHER, PROMETHEUS, NEIGHBOUR):
        for port in (METRICS, HEALTH):
            assert not allowed(defaults.of("NetworkPolicy"), source, operator, port)
        assert allowed(defaults.of("NetworkPolicy"), source, operator, PROGRESS)


def test_the_pod_of_helm_test_reads_the_metrics(chart, defaults, operator):
    labels = chart.test_pod()["metadata"]["labels"]
    assert allowed(defaults.of("NetworkPolicy"), Pod(namespace="boathouse-system", labels=labels), operator, METRICS)
    assert not allowed(defaults.of("NetworkPolicy"), Pod(namespace="demo", labels=labels), operator, METRICS)


def test_tasks_of_any_namespace_report(policies, operator):
    assert allowed(policies(), TASK, operator, PROGRESS)
    assert allowed(policies(), OTHER, operator, PROGRESS)  # who reports is for the token to say


def test_with_namespaces_only_pods_there_report(policies, operator):
    rendered = policies(namespaces=["demo"])
    assert allowed(rendered, TASK, operator, PROGRESS)
    assert not allowed(rendered, OTHER, operator, PROGRESS)


@pytest.mark.parametrize("source", [TASK, OTHER, PROMETHEUS, NEIGHBOUR])
def test_no_pod_reaches_the_health_port(policies, operator, source):
    assert not allowed(policies(), source, operator, HEALTH)


@pytest.mark.parametrize("port", [22, 9999])
def test_no_pod_reaches_a_port_that_is_not_named(policies, operator, port):
    assert not allowed(policies(), TASK, operator, port)


def test_reports_and_metrics_come_over_tcp_only(policies, operator):
    assert not allowed(policies(), TASK, operator, PROGRESS, "UDP")
    assert not allowed(policies(), TASK, operator, METRICS, "UDP")


def test_metrics_are_read_by_the_named_scrapers(policies, operator):
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    narrow = policies(policy={"metricsFrom": [peer]})
    assert allowed(narrow, PROMETHEUS, operator, METRICS)
    for source in (OTHER, NEIGHBOUR):
        assert not allowed(narrow, source, operator, METRICS)
    assert allowed(policies(policy={"metricsFrom": [{"namespaceSelector": {}}]}), OTHER, operator, METRICS)


@pytest.mark.parametrize("peer", [{}, {"namespace": "monitoring"}])
def test_a_scraper_that_selects_nothing_is_refused(chart, peer):
    assert "metricsFrom" in chart.refusal(networkPolicy={"metricsFrom": [peer]})


def test_a_service_monitor_whose_scrapers_are_not_named_is_refused(chart):
    assert "networkPolicy.metricsFrom is empty" in chart.refusal(metrics={"serviceMonitor": {"enabled": True}})
    chart.render(metrics={"serviceMonitor": {"enabled": True}}, networkPolicy={"enabled": False})


def test_the_operator_connects_to_whom_it_likes_by_default(policies, operator):
    """The API server's address is the cluster's business."""
    assert allowed(policies(), operator, OTHER, 6443)


EGRESS = {"enabled": True, "apiServer": [{"cidr": "10.0.0.1/32", "port": 6443}], "nodes": ["10.1.0.0/16"]}
API_SERVER = Pod(namespace="", address="10.0.0.1")
KUBELET = Pod(namespace="", address="10.1.2.3")


def test_with_egress_the_operator_reaches_the_api_server_and_drivers_only(policies, operator):
    rendered = policies(policy={"egress": EGRESS})
    assert allowed(rendered, operator, API_SERVER, 6443)
    assert allowed(rendered, operator, DRIVER, 4321)
    for target, port in ((API_SERVER, 443), (KUBELET, 10250), (OTHER, 6443), (EXECUTOR, 4040), (DNS, 53)):
        assert not allowed(rendered, operator, target, port)
    assert allowed(rendered, TASK, operator, PROGRESS)


@pytest.mark.parametrize(("port", "opened"), [(0, 10250), (10260, 10260)])
def test_with_signals_it_reaches_the_kubelets_too(policies, operator, port, opened):
    kubelets = {"enabled": True, "insecureSkipVerify": True, "port": port}
    rendered = policies(policy={"egress": EGRESS}, signals={"kubelets": kubelets})
    assert allowed(rendered, operator, KUBELET, opened)
    assert not allowed(rendered, operator, KUBELET, 22)
    assert not allowed(rendered, operator, Pod(namespace="", address="10.2.0.1"), opened)


def test_egress_without_the_addresses_that_it_needs_is_refused(chart):
    def refusal(egress, **values):
        return chart.refusal(networkPolicy={"enabled": True, "egress": {**EGRESS, **egress}}, **values)

    assert "egress.apiServer is empty" in refusal({"apiServer": []})
    signals = {"kubelets": {"enabled": True, "insecureSkipVerify": True}}
    assert "egress.nodes is empty" in refusal({"nodes": []}, signals=signals)
    assert "needs networkPolicy.enabled" in chart.refusal(networkPolicy={"enabled": False, "egress": EGRESS})


def test_the_policy_concerns_the_operators_pods_only(policies):
    assert allowed(policies(), OTHER, NEIGHBOUR, 80)


# The example for a namespace with jobs


@pytest.fixture(scope="module")
def of_tasks():
    return [
        one | {"metadata": one["metadata"] | {"namespace": "demo"}} for one in yaml.safe_load_all(EXAMPLE.read_text())
    ]


@pytest.mark.parametrize("source", [TASK, OTHER, NEIGHBOUR])
def test_nobody_connects_to_a_task(of_tasks, source):
    assert not allowed(of_tasks, source, TASK, 8000)


def test_a_task_reports_finds_names_and_reaches_storage_over_https(of_tasks, operator):
    storage = Pod(namespace="storage", labels={"app": "s3"})
    assert allowed(of_tasks, TASK, operator, PROGRESS)
    assert allowed(of_tasks, TASK, DNS, 53, "UDP")
    assert allowed(of_tasks, TASK, storage, 443)


def test_a_task_reaches_nothing_else(of_tasks, operator):
    assert not allowed(of_tasks, TASK, operator, METRICS)
    assert not allowed(of_tasks, TASK, OTHER, 80)
    assert not allowed(of_tasks, TASK, OTHER, 53, "UDP")


def test_other_pods_of_the_namespace_stay_open(of_tasks):
    web = Pod(namespace="demo", labels={"app": "web"})
    assert allowed(of_tasks, OTHER, web, 80)
    assert allowed(of_tasks, web, OTHER, 80)


# The example for a namespace with Spark applications

OF_SPARK = {"app.kubernetes.io/name": "spark"}
DRIVER = Pod(namespace="demo", labels={**OF_SPARK, "spark-role": "driver", "boathouse.dev/task-type": "driver"})
EXECUTOR = Pod(namespace="demo", labels={**OF_SPARK, "spark-role": "executor"})


@pytest.fixture(scope="module")
def of_spark():
    """The policies of the example, applied in the namespace demo."""
    policies = list(yaml.safe_load_all(SPARK_EXAMPLE.read_text()))
    return [policy | {"metadata": {**policy["metadata"], "namespace": "demo"}} for policy in policies]


def test_drivers_and_executors_reach_each_other_and_storage(of_spark):
    for source, target in ((DRIVER, EXECUTOR), (EXECUTOR, DRIVER), (EXECUTOR, EXECUTOR)):
        assert allowed(of_spark, source, target, 7079)
        assert allowed(of_spark, source, Pod(namespace="storage"), 443)
        assert allowed(of_spark, source, DNS, 53, "UDP")


def test_only_drivers_reach_the_api_server(of_spark):
    assert allowed(of_spark, DRIVER, Pod(namespace="default"), 6443)
    assert not allowed(of_spark, EXECUTOR, Pod(namespace="default"), 6443)


def test_only_the_operator_reaches_drivers_from_outside(of_spark, operator):
    assert allowed(of_spark, operator, DRIVER, 4040)
    assert not allowed(of_spark, operator, DRIVER, 7078)
    assert not allowed(of_spark, OTHER, DRIVER, 4040)
    assert not allowed(of_spark, Pod(namespace="demo", labels={"app": "web"}), EXECUTOR, 7079)


def test_the_examples_labels_are_those_of_the_pods(of_spark):
    manifests = submission("demo")
    executor = json.loads(manifests.config_map["data"]["executor.yaml"])
    whole, drivers_only = (policy["spec"]["podSelector"] for policy in of_spark)
    assert selects(whole, manifests.driver["metadata"]["labels"])
    assert selects(drivers_only, manifests.driver["metadata"]["labels"])
    assert selects(whole, executor["metadata"]["labels"])
    assert not selects(drivers_only, executor["metadata"]["labels"])


# The NetworkPolicies of a Hadoop cluster


NAME_NODE, RESOURCE_MANAGER, TRACKER, AGENT_CANARY, AGENT_CONTROL = 8020, 8088, 8031, 9899, 9898
WEB = Pod(namespace="demo", labels={"app": "web"})
ETL = mrclusters.cluster()
NODE = Pod(namespace="demo", labels={"boathouse.dev/job-uid": ETL.uid, "boathouse.dev/task-type": "master"})
CLIENTS = [Pod(namespace="demo", labels={"boathouse.dev/task-type": kind}) for kind in ("client", "map", "driver")]


def of_cluster(kind):
    return objects.network_policies(mrclusters.cluster(networkPolicy=kind))


@pytest.mark.parametrize("kind", ["Namespace", "Cluster"])
def test_nodes_of_a_cluster_reach_each_other_and_other_namespaces_do_not(kind):
    assert allowed(of_cluster(kind), NODE, NODE, TRACKER)
    for port in (NAME_NODE, RESOURCE_MANAGER, TRACKER):
        assert not allowed(of_cluster(kind), OTHER, NODE, port)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["Namespace", "Cluster"])
def test_pods_of_jobs_reach_the_ports_of_clients_only(kind, client):
    assert allowed(of_cluster(kind), client, NODE, NAME_NODE)
    assert allowed(of_cluster(kind), client, NODE, 40100)
    assert not allowed(of_cluster(kind), client, NODE, TRACKER)


def test_other_pods_of_the_namespace_reach_a_cluster_unless_it_says_so():
    assert allowed(of_cluster("Namespace"), WEB, NODE, NAME_NODE)
    assert not allowed(of_cluster("Cluster"), WEB, NODE, NAME_NODE)
    assert allowed(of_cluster("None"), OTHER, NODE, NAME_NODE)


@pytest.mark.parametrize("kind", ["Namespace", "Cluster"])
def test_nobody_but_the_cluster_itself_reaches_the_port_that_tests_the_policies(policies, operator, kind):
    whole = [*of_cluster(kind), *policies()]
    assert not allowed(whole, operator, NODE, AGENT_CANARY)
    assert not allowed(whole, WEB, NODE, AGENT_CANARY)


@pytest.mark.parametrize("kind", ["Namespace", "Cluster"])
def test_the_operator_alone_reaches_the_control_of_that_test(policies, operator, kind):
    whole = [*of_cluster(kind), *policies(policy={"egress": EGRESS})]
    assert allowed(whole, operator, NODE, AGENT_CONTROL)
    for source in (WEB, OTHER, NEIGHBOUR, *CLIENTS):
        assert not allowed(whole, source, NODE, AGENT_CONTROL)


def test_the_operator_may_try_that_port_where_its_own_connections_are_restricted(policies, operator):
    rendered = policies(policy={"egress": EGRESS})
    assert allowed(rendered, operator, NODE, AGENT_CANARY)
    assert not allowed(rendered, operator, NODE, NAME_NODE)


# The evaluator itself


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"operator": "In", "values": ["a"]}, True),
        ({"operator": "In", "values": ["b"]}, False),
        ({"operator": "NotIn", "values": ["a"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
    ],
)
def test_a_selector_matches_labels_by_its_operators(expression, matches):
    assert selects({"matchExpressions": [{"key": "k", **expression}]}, {"k": "a"}) is matches


def test_a_policy_without_rules_permits_nothing_and_rules_of_several_policies_add_up():
    closed = {"metadata": {"namespace": "demo"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
    opened = {"metadata": {"namespace": "demo"}, "spec": {"ingress": [{"ports": [{"port": 80, "endPort": 90}]}]}}
    assert not allowed([closed], OTHER, TASK, 80)
    assert allowed([closed, opened], OTHER, TASK, 85)
    assert not allowed([closed, opened], OTHER, TASK, 91)


def test_a_peer_without_a_namespace_selector_is_of_the_same_namespace():
    rule = {"from": [{"podSelector": {}}, {"ipBlock": {"cidr": "0.0.0.0/0"}}]}
    near = {"metadata": {"namespace": "demo"}, "spec": {"ingress": [rule]}}
    assert allowed([near], TASK, TASK, 80)
    assert not allowed([near], OTHER, TASK, 80)
