"""MRJobs that run, on a real cluster."""

import pytest

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import faults
from e2e.tests import harness

pytestmark = pytest.mark.cluster


@pytest.mark.short
def test_the_word_count_equals_the_reference(place):
    data = harness.text(6_000_000)
    place.put("in/a.txt", data[:4_000_000])
    place.put("in/b.txt", data[4_000_000:])
    job = place.succeed(place.start("count", combiner={"command": ["python3", "reducer.py"]}))
    expected = harness.counted(data[:4_000_000])
    for word, count in harness.counted(data[4_000_000:]).items():
        expected[word] = expected.get(word, 0) + count
    assert harness.pairs(place.parts("count")) == expected
    assert job.maps.succeeded == job.maps.total >= 6
    assert job.reduces.succeeded == 2


def test_counters_count_every_record_once(place):
    data = harness.text(3_000_000)
    place.put("in/a.txt", data)
    job = place.succeed(place.start("count"))
    counters = {name: value for group in job.counters.values() for name, value in group.items()}
    assert counters["Map input records"] == data.count(b"\n")
    assert counters["Map output records"] == counters["Reduce input records"] == sum(harness.counted(data).values())
    assert counters["Reduce output records"] == len(harness.counted(data))


def test_a_map_only_job_writes_its_maps_output_in_order(place):
    data = harness.text(2_500_000)
    place.put("in/a.txt", data)
    place.succeed(
        place.start("upper", mapper={"command": ["tr", "a-z", "A-Z"], "resources": harness.SMALL}, **NO_REDUCE)
    )
    parts = place.parts("upper")
    assert sorted(parts) == ["part-00000", "part-00001", "part-00002"]
    assert b"".join(parts[name] for name in sorted(parts)) == data.translate(bytes.maketrans(LOWER, LOWER.upper()))


LOWER = b"abcdefghijklmnopqrstuvwxyz"
NO_REDUCE = {"reducer": None, "numReduceTasks": None, "keyOnlyOutput": True}


def test_a_key_field_partitioner_keeps_keys_with_equal_beginnings_together(place):
    lines = [f"{country:02d}-{city}\t1" for country in range(20) for city in range(50)]
    place.put("in/a.txt", "\n".join(lines).encode() + b"\n")
    place.succeed(
        place.start(
            "cities",
            mapper={"command": ["cat"], "resources": harness.SMALL},
            numReduceTasks=3,
            partitioner={"type": "KeyFieldBasedPartitioner", "options": "-k1.1,1.2"},
        )
    )
    parts = place.parts("cities")
    homes = [{line[:2] for line in data.splitlines()} for data in parts.values()]
    assert sum(map(len, homes)) == len(set.union(*homes)) == 20
    assert harness.pairs(parts) == {line.split("\t")[0].encode(): 1 for line in lines}


def test_files_from_urls_lie_in_the_working_folder(place):
    place.put("in/a.txt", b"the cat and the dog\n" * 10)
    stop = {"name": "stop.txt", "url": place.put("stop.txt", b"the\nand\n")}
    grep = {"command": ["grep", "-o", "-w", "-f", "stop.txt"], "resources": harness.SMALL}
    place.succeed(place.start("stops", mapper=grep, files=[stop], **NO_REDUCE))
    assert b"".join(place.parts("stops").values()) == b"the\nand\nthe\n" * 10


def test_globs_and_folders_choose_the_input(place):
    for name in ("in/a.txt", "in/b.log", "in/deep/c.txt", "in/_hidden.txt", "in/.hidden.txt"):
        place.put(name, name.encode() + b"\n")
    cat = {"command": ["cat"], "resources": harness.SMALL}
    place.start("glob", mapper=cat, input=[place.url("in/*.txt")], **NO_REDUCE)
    place.start("folder", mapper=cat, input=[place.url("in")], **NO_REDUCE)
    for name, expected in (("glob", [b"in/a.txt"]), ("folder", [b"in/a.txt", b"in/b.log", b"in/deep/c.txt"])):
        place.succeed(name)
        assert sorted(b"".join(place.parts(name).values()).splitlines()) == expected


def test_every_pod_of_a_job_is_bound_by_boathouse(place):
    place.put("in/a.txt", harness.text(2_000_000))
    first_epoch = faults.epoch(place.cluster)
    place.succeed(place.start("bound"))
    last_epoch = faults.epoch(place.cluster)
    pods = place.raw_pods("bound")
    assert {pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] for pod in pods} == {
        "setup",
        "map",
        "reduce",
        "commit",
    }
    for pod in pods:
        assert pod["spec"]["schedulerName"] == names.SCHEDULER_NAME
        assert first_epoch <= int(pod["metadata"]["annotations"][names.ANNOTATION_EPOCH]) <= last_epoch

    def scheduled_by():
        events = place.gateway.events(reason="Scheduled")
        return {event["involvedObject"]["name"]: event["reportingComponent"] for event in events}

    harness.until(lambda: scheduled_by().keys() >= {pod["metadata"]["name"] for pod in pods}, "every pod has its event")
    assert scheduled_by() == {pod["metadata"]["name"]: "boathouse.dev/operator" for pod in pods}


@pytest.mark.alone
def test_a_job_of_another_queue_with_equal_weight_starts_before_the_first_has_all_it_requests(place):
    place.put("in/a.txt", harness.text(6_000_000))
    slow = {"command": ["sh", "-c", "sleep 1; wc -l"], "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}}}
    place.start("left", queue="left", mapper=slow, splitMaxSize="128Ki", **NO_REDUCE)
    harness.until(lambda: place.look("left").maps.total, "the first job has its plan")
    place.start("right", queue="right", mapper=slow, splitMaxSize="256Ki", **NO_REDUCE)
    for name in ("left", "right"):
        place.succeed(name)
    maps = {name: [pod for pod in place.pods(name) if pod.task_type == "map"] for name in ("left", "right")}
    for one, other in (("left", "right"), ("right", "left")):
        assert min(pod.started_s for pod in maps[one]) < max(pod.started_s for pod in maps[other])
    first_right = min(pod.started_s for pod in maps["right"])
    before = sum(pod.started_s < first_right for pod in maps["left"])
    assert before < len(maps["left"]) * 0.8, "the second queue got nothing while the first had nearly all it wanted"


def test_a_job_that_waits_says_what_is_scarce_and_then_runs(place):
    place.put("in/a.txt", harness.text(6_000_000))
    wide = {"command": ["sh", "-c", "sleep 2; cat"], "resources": {"requests": {"cpu": "900m", "memory": "128Mi"}}}
    place.start("wide", mapper=wide, **NO_REDUCE)

    def waits() -> str | None:
        scheduled = place.look("wide").condition(names.ConditionType.SCHEDULED)
        waiting = scheduled is not None and scheduled.status == "False" and "cpu" in scheduled.message.lower()
        return scheduled.message if waiting else None

    harness.until(waits, "the job says that CPU is scarce")
    place.succeed("wide")
