"""Hadoop clusters of the attacker's: their image is its own, so are the reports of their agents, and their settings."""

import asyncio
import contextlib
import itertools
import json
import time
from xml.etree import ElementTree as ET

import pytest

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.services.mrcluster import files, model, objects
from boathouse.services.progress.limits import REPORT_DISTANCE_S
from boathouse_e2e import hostile, lab
from boathouse_task.cluster_contract import REPORT_MAX_BYTES
from tests.builders import clusters
from tests.hostile import reports
from tests.hostile.attacks.pressure import continues
from tests.hostile.form import Attack

NAME = "lake"
REPORT_S = 2.2
"""Between reports that the endpoint accepts."""
MOST_STATUS_BYTES = 16 * 2**10
MOST = 2**62
REFUSED = range(400, 500)
MALFORMED_STATUS = 400
FEW, MANY = 30, 1_000


def mrcluster(name=NAME, **spec):
    """An MRCluster in the attacker's namespace, whose data live as long as its pods."""
    volume, transient = {"emptyDir": True, "size": "256Mi"}, {"maximum": 3}
    fields = {"image": "hadoop:hostile", "transient": transient, **spec}
    return clusters.mrcluster(name, hostile.ATTACKER, cpu="100m", volume=volume, **fields)


async def status(siege, name=NAME):
    return (await siege.admin.get(model.MRCLUSTERS, name, hostile.ATTACKER)).get("status") or {}


async def condition(siege, kind, name=NAME):
    found = [
        cluster_condition
        for cluster_condition in (await status(siege, name)).get("conditions") or ()
        if cluster_condition["type"] == kind
    ]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")


async def begins(siege, **spec):
    """A cluster's master runs, and the operator knows it; returns what reports by its token."""
    made = await siege.attacker.create(mrcluster(**spec))
    agent = await reports.sender(siege, made["metadata"]["uid"], "master")

    async def is_known():
        return await agent.post(b"null") == MALFORMED_STATUS

    await siege.until(is_known, "the endpoint knows the master")
    await asyncio.sleep(REPORT_S)
    return agent


async def is_small(siege):
    """What a cluster says of itself does not make its status large, nor the page of metrics."""
    await continues(siege)
    assert len(json.dumps(await status(siege))) < MOST_STATUS_BYTES
    assert len(await siege.metrics()) < 400_000


# Reports

APPLICATION = {"id": "application_1_1", "state": "RUNNING"}
NODE = ["c0", "L", "R", 0, 0, 0, 0, 0]
MALFORMED = (
    b"",
    b"null",
    b"[" * 60_000,
    b"\xff\xfe",
    reports.report(version=["1", 2]),
    reports.report(version=[-1, 0]),
    reports.report(yarn={"started_s": -1}),
    reports.report(yarn={"started_s": 2**70}),
    reports.report(yarn={"started_s": 1, "pending": 1e300}),
    reports.report(hdfs={"cluster_id": "a\nb", "started_s": 1, "safe_mode": False}),
    reports.report(hdfs={"cluster_id": "x" * 101, "started_s": 1, "safe_mode": False}),
    reports.report(nodes=[["../../c0", *NODE[1:]]]),
    reports.report(nodes=[["c0\nt1", *NODE[1:]]]),
    reports.report(nodes=[NODE] * 2_000),
    reports.report(tags={"a-1": [APPLICATION | {"id": "../../ws/v1/cluster"}]}),
    reports.report(tags={"a-1": [APPLICATION | {"id": "application_1_1/state?user.name=hdfs"}]}),
    reports.report(tags={"a-1": [APPLICATION | {"id": "application_1_1\n"}]}),
    reports.report(tags={"a-1": [APPLICATION] * 9}),
    reports.report(tags={"../a": [APPLICATION]}),
    reports.report(tags={f"a-{number}": [] for number in range(40)}),
    reports.report(error="x" * 400),
)
LARGE = (b"9" * (REPORT_MAX_BYTES + 1), b" " * 8 * 2**20)


async def reports_malformed(siege):
    agent = await begins(siege)
    for body in (*MALFORMED, *LARGE):
        code = await agent.post(body)
        assert code in REFUSED or (body in LARGE and code == 0), (code, body[:80])
        await asyncio.sleep(REPORT_S)


async def has_no_figures(siege):
    """Of refused reports nothing has become part of the status."""
    await is_small(siege)
    found = await status(siege)
    assert not found.get("clusterID"), found
    assert found["phase"] in ("Pending", "Starting"), found


async def reports_too_often(siege):
    agent, body = await begins(siege), reports.report()
    began_s = time.monotonic()
    statuses = [code for _ in range(40) for code in await asyncio.gather(*(agent.post(body) for _ in range(10)))]
    lasted_s = time.monotonic() - began_s
    assert statuses.count(200) <= 1 + lasted_s / REPORT_DISTANCE_S, f"in {lasted_s:.1f} s: {statuses}"
    assert set(statuses) <= {200, 0, 404, 409, 429, 503}, set(statuses)


async def replays(siege):
    """One report over and over, as if the agent stood still; jobs believe no answer that follows none of ours."""
    agent = await begins(siege)
    tags = {"a-1": [APPLICATION]}
    for _ in range(5):
        assert await agent.post(reports.report(tags=tags, follows=7)) == 200
        await asyncio.sleep(REPORT_S)


async def is_ready_at_most(siege):
    assert (await status(siege))["phase"] in ("Starting", "Ready", "Degraded")
    await is_small(siege)


async def reports_as_another_pod(siege):
    """By a core pod, by a pod that is no cluster's, for a core pod, another cluster and another namespace."""
    agent = await begins(siege)
    core = await reports.sender(siege, agent.uid, "c0")
    await siege.attacker.create(hostile.pod("plain"))
    plain = await reports.sender_of(siege, agent.uid, "plain")
    other = await siege.attacker.create(mrcluster("other"))
    other_uid = other["metadata"]["uid"]
    body = reports.report()
    attempts = {
        "a core pod for itself": core.post(body),
        "a core pod for the master": core.post(body, pod=agent.pod),
        "a plain pod for itself": plain.post(body),
        "a plain pod for the master": plain.post(body, pod=agent.pod),
        "the master for a core pod": agent.post(body, pod=core.pod),
        "the master for another cluster": agent.post(body, uid=other_uid),
        "the master for no cluster": agent.post(body, uid="../../etc"),
        "the master for another namespace": agent.post(body, namespace=hostile.VICTIM),
    }
    statuses = {what: await attempt for what, attempt in attempts.items()}
    assert set(statuses.values()) <= {401, 403, 404}, statuses


async def has_not_come_up(siege):
    for name in (NAME, "other"):
        assert not (await status(siege, name)).get("clusterID")


GREEDY = {"resizing": {"policy": "GSP", "periodSeconds": 5}}


async def asks_for_more(siege):
    """Two figures that no cluster has, again and again: all containers wait, and there are no slots."""
    agent = await begins(siege, **GREEDY)
    counter = itertools.count(1)
    for _ in range(15):
        yarn = {"started_s": 1, "up_s": 1000, "pending": MOST, "apps_pending": MOST, "memory_mb": next(counter)}
        assert await agent.post(reports.report(yarn=yarn)) in (200, 429)
        await asyncio.sleep(REPORT_S)


async def has_its_maximum(siege):
    await is_small(siege)
    pods = await siege.pods(labels=f"{names.LABEL_KIND}={model.MRCLUSTERS.kind}")
    assert len(pods) <= 1 + 2 + 3, [pod_view.metadata.name for pod_view in pods]


async def changes_its_id(siege):
    agent = await begins(siege)
    for number in range(8):
        hdfs = {"cluster_id": f"CID-{number}", "started_s": number, "safe_mode": False}
        assert await agent.post(reports.report(hdfs=hdfs)) in (200, 429)
        await asyncio.sleep(REPORT_S)


async def is_degraded(siege):
    """The first ID stays, and the others are those of a foreign cluster."""
    found = await status(siege)
    assert found["clusterID"] == "CID-0", found
    assert (await condition(siege, "Degraded"))[:2] == ("True", "ForeignCluster")
    await is_small(siege)


async def holds_the_last_version(siege):
    """Orders whose version nothing is above: the cluster gets none that count, and another one does."""
    agent = await begins(siege)
    for version in ([MOST, MOST], [MOST - 1, 0], [0, 0]):
        assert await agent.post(reports.report(version=version)) in (200, 429)
        await asyncio.sleep(REPORT_S)


# Clusters of others


async def names_a_cluster_of_others(siege):
    """A cluster of the victim's namespace, by its name."""
    theirs = mrcluster("treasure")
    theirs["metadata"]["namespace"] = hostile.VICTIM
    await siege.admin.create(model.MRCLUSTERS, theirs, hostile.VICTIM)
    await siege.attacker.create(clusters.mrjob_on("treasure", "thief", hostile.ATTACKER))
    for name in (f"{hostile.VICTIM}/treasure", f"treasure.{hostile.VICTIM}", "../treasure"):
        with pytest.raises(errors.ApiError):
            await siege.attacker.create(clusters.mrjob_on(name, "thief-by-path", hostile.ATTACKER))


async def finds_no_cluster(siege):
    async def is_not_found():
        conditions = (await siege.status("thief")).get("conditions") or ()
        return any(
            (job_condition["type"], job_condition["reason"]) == ("Admitted", "ClusterNotFound")
            for job_condition in conditions
        )

    await siege.until(is_not_found, "the job says that there is no such cluster")
    assert not await siege.pods(labels="boathouse.dev/task-type=client")
    text = json.dumps(await siege.status("thief"))
    assert hostile.VICTIM not in text


# Names that are taken


async def created(siege, manifest):
    """Create a cluster; return it as the operator will see it."""
    body = await siege.attacker.create(manifest)
    settings = OperatorConfig.model_validate({**siege.lab.chart_config, "task": {"image": "task:dev"}})
    found = model.from_resource(body, settings)
    assert isinstance(found, model.Cluster), found
    return found


def metadata(name):
    return {"name": name, "namespace": hostile.ATTACKER}


def service(of):
    spec = {"clusterIP": "None", "selector": {"app": "mine"}, "ports": [{"port": 8020}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(of.service), "spec": spec}


def config_map(of):
    found = objects.config_map(of, files.render(of))
    script = {"start.sh": "exec sh -c 'while true; do :; done'"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(found["metadata"]["name"]), "data": script}


def network_policy(of):
    open_to_all = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}
    manifest = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": open_to_all}
    return manifest | {"metadata": metadata(of.named("cluster"))}


def claim(of):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = metadata(of.named("master"))
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": spec}


def pod(of):
    return hostile.pod(of.named("master"), schedulerName="other")


def takes(make, **spec):
    """Create a cluster while no operator runs, and an object with a name that it will need."""

    async def act(siege):
        await siege.attacker.create(make(await created(siege, mrcluster(**spec))))

    return act


async def says_whose_it_is(siege):
    """The cluster waits, and the operator neither uses, changes nor deletes what it has not created."""

    async def is_taken():
        return (await condition(siege, "Scheduled"))[:2] == ("False", "NameTaken")

    await siege.until(is_taken, "the cluster says that a name is taken")
    assert not await siege.pods(labels=f"{names.LABEL_TASK_TYPE}=master")
    kept = [
        event["requestURI"]
        for event in siege.seen()
        if event["user"]["username"] == lab.ACCOUNT
        and event["verb"] in ("delete", "patch")
        and event["objectRef"].get("namespace") == hostile.ATTACKER
        and event["objectRef"]["resource"] in TAKEN
        and event["objectRef"].get("name") != names.PROGRESS_CA_CONFIG_MAP
    ]
    assert kept == []


TAKEN = frozenset({"services", "configmaps", "networkpolicies", "persistentvolumeclaims"})
CLAIMED = {
    "master": {"resources": {"cpu": "100m", "memory": "1408Mi"}, "volume": {"size": "1Gi"}},
}


# Settings

INJECTIONS = {
    "dfs.namenode.handler.count": "</value></property><property><name>fs.defaultFS</name><value>hdfs://mine:8020",
    "dfs.client.example": "${env.BOATHOUSE_TOKEN} ${env.PATH} ${dfs.client.example}",
    "dfs.client.comment": "--> <!-- ]]> &lol; <![CDATA[",
}
OWN_HARM = {
    "yarn.nodemanager.container-executor.class": "org.example.Mine",
    "yarn.nodemanager.linux-container-executor.group": "root",
    "yarn.nodemanager.admin-env": "LD_PRELOAD=/mine.so",
    "yarn.nodemanager.health-checker.script.path": "/bin/false",
}
CLOSED = {"hadoop.proxyuser.mine.hosts": "*", "fs.defaultFS": "hdfs://mine:8020", "hadoop.tmp.dir": "/data/name"}
EVERYTHING = {
    "hdfs": {"settings": INJECTIONS},
    "yarn": {"settings": OWN_HARM},
    "hadoopSettings": CLOSED,
    "mapreduce": {"settings": {"mapreduce.map.java.opts": "-javaagent:/mine.jar -XX:OnError='sh -c id'"}},
}


async def read_settings(siege):
    """The settings that a cluster's pods mount, by file and key."""

    async def found():
        maps = (await siege.admin.list(catalogue.CONFIG_MAPS.untyped(), hostile.ATTACKER)).items
        return [stored_config_map for stored_config_map in maps if "hdfs-site.xml" in stored_config_map.get("data", {})]

    await siege.until(found, "the operator has written the settings")
    (config,) = await found()
    return {
        name: {
            setting.findtext("name"): setting.findtext("value")
            for setting in ET.fromstring(text).findall("property")  # noqa: S314 # of the operator
        }
        for name, text in config["data"].items()
        if name.endswith(".xml")
    }


async def are_only_values(siege):
    """They are values of their own keys, and no key of ours has another value."""
    found = await read_settings(siege)
    assert {key: found["hdfs-site.xml"][key] for key in INJECTIONS} == INJECTIONS
    assert found["core-site.xml"]["fs.defaultFS"].startswith("hdfs://master.")
    assert found["core-site.xml"]["hadoop.tmp.dir"] != CLOSED["hadoop.tmp.dir"]
    assert not any("proxyuser" in key for values in found.values() for key in values)
    is_true, _, message = await condition(siege, "SettingsOverridden")
    assert is_true == "True"
    assert all(key in message for key in CLOSED), message


async def run_where_others_do(siege):
    """The pods are as restricted as any, and only the agent has a token."""
    await are_only_values(siege)
    label = f"{names.LABEL_KIND}={model.MRCLUSTERS.kind}"
    await siege.until(lambda: siege.pods(labels=label), "the pods of the cluster are there")
    for cluster_pod in (await siege.admin.list(catalogue.PODS.untyped(), hostile.ATTACKER, labels=label)).items:
        spec = cluster_pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert not spec.get("hostNetwork")
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            secure = container["securityContext"]
            assert secure["allowPrivilegeEscalation"] is False, container["name"]
            assert secure["capabilities"] == {"drop": ["ALL"]}, container["name"]


async def makes_and_deletes_clusters(siege):
    for number in range(5):
        await siege.attacker.create(mrcluster(f"short-{number}"))
    for number in range(5):
        with contextlib.suppress(errors.NotFound):
            await siege.attacker.api.delete(model.MRCLUSTERS, f"short-{number}", hostile.ATTACKER)


async def changes_settings(siege):
    """Settings that are others each time: a ConfigMap for each, which are all gone in the end."""
    settings = {"hdfs": {"settings": {"dfs.client.example": str(time.monotonic())}}}
    with contextlib.suppress(errors.NotFound):
        await siege.attacker.api.patch(model.MRCLUSTERS, NAME, {"spec": settings}, hostile.ATTACKER)
    await asyncio.sleep(0.2)


def many(number):
    return lambda: (mrcluster(f"crowd-{n}") for n in range(number))


async def is_there(siege):
    await begins(siege)


ATTACKS = (
    Attack(
        name="an agent whose reports are malformed or too large",
        act=reports_malformed,
        holds=has_no_figures,
        most_reviews=30,
    ),
    Attack(name="an agent that reports without end", act=reports_too_often, holds=is_small, most_reviews=30),
    Attack(
        name="an agent that repeats one report", act=replays, holds=is_ready_at_most, most_writes=200, most_events=200
    ),
    Attack(
        name="pods that report for a cluster whose master they are not",
        act=reports_as_another_pod,
        holds=has_not_come_up,
        most_writes=250,
    ),
    Attack(
        name="figures that ask for ever more nodes",
        act=asks_for_more,
        holds=has_its_maximum,
        most_writes=300,
        most_events=200,
    ),
    Attack(name="a cluster ID that changes", act=changes_its_id, holds=is_degraded, most_writes=250, most_events=200),
    Attack(name="an agent that holds the last version of all orders", act=holds_the_last_version, holds=is_small),
    Attack(
        name="a job on a cluster of another namespace",
        act=names_a_cluster_of_others,
        holds=finds_no_cluster,
        most_writes=250,
        most_events=250,
    ),
    Attack(name="a Service with a cluster's name", act=takes(service), first=True, holds=says_whose_it_is),
    Attack(name="a NetworkPolicy with a cluster's name", act=takes(network_policy), first=True, holds=says_whose_it_is),
    Attack(
        name="a ConfigMap with a cluster's name", act=takes(config_map), first=True, holds=says_whose_it_is, long=True
    ),
    Attack(
        name="a claim with a cluster's name", act=takes(claim, **CLAIMED), first=True, holds=says_whose_it_is, long=True
    ),
    Attack(name="a pod with a cluster's name", act=takes(pod), first=True, holds=says_whose_it_is, long=True),
    Attack(
        name="30 clusters in one namespace", objects=many(FEW), holds=continues, most_writes=1_500, most_events=1_500
    ),
    Attack(
        name="1,000 clusters in one namespace",
        objects=many(MANY),
        holds=continues,
        most_writes=20_000,
        most_events=20_000,
        long=True,
    ),
    Attack(
        name="settings with XML and variables, and with keys that hurt their author",
        objects=lambda: [mrcluster(**EVERYTHING)],
        holds=run_where_others_do,
    ),
    Attack(
        name="settings with line ends",
        objects=lambda: [
            mrcluster(hdfs={"settings": {"dfs.client.example": f"a{character}b"}}) for character in "\n\r\x00\x1b"
        ],
        refused="control characters|invalid",
    ),
    Attack(
        name="names of settings with XML",
        objects=lambda: [
            mrcluster(hdfs={"settings": {key: "x"}}) for key in ("a</name>", "a b", "a\n", "../../etc/passwd", "")
        ],
        refused="a setting's name has",
    ),
    Attack(
        name="variables of a cluster that are the operator's",
        objects=lambda: [mrcluster(env=[{"name": "JAVA_HOME", "value": "/mine"}])],
        refused="JAVA_HOME",
    ),
    Attack(
        name="a cluster whose settings change in a loop",
        act=is_there,
        again=changes_settings,
        holds=continues,
        most_writes=800,
        most_events=400,
        long=True,
    ),
    Attack(
        name="clusters that are created and deleted in a loop",
        again=makes_and_deletes_clusters,
        holds=continues,
        most_writes=1_500,
        most_events=800,
        long=True,
    ),
)
