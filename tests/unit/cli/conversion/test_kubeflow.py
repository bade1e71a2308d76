"""What Kubeflow's operator makes of an application: which of two settings counts, and what says nothing."""

import pytest

from boathouse_cli.conversion import manifests
from tests.builders.conversions import APPLICATION, both_roles, converted_application, spark_application
from tests.unit.cli.conversion.test_manifests import SPEC, note_paths

ROLES = ("driver", "executor")
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def of_role(role, conf=None, **fields):
    return converted_application(sparkConf=conf or {}, **{role: {**APPLICATION[role], **fields}})


def labelled(labels, **spec):
    given = spark_application(**{**APPLICATION, **spec})
    given["metadata"]["labels"] = labels
    return manifests.convert(given)


def test_labels_of_the_application_reach_its_pods():
    found = labelled({"team": "a"})
    assert found.notes == ()
    assert found.manifest["metadata"]["labels"] == {"team": "a"}
    assert [found.manifest["spec"][role]["labels"] for role in ROLES] == [{"team": "a"}] * 2


def test_labels_of_a_role_win_over_those_of_the_application_and_these_over_properties():
    conf = {f"spark.kubernetes.driver.label.{key}": "c" for key in "xy"}
    found = labelled({"x": "a", "z": "a"}, sparkConf=conf, driver={**APPLICATION["driver"], "labels": {"z": "b"}})
    assert found.manifest["spec"]["driver"]["labels"] == {"x": "a", "y": "c", "z": "b"}
    assert note_paths(found) == ['spec.sparkConf["spark.kubernetes.driver.label.x"]', "metadata.labels"]


def test_labels_that_belong_to_boathouse_are_noted():
    assert set(note_paths(labelled({"app.kubernetes.io/name": "x"}))) == {"metadata.labels"}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("key", "value", "fields", "field", "expected"),
    [
        ("kubernetes.ROLE.label.a", "1", {"labels": {"a": "2"}}, "labels", {"a": "2"}),
        ("kubernetes.ROLE.annotation.a", "1", {"annotations": {"a": "2"}}, "annotations", {"a": "2"}),
        ("kubernetes.ROLE.node.selector.a", "1", {"nodeSelector": {"a": "2"}}, "nodeSelector", {"a": "2"}),
        (
            "kubernetes.ROLE.secretKeyRef.A",
            "s:1",
            {"envSecretKeyRefs": {"A": {"name": "s", "key": "2"}}},
            "env",
            [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "2"}}}],
        ),
        ("VARIABLE.A", "1", {"envVars": {"A": "2"}}, "env", [{"name": "A", "value": "2"}]),
        ("VARIABLE.A", "1", {"env": [{"name": "A", "value": "2"}]}, "env", [{"name": "A", "value": "2"}]),
    ],
)
def test_a_field_wins_over_the_property_that_says_the_same(role, key, value, fields, field, expected):
    variable = {"driver": "kubernetes.driverEnv", "executor": "executorEnv"}[role]
    found = of_role(role, {f"spark.{key.replace('ROLE', role).replace('VARIABLE', variable)}": value}, **fields)
    assert found.manifest["spec"][role][field] == expected
    assert len(found.notes) == 1
    assert "is taken" in found.notes[0].advice or "are taken" in found.notes[0].advice


def test_a_secret_is_mounted_where_the_field_says():
    conf = {f"spark.kubernetes.{role}.secrets.keys": "/mnt/a" for role in ROLES}
    found = converted_application(
        sparkConf=conf, **both_roles(secrets=[{"name": "keys", "path": "/mnt/b/", "secretType": "Generic"}])
    )
    assert found.manifest["spec"]["volumes"] == [{"name": "keys", "mountPath": "/mnt/b", "secretName": "keys"}]
    assert note_paths(found) == [f'spec.sparkConf["spark.kubernetes.{role}.secrets.keys"]' for role in ROLES]


def test_the_node_selector_of_the_application_wins_over_its_property():
    found = converted_application(
        sparkConf={"spark.kubernetes.node.selector.disk": "hdd"}, nodeSelector={"disk": "ssd"}
    )
    assert found.manifest["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("fields", "key", "expected"),
    [
        ({"imagePullPolicy": "Always"}, "container.image.pullPolicy", {"imagePullPolicy": "Never"}),
        ({"imagePullSecrets": ["a"]}, "container.image.pullSecrets", {"imagePullSecrets": [{"name": "never"}]}),
    ],
)
def test_a_property_wins_where_the_other_operator_writes_it_last(fields, key, expected):
    value = "Never" if "pullPolicy" in key else "never"
    found = converted_application(sparkConf={f"spark.kubernetes.{key}": value}, **fields)
    assert expected.items() <= found.manifest["spec"].items()
    assert note_paths(found) == [f"spec.{next(iter(fields))}"]


def test_properties_do_not_rename_or_move_an_application():
    found = converted_application(sparkConf={"spark.app.name": "other", "spark.kubernetes.namespace": "elsewhere"})
    assert found.manifest["metadata"] == {"name": "pi", "namespace": "team"}
    assert len(found.notes) == 2


def test_the_image_of_the_application_wins_over_properties_of_roles():
    found = converted_application(image="i:2", sparkConf={"spark.kubernetes.driver.container.image": "i:1"})
    assert found.manifest["spec"]["image"] == "i:2"
    assert note_paths(found) == ['spec.sparkConf["spark.kubernetes.driver.container.image"]']


def test_an_image_of_a_property_stays_if_the_application_names_none():
    conf = {f"spark.kubernetes.{role}.container.image": "i:1" for role in ROLES}
    assert converted_application(sparkConf=conf).manifest["spec"]["image"] == "i:1"


def test_the_priority_of_a_role_wins_over_that_of_batch_options():
    options = {"priorityClassName": "low"}
    found = converted_application(batchSchedulerOptions=options, **both_roles(priorityClassName="high"))
    assert found.manifest["spec"]["podTemplate"] == {"priorityClassName": "high"}
    assert note_paths(found) == ["spec.batchSchedulerOptions.priorityClassName"]


def test_the_user_of_the_container_wins_over_that_of_the_pod():
    found = converted_application(
        **both_roles(securityContext={"runAsUser": 1}, podSecurityContext={"runAsUser": 2, "fsGroup": 3})
    )
    assert found.notes == ()
    assert found.manifest["spec"]["podTemplate"] == {"securityContext": {"runAsUser": 1, "fsGroup": 3}}


@pytest.mark.parametrize("role", ROLES)
def test_the_last_of_variables_with_one_name_counts(role):
    twice = [{"name": "A", "value": "1"}, {"name": "B", "value": "x"}, {"name": "A", "value": "2"}]
    found = of_role(role, env=twice, envVars={"A": "0"})
    variables = {variable["name"]: variable["value"] for variable in found.manifest["spec"][role]["env"]}
    assert (variables, len(found.manifest["spec"][role]["env"])) == ({"A": "2", "B": "x"}, 2)
    assert set(note_paths(found)) == {f"spec.{role}.env"}


def test_a_template_is_below_properties_and_fields():
    env = [{"name": "A", "value": "template"}, {"name": "B", "value": "template"}]
    template = {"metadata": {"labels": {"a": "template"}}, "spec": {"containers": [{"name": "x", "env": env}]}}
    conf = {"spark.kubernetes.driverEnv.A": "conf", "spark.kubernetes.driver.label.a": "conf"}
    found = of_role("driver", conf, template=template)
    assert found.manifest["spec"]["driver"]["labels"] == {"a": "conf"}
    assert {variable["name"]: variable["value"] for variable in found.manifest["spec"]["driver"]["env"]} == {
        "A": "conf",
        "B": "template",
    }
    assert len(found.notes) == 2


def test_a_context_of_a_pod_or_of_its_container_replaces_that_of_the_template():
    container = {"name": "x", "securityContext": {"runAsUser": 5}}
    template = {"spec": {"securityContext": {"fsGroup": 1, "runAsGroup": 2}, "containers": [container]}}
    found = converted_application(**both_roles(template=template, podSecurityContext={"runAsUser": 3, "fsGroup": 4}))
    assert found.notes == ()
    assert found.manifest["spec"]["podTemplate"] == {"securityContext": {"runAsUser": 5, "fsGroup": 4}}


def test_an_affinity_replaces_that_of_the_template():
    required = {"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}}
    given = {"podAntiAffinity": {AFFINITY: [{"topologyKey": "zone"}]}}
    found = converted_application(**both_roles(template={"spec": {"affinity": required}}, affinity=given))
    assert "podTemplate" not in found.manifest["spec"]
    assert note_paths(found) == [f"spec.{role}.affinity.podAntiAffinity" for role in ROLES]


def test_sources_of_variables_are_added_to_those_of_the_template():
    of_template, own = [{"secretRef": {"name": "a"}}], [{"configMapRef": {"name": "b"}}]
    template = {"spec": {"containers": [{"name": "x", "envFrom": of_template}]}}
    found = converted_application(**both_roles(template=template, envFrom=own))
    assert found.notes == ()
    assert found.manifest["spec"]["envFrom"] == [*of_template, *own]


@pytest.mark.parametrize(("account", "is_noted"), [("spark", True), ("boathouse-spark", False)])
def test_that_executors_do_not_have_the_account_of_the_driver_is_noted(account, is_noted):
    notes = of_role("driver", serviceAccount=account).notes
    assert [("executors have spec.serviceAccountName" in note.advice) for note in notes] == [True] * is_noted


def test_an_application_begins_with_its_minimum_of_executors():
    block = {"enabled": True, "minExecutors": 2, "initialExecutors": 1, "maxExecutors": 5}
    found = converted_application(dynamicAllocation=block, executor={"cores": 2, "memory": "2g"})
    assert found.notes == ()
    assert found.manifest["spec"]["dynamicAllocation"]["initialExecutors"] == 2


@pytest.mark.parametrize(
    ("name", "volume"),
    [("app.conf", "app-conf"), ("log4j2.properties.v1", "log4j2-properties-v1"), ("x" * 70, "x" * 58)],
)
def test_a_volume_of_a_config_map_has_a_name_that_volumes_may_have(name, volume):
    found = converted_application(**both_roles(configMaps=[{"name": name, "path": "/mnt/c"}]))
    assert found.notes == ()
    assert found.manifest["spec"]["volumes"] == [{"name": volume, "mountPath": "/mnt/c", "configMapName": name}]


def test_volumes_whose_names_become_alike_are_kept_apart():
    maps = [{"name": "a.b", "path": "/mnt/1"}, {"name": "a-b", "path": "/mnt/2"}]
    found = converted_application(hadoopConfigMap="h", **both_roles(configMaps=maps))
    assert [volume["name"] for volume in found.manifest["spec"]["volumes"]] == ["a-b", "a-b-2", "hadoop-conf"]


@pytest.mark.parametrize("block", [{"enabled": False, "minExecutors": 3, "maxExecutors": 2}, {"initialExecutors": -1}])
def test_a_disabled_dynamic_allocation_is_not_judged(block):
    found = converted_application(dynamicAllocation=block)
    assert found.notes == ()
    assert found.manifest["spec"] == SPEC


def test_a_disabled_dynamic_allocation_of_a_property_is_not_judged():
    conf = {
        f"spark.dynamicAllocation.{key}": value
        for key, value in {"enabled": "false", "minExecutors": "9", "maxExecutors": "2"}.items()
    }
    assert converted_application(sparkConf=conf).manifest["spec"]["dynamicAllocation"] == {"enabled": False}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("gpu", "resources", "noted"),
    [
        ({"name": "nvidia.com/gpu", "quantity": 0}, None, False),
        ({"name": "nvidia.com/gpu", "quantity": 2}, {"nvidia.com/gpu": 2}, False),
        ({"name": "nvidia.com/gpu"}, None, True),
        ({"quantity": 1}, None, True),
    ],
)
def test_a_pod_has_as_many_gpus_as_the_manifest_says(role, gpu, resources, noted):
    found = of_role(role, gpu=gpu)
    assert found.manifest["spec"][role].get("extendedResources") == resources
    assert note_paths(found) == ([f"spec.{role}.gpu"] if noted else [])


def test_fields_of_nodes_in_an_affinity_are_noted():
    terms = [{"matchExpressions": [ZONE], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    found = converted_application(**both_roles(affinity={"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": terms}}}))
    assert note_paths(found) == [
        f"spec.{role}.affinity.nodeAffinity.{AFFINITY}.nodeSelectorTerms.matchFields" for role in ROLES
    ]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds"),
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]}, "env"),
        ({"template": {"spec": {"automountServiceAccountToken": False}}}, "template.spec.automountServiceAccountToken"),
        ({"template": {"metadata": {"name": "x"}}}, "template.metadata.name"),
        ({"nodeSelector": "disk=ssd"}, "nodeSelector"),
        ({"tolerations": ["all"]}, "tolerations"),
        ({"gpu": {"name": "a/b", "quantity": 1, "vendor": "x"}}, "gpu.vendor"),
    ],
)
@pytest.mark.parametrize("role", ROLES)
def test_what_was_dropped_silently_of_a_role_is_noted(role, fields, path):
    assert note_paths(of_role(role, **fields)) == [f"spec.{role}.{path}"]


@pytest.mark.parametrize(
    ("volume", "mount", "path"),
    [
        ({"configMap": {"name": "c", "defaultMode": 0o755}}, {}, "v"),
        ({"configMap": {"name": "c"}}, {"mountPropagation": "Bidirectional"}, "v.mountPropagation"),
    ],
)
def test_what_was_dropped_silently_of_a_volume_is_noted(volume, mount, path):
    found = converted_application(
        volumes=[{"name": "v", **volume}], **both_roles(volumeMounts=[{"name": "v", "mountPath": "/mnt/v", **mount}])
    )
    assert note_paths(found) == [f"spec.{role}.volumeMounts.{path}" for role in ROLES]


def test_a_claim_that_is_read_only_stays_so():
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}]
    found = converted_application(volumes=volumes, **both_roles(volumeMounts=[{"name": "v", "mountPath": "/mnt/v"}]))
    assert found.manifest["spec"]["volumes"] == [
        {"name": "v", "mountPath": "/mnt/v", "readOnly": True, "claimName": "c"}
    ]


def test_what_was_dropped_silently_of_metadata_is_noted():
    given = spark_application(**APPLICATION)
    given["metadata"]["finalizers"] = ["x"]
    assert note_paths(manifests.convert({**given, "extra": 1})) == ["extra", "metadata.finalizers"]
