"""The life of a job on a real cluster: suspended, expired, deleted, late, lost, killed; and what is said of it."""

import json

import pytest

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import errors
from e2e.tests import harness

pytestmark = pytest.mark.cluster

SLOW_MAP = {"command": ["sh", "-c", "sleep 4; exec python3 mapper.py"], "resources": harness.SMALL}
LONG_MAP = {"command": ["sleep", "120"], "resources": harness.SMALL}
"""For jobs that are deleted while it runs: a busy operator writes a status some seconds late."""
GREEDY = """
import sys, time
print("loading the model", file=sys.stderr, flush=True)
time.sleep(2)
held = bytearray(400 << 20)
held[::4096] = b"x" * len(held[::4096])
time.sleep(60)
"""


def patch(place, name, **spec):
    place.cluster.run("patch", "mrjob", name, "-n", place.namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def failed(place, name):
    job = place.finish(name)
    condition = job.condition(names.ConditionType.FAILED)
    assert job.phase == "Failed"
    assert condition is not None
    return condition


def status(place, name):
    return place.gateway.get("mrjobs", name).get("status", {})


def of_type(place, name, task_type):
    return [pod for pod in place.raw_pods(name) if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == task_type]


def test_a_suspended_job_holds_nothing_and_resumes_where_it_was(place):
    data = harness.text(5_000_000)
    place.put("in/a.txt", data)
    slow = {
        "command": ["sh", "-c", "sleep 3; python3 mapper.py"],
        "resources": harness.SMALL | {"limits": {"cpu": "1"}},
    }
    place.start("pause", mapper=slow, splitMaxSize="512Ki", suspend=True)
    harness.until(lambda: place.look("pause").phase == "Suspended", "the job says that it is suspended")
    assert place.pods("pause") == []
    patch(place, "pause", suspend=False)
    harness.until(lambda: (place.look("pause").maps.succeeded or 0) >= 2, "some maps are done")
    patch(place, "pause", suspend=True)

    def all_gone():
        return not [pod for pod in place.raw_pods("pause") if pod["status"]["phase"] in ("Pending", "Running")]

    harness.until(all_gone, "no pod of the suspended job is left")
    done = status(place, "pause")["maps"]["succeeded"]
    patch(place, "pause", suspend=False)
    place.succeed("pause")
    assert harness.pairs(place.parts("pause")) == harness.counted(data)
    final = status(place, "pause")
    assert final["failures"] == {"user": 0, "infrastructure": 0}
    assert done >= 2


def test_what_may_not_change_is_refused_by_name_and_placement_may_change_while_suspended(place):
    place.put("in/a.txt", b"a\n")
    place.start("fixed", suspend=True)
    with pytest.raises(errors.ClusterError, match=r"spec\.output is immutable"):
        patch(place, "fixed", output=place.url("elsewhere"))
    patch(place, "fixed", nodeSelector={"kubernetes.io/os": "linux"}, suspend=False)
    with pytest.raises(errors.ClusterError, match=r"only be changed while the job is suspended"):
        patch(place, "fixed", nodeSelector=None)
    place.succeed("fixed")
    selectors = [pod["spec"]["nodeSelector"] for pod in place.raw_pods("fixed")]
    assert selectors
    assert all(selector == {"kubernetes.io/os": "linux"} for selector in selectors)


def test_a_finished_job_expires_with_all_that_was_made_for_it(place):
    place.put("in/a.txt", b"a\nb\n")
    uid = place.look(place.start("brief", ttlSecondsAfterFinished=5)).uid
    _nothing_left(place, uid)
    assert place.parts("brief")


def test_a_job_that_is_deleted_while_it_runs_leaves_no_object(place):
    place.put("in/a.txt", harness.text(3_000_000))
    uid = place.look(place.start("gone", mapper=LONG_MAP)).uid
    harness.until(lambda: place.look("gone").maps.running, "maps run")
    place.cluster.run("delete", "mrjob", "gone", "-n", place.namespace, "--wait=false")
    _nothing_left(place, uid)


def test_a_job_that_is_cleaned_up_when_it_is_deleted_leaves_nothing_in_the_storage(place):
    place.put("in/a.txt", harness.text(3_000_000))
    uid = place.look(place.start("clean", mapper=LONG_MAP, cleanUp="OnDelete")).uid
    harness.until(lambda: place.look("clean").maps.running, "maps run")
    assert place.files("out-clean")
    place.cluster.run("delete", "mrjob", "clean", "-n", place.namespace, "--wait=false")
    _nothing_left(place, uid)
    assert place.files("out-clean") == {}


def test_of_two_jobs_with_one_output_the_second_fails(place):
    place.put("in/a.txt", harness.text(3_000_000))
    place.start("first", mapper=SLOW_MAP)
    harness.until(lambda: place.look("first").phase == "Map", "the maps begin")
    condition = failed(place, place.start("second", output=place.url("out-first")))
    assert condition.reason == "OutputExists"
    assert f"belongs to job {place.namespace}/first" in condition.message
    place.succeed("first")
    assert place.parts("first")


def _nothing_left(place, uid):
    def none():
        for kind in ("mrjobs", "pods", "configmaps"):
            items = place.cluster.get(kind, "-n", place.namespace)["items"]
            owned = [
                i for i in items if uid in json.dumps(i["metadata"].get("ownerReferences", [])) + i["metadata"]["uid"]
            ]
            if owned:
                return False
        return True

    harness.until(none, "nothing that the job owned is left")


def test_a_job_past_its_deadline_fails(place):
    place.put("in/a.txt", b"a\n")
    forever = {"command": ["sleep", "600"], "resources": harness.SMALL}
    condition = failed(place, place.start("late", mapper=forever, activeDeadlineSeconds=8))
    assert condition.reason == "DeadlineExceeded"
    harness.until(lambda: place.look("late").condition(names.ConditionType.CLEANED_UP).status == "True", "cleaned up")
    assert place.files("out-late") == {}


def test_a_command_that_does_nothing_is_ended(place):
    place.put("in/a.txt", b"a\n")
    stuck = {"command": ["sh", "-c", "echo waiting for the database >&2; sleep 600"], "maxAttempts": 1}
    condition = failed(place, place.start("stuck", mapper=stuck | {"resources": harness.SMALL}, taskTimeoutSeconds=15))
    assert condition.reason == "TaskTimeout"
    assert "waiting for the database" in condition.message


def test_reduces_start_before_the_last_map_and_the_result_is_right(place):
    data, last = harness.text(3_000_000), b"the last of all\n"
    place.put("in/a.txt", data)
    place.put("in/b.txt", last)
    script = "cat >input; if grep -qx 'the last of all' input; then sleep 25; fi; python3 mapper.py <input"
    one_slow = {"command": ["sh", "-c", script], "resources": harness.SMALL}
    place.start("early", mapper=one_slow, slowStartCompletedMapsPercent=20, splitMaxSize="256Ki")

    def overlaps():
        job = place.look("early")
        reducing = [p for p in of_type(place, "early", "reduce") if p["status"]["phase"] == "Running"]
        return reducing and job.phase == "Map" and job.maps.succeeded < job.maps.total

    harness.until(overlaps, "a reduce runs while maps are not done")
    place.succeed("early")
    assert harness.pairs(place.parts("early")) == harness.counted(data + last)


def test_a_task_killed_for_want_of_memory_says_which_field_to_raise(place):
    place.put("in/a.txt", b"a\n")
    mapper = {"command": ["python3", "-c", GREEDY], "maxAttempts": 2}
    condition = failed(place, place.start("greedy", mapper=mapper | {"resources": harness.SMALL}))
    assert condition.reason == "OOMKilled"
    assert "mapper's resources.requests.memory" in condition.message
    assert status(place, "greedy")["failures"]["user"] == 2


def test_an_evicted_task_is_not_held_against_the_job(place):
    place.put("in/a.txt", b"a\n")
    once = {"command": ["sh", "-c", "echo begun >&2; sleep 15; cat"], "maxAttempts": 1, "resources": harness.SMALL}
    place.start("evicted", mapper=once, reducer=None, numReduceTasks=None)

    def begun():  # a container's first process ignores the signal that ends it until it handles it
        pods = (p for p in of_type(place, "evicted", "map") if p["status"]["phase"] == "Running")
        return next((p for p in pods if "begun" in _log(place, p["metadata"]["name"])), None)

    running = harness.until(begun, "a map's command runs")
    _evict(place, running["metadata"]["name"])
    place.succeed("evicted")
    final = status(place, "evicted")
    assert final["failures"]["user"] == 0
    assert final["failures"]["infrastructure"] >= 1


def _log(place, pod):
    return place.cluster.run("logs", pod, "-n", place.namespace)


def _evict(place, pod):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": place.namespace}}
    path = f"/api/v1/namespaces/{place.namespace}/pods/{pod}/eviction"
    place.cluster.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def test_the_last_words_of_a_task_are_in_the_status_but_no_secret(place):
    place.put("in/a.txt", b"a\n")
    place.cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": place.namespace},
         "stringData": {"dsn": "pg-canary-4711"}}
    )  # fmt: skip
    env = [{"name": "DSN", "valueFrom": {"secretKeyRef": {"name": "db", "key": "dsn"}}}]
    talks = {"command": ["sh", "-c", "cat >/dev/null; echo cannot reach $DSN >&2; exit 7"], "maxAttempts": 1}
    condition = failed(place, place.start("talks", mapper=talks | {"resources": harness.SMALL}, env=env))
    assert "cannot reach ***" in condition.message
    found = status(place, "talks")
    assert found["lastFailures"][0]["exitCode"] == 7
    assert "pg-canary" not in json.dumps(place.gateway.get("mrjobs", "talks"))
