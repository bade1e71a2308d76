"""What the chart makes of its values, by helm itself."""

import json
from pathlib import Path

import pytest
import yaml

from boathouse.resources import config

EVERYTHING = str(Path(__file__).resolve().parents[3] / "charts/boathouse/ci/namespaces-values.yaml")
SPREAD = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}


class UniqueKeys(yaml.CSafeLoader):
    """Reads YAML as the safe loader does, and refuses a mapping with a key twice."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is there twice, line {node.start_mark.line + 1}: {keys}"
        return super().construct_mapping(node, deep)


@pytest.fixture(scope="module")
def pod(defaults):
    return defaults.find("Deployment")["spec"]["template"]["spec"]


@pytest.mark.parametrize("arguments", [(), ("--values", EVERYTHING)], ids=["defaults", "everything"])
def test_helm_lint_is_content(chart, arguments):
    assert chart.lint(*arguments) == ""


def test_two_replicas_stand_by_for_each_other(defaults):
    deployment = defaults.find("Deployment")["spec"]
    budget = defaults.find("PodDisruptionBudget")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == deployment["selector"]


def test_replicas_prefer_different_nodes_but_start_on_one(pod):
    spread = {rule["topologyKey"]: rule["whenUnsatisfiable"] for rule in pod["topologySpreadConstraints"]}
    assert spread == {"kubernetes.io/hostname": "ScheduleAnyway", "topology.kubernetes.io/zone": "ScheduleAnyway"}


def test_a_single_replica_has_no_budget_that_would_hold_up_a_drain(chart):
    assert not chart.render(replicas=1).of("PodDisruptionBudget")


def test_the_operator_is_placed_by_the_default_scheduler(pod):
    assert pod["schedulerName"] == "default-scheduler"


def test_the_services_put_nothing_into_the_operators_environment(pod):
    assert pod["enableServiceLinks"] is False


def test_no_manifest_has_a_key_twice(chart):
    """YAML's last one wins in silence."""
    for text in chart.text(), chart.text("--values", EVERYTHING):
        list(yaml.load_all(text, Loader=UniqueKeys))


def test_only_the_operators_pods_get_the_accounts_token(defaults, pod):
    assert defaults.find("ServiceAccount")["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True


def test_probes_ask_the_health_port(pod):
    (container,) = pod["containers"]
    paths = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {get["port"] for get in paths.values()} == {"health"}
    assert paths["livenessProbe"]["path"] == "/healthz"
    assert paths["readinessProbe"]["path"] == "/readyz"


def test_the_ports_are_those_of_the_operators_configuration(pod):
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    expected = config.OperatorConfig()
    assert ports == {
        "metrics": expected.metrics_port,
        "health": expected.health_port,
        "progress": expected.progress_port,
    }


def test_reports_go_to_the_leader_only(defaults):
    service = defaults.find("Service", "boathouse-progress")["spec"]
    assert service["selector"]["boathouse.dev/leader"] == "true"
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(443, "progress")]


def test_the_operator_reads_the_rendered_configuration(chart):
    rendered = chart.render("--values", EVERYTHING)
    text = rendered.find("ConfigMap", "boathouse-config")["data"]["config.json"]
    read = config.OperatorConfig.model_validate_json(text)
    assert read.namespace == "boathouse-system"
    assert read.watch_namespaces == ["boathouse-ci-a", "boathouse-ci-b"]
    assert read.queue_for("boathouse-ci-b", None) == "nightly"
    assert {queue.name: queue.weight for queue in read.queues} == {"default": 1, "nightly": 0.5}
    assert read.actuators == config.ActuatorsConfig(suspend=False, resize=False, speculate=True, scale=False)
    assert read.switchback == config.SwitchbackConfig(enabled=True, block_seconds=600)
    assert read.prediction == config.PredictionConfig(probe=False, least_maps=20, probe_seconds=60)
    assert read.signals.kubelets == config.KubeletsConfig(
        enabled=True, interval_seconds=30, ca_file="/etc/boathouse-kubelets/ca.crt", cadvisor=True, cpu="Pods"
    )
    nightly = read.queues[1]
    assert nightly.namespaces == ["boathouse-ci-b"]
    assert nightly.priority_classes == ["batch-low"]


def test_the_charts_defaults_are_the_operators(defaults):
    text = defaults.find("ConfigMap", "boathouse-config")["data"]["config.json"]
    images = {
        "task": config.TaskDefaults(image="localhost/boathouse-task:0.1.0"),
        "spark": config.SparkDefaults(image="localhost/boathouse-spark:0.1.0"),
        "hadoop": config.HadoopDefaults(image="localhost/boathouse-hadoop:0.1.0"),
    }
    assert config.OperatorConfig.model_validate_json(text) == config.OperatorConfig.model_validate(images)


def test_every_value_of_the_configuration_can_be_set(defaults):
    written = json.loads(defaults.find("ConfigMap", "boathouse-config")["data"]["config.json"])
    fixed_by_the_chart = {"progressService", "progressPort", "metricsPort", "healthPort"}
    fields = {field.alias for field in config.OperatorConfig.model_fields.values()}
    assert set(written) == fields - fixed_by_the_chart
    assert set(written["spark"]) == {field.alias for field in config.SparkDefaults.model_fields.values()}
    assert set(written["hadoop"]) == {field.alias for field in config.HadoopDefaults.model_fields.values()}
    assert set(written["task"]) == {field.alias for field in config.TaskDefaults.model_fields.values()}
    for name, section in {"actuators": config.ActuatorsConfig, "prediction": config.PredictionConfig}.items():
        assert set(written[name]) == {field.alias for field in section.model_fields.values()}
    kubelets = {field.alias for field in config.KubeletsConfig.model_fields.values()}
    assert set(written["signals"]["kubelets"]) == kubelets - {"caFile"}
    assert set(written["tenantLimits"]) == {field.alias for field in config.TenantLimits.model_fields.values()}


@pytest.mark.parametrize("shadow", ["", "fair"])
def test_the_operator_may_write_the_report_of_a_shadow_only_if_there_is_one(chart, shadow):
    rendered = chart.render("--set", f"shadowProfile={shadow}")
    rules = rendered.find("Role", "boathouse-leader")["rules"]
    named = {name for rule in rules for name in rule.get("resourceNames", ())}
    assert ("boathouse-shadow" in named) is bool(shadow)
    written = json.loads(rendered.find("ConfigMap", "boathouse-config")["data"]["config.json"])
    assert written["shadowProfile"] == shadow


def test_the_authority_of_the_kubelets_is_where_the_configuration_says(chart, pod):
    assert len(pod["volumes"]) == 2
    mounted = chart.render("--values", EVERYTHING).find("Deployment")["spec"]["template"]["spec"]
    (volume,) = (volume for volume in mounted["volumes"] if volume["name"] == "kubelet-authority")
    assert volume["configMap"]["name"] == "kubelet-authority"
    assert volume["configMap"]["items"] == [{"key": "bundle.pem", "path": "ca.crt"}]
    assert {"name": "kubelet-authority", "mountPath": "/etc/boathouse-kubelets", "readOnly": True} in mounted[
        "containers"
    ][0]["volumeMounts"]


@pytest.mark.parametrize("kubelets", [{}, {"insecureSkipVerify": True, "caConfigMap": {"name": "ca"}}])
def test_kubelets_are_verified_or_explicitly_not(chart, kubelets):
    assert "set either caConfigMap.name" in chart.refusal(signals={"kubelets": {"enabled": True, **kubelets}})


def test_a_limit_for_each_namespace_reaches_the_operator(chart):
    rendered = chart.render(tenantLimits={"maxUnfinishedJobs": 7})
    text = rendered.find("ConfigMap", "boathouse-config")["data"]["config.json"]
    assert config.OperatorConfig.model_validate_json(text).tenant_limits.max_unfinished_jobs == 7


def test_a_misspelt_limit_is_refused(chart):
    assert "maxUnfinishdJobs" in chart.refusal(tenantLimits={"maxUnfinishdJobs": 7})


def test_a_changed_configuration_restarts_the_operator(chart, defaults):
    def checksum(manifests):
        return manifests.find("Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum(chart.render(pendingAhead=6)) != checksum(defaults)


def test_a_digest_wins_over_the_tag(chart):
    image = {"registry": "registry.example", "repository": "b/op", "tag": "1", "digest": "sha256:" + "a" * 64}
    (container,) = chart.render(image=image).find("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example/b/op@sha256:{'a' * 64}"


def test_placement_values_reach_the_pod(chart):
    values = {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "topologySpreadConstraints": [SPREAD],
    }
    pod = chart.render(**values).find("Deployment")["spec"]["template"]["spec"]
    assert {name: pod[name] for name in values} == values


def test_custom_resources_are_kept_when_the_release_is_uninstalled(chart, defaults):
    definitions = defaults.of("CustomResourceDefinition")
    assert [definition["metadata"]["name"] for definition in definitions] == [
        "mrclusters.boathouse.dev",
        "mrjobs.boathouse.dev",
        "sparkapps.boathouse.dev",
    ]
    for definition in definitions:
        assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert not chart.render(crds={"install": False}).of("CustomResourceDefinition")


def test_flow_schemas_put_renewals_before_the_operators_other_requests(defaults):
    levels = {
        schema["metadata"]["name"]: schema["spec"]["priorityLevelConfiguration"]["name"]
        for schema in sorted(defaults.of("FlowSchema"), key=lambda schema: schema["spec"]["matchingPrecedence"])
    }
    assert list(levels.items()) == [("boathouse-leader-election", "leader-election"), ("boathouse", "workload-high")]


def test_there_are_no_webhooks(defaults):
    assert not defaults.of("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def test_monitoring_is_off_until_asked_for(chart, defaults):
    assert not defaults.of("ServiceMonitor")
    everything = chart.render("--values", EVERYTHING)
    assert everything.find("ServiceMonitor")["spec"]["endpoints"][0]["port"] == "metrics"
    assert json.loads(everything.find("ConfigMap", "boathouse-dashboard")["data"]["boathouse.json"])["panels"]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"namespace": "a"}, "additional properties 'namespace' not allowed"),
        ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy': value must be one of"),
        ({"queues": []}, "at '/queues'"),
        ({"queues": [{"name": "a", "limits": {"cpu": "lots"}}]}, "at '/queues/0/limits/cpu': 'lots' does not match"),
        ({"queues": [{"name": "a", "namespaces": ["A b"]}]}, "at '/queues/0/namespaces/0': 'A b' does not match"),
        ({"queues": [{"name": "a", "priorityClasses": "low"}]}, "at '/queues/0/priorityClasses': got string"),
        ({"profile": "random"}, "at '/profile': value must be one of"),
        ({"spark": {"serviceAccount": "default"}}, "at '/spark/serviceAccount': 'default' does not match"),
        ({"spark": {"serviceAccount": "boathouse-sparkle"}}, "at '/spark/serviceAccount': 'boathouse-sparkle' does"),
        ({"spark": {"priorityClass": "a"}}, "additional properties 'priorityClass' not allowed"),
    ],
)
def test_a_wrong_value_is_refused_by_name(chart, values, complaint):
    assert complaint in chart.refusal(**values)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"defaultQueue": "nightly"}, 'defaultQueue is "nightly", which is not among the queues: default'),
        (
            {"namespaceQueues": {"a": "nightly"}},
            'namespaceQueues.a is "nightly", which is not among the queues: default',
        ),
        ({"queues": [{"name": "default"}, {"name": "default"}]}, 'queues: "default" is there twice'),
        (
            {"queues": [{"name": "default"}, {"name": "b", "namespaces": ["c"]}], "namespaceQueues": {"a": "b"}},
            'namespaceQueues.a is "b", which does not accept the namespace: add a to the queue',
        ),
        (
            {"queues": [{"name": "default", "namespaces": ["a", "b"]}]},
            'defaultQueue is "default", which accepts only a, b: leave its namespaces empty',
        ),
        (
            {"queues": [{"name": "default", "namespaces": ["a"]}], "namespaces": ["a", "b"]},
            'defaultQueue is "default", which does not accept the namespace b',
        ),
        (
            {"namespaces": ["a"], "spark": {"namespaces": ["a", "b"]}},
            "spark.namespaces: Boathouse does not run in b: add it to namespaces",
        ),
        ({"lease": {"durationSeconds": 5}}, "lease: durationSeconds must be more than renewDeadlineSeconds"),
    ],
)
def test_values_that_contradict_each_other_are_refused_before_the_operator_sees_them(chart, values, complaint):
    assert complaint in chart.refusal(**values)


def test_an_older_kubernetes_is_refused(chart):
    assert "requires kubeVersion: >=1.35" in chart.refusal("--kube-version=1.34.1")
