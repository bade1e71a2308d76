"""Why a task is on its node and has its size, and what was predicted of its job, as `explain` prints it."""

import json

import pytest

from boathouse.resources import names
from boathouse.suspension.stages import SuspensionRecord
from boathouse_cli import decisions, explain, model, mrjobs, sparkapps
from boathouse_policies import fspy, ila
from boathouse_policies.ikayak.remaining import Predictor
from boathouse_policies.ila.learning import Learner
from tests.builders import cli
from tests.builders.cli import condition

NOW_S = cli.START_S + 90
RECORD = SuspensionRecord(
    cpu_request_milli=500,
    cpu_limit_milli=501,
    since_s=NOW_S - 20,
    until_s=NOW_S + 100,
    reason="MapsNeedCpu",
    by="ikayak",
    order="7-1",
    why="gain 9",
)


def rows(pod, *subjects):
    found = explain.explain_pod(pod, [], now_s=NOW_S).details
    return [row for row in found if row[0] in subjects] if subjects else found


def with_annotations(pod, **written):
    annotations = {f"{names.GROUP}/{key.replace('_', '-')}": text for key, text in written.items()}
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations}}


def with_figures(**figures):
    return with_annotations(cli.task_pod(), figures=json.dumps(figures))


def with_cpu(pod, cpu):
    containers = [{"name": names.CONTAINER, "resources": {"requests": {"cpu": cpu}}}]
    return pod | {"spec": pod["spec"] | {"containers": containers}}


def of_job(*conditions, **status):
    return dict(mrjobs.read(cli.mrjob(conditions=list(conditions), **status)).details)


def test_a_pod_says_why_it_is_on_its_node():
    pod = with_figures(threshold=1.3, slowdown=1.125, reservedForSeconds=12.0, predictedWaitSeconds=90.0)
    assert rows(pod, "placed") == [
        ("placed", "predicted slowdown 1.12; threshold 1.30; reserved for 12s; predicted wait 1m30s")
    ]


def test_a_pod_says_which_model_has_predicted_its_program_best_and_how_well():
    pod = with_figures(slowdown=1.125, slowdownModel=1.0, slowdownError=0.123)
    assert rows(pod, "placed") == [
        (
            "placed",
            "predicted slowdown 1.12; best of the program so far: the additive model; with a mean error of 12%",
        )
    ]


@pytest.mark.parametrize(
    ("predictor", "told"), [(1.0, "the lengths of the phases of earlier reduces"), (9.0, "number 9")]
)
def test_a_reduce_says_what_predicts_its_remaining_time(predictor, told):
    pod = with_figures(remainingPredictor=predictor, remainingError=0.25)
    expected = f"predicted by {told}; with a mean error of 25% on the program"
    assert rows(pod, "remaining time") == [("remaining time", expected)]


def test_the_names_of_models_are_as_many_as_the_policies_have():
    assert len(decisions.MODELS) == len(Learner(ila.Config()).models)
    assert len(decisions.PREDICTORS) == len(Predictor)


def test_a_pod_says_what_has_predicted_the_sizes_of_its_program_best():
    ((_, told),) = rows(with_figures(group=4.0, sizeModel=1.0, sizeError=0.2), "order")
    assert told.endswith(
        "sizes of the program predicted best by its mean time per byte of input; with a mean error of 20%"
    )


def test_a_pod_says_why_it_has_its_size():
    figures = {
        "idealBytes": 2.0 * 1024**3,
        "seconds": 40.0,
        "idealSeconds": 30.0,
        "gainSeconds": 3.14,
        "costSeconds": 0.0,
    }
    figures["diskShare"] = 0.25
    pod = with_annotations(cli.task_pod(), figures=json.dumps(figures), decision="started with 1Gi instead of 2Gi")
    assert rows(pod, "size")[0][1].split("; ") == [
        "started with 1Gi instead of 2Gi",
        "ideal memory 2.0 GiB",
        "predicted run time 40s",
        "30s with the ideal memory",
        "25% of the node's disk budget",
        "gain 3.1 s of job time",
        "cost 0.0 s",
    ]


def ended_map(*, ran_s, **figures):
    return with_annotations(cli.ended_task_pod(cli.task_pod(), ("read", 0, ran_s)), figures=json.dumps(figures))


def of_maps(*pods):
    return dict(explain.explain_job(mrjobs.read(cli.mrjob()), list(map(model.task_pod, pods)), None, now_s=0).details)


def test_a_map_with_less_memory_that_ended_says_how_long_it_ran():
    (row,) = rows(ended_map(ran_s=50.0, seconds=40.0, idealSeconds=30.0), "size")
    assert row[1] == "predicted run time 40s; 30s with the ideal memory; ran 50s"


def test_a_job_says_what_less_memory_was_to_cost_its_maps_and_cost_them():
    maps = [ended_map(ran_s=ran_s, seconds=40.0, idealSeconds=30.0) for ran_s in (50.0, 60.0)]
    assert of_maps(*maps, cli.task_pod())["less memory"] == (
        "2 maps with less memory, mean run time: predicted 40.0 s, 30.0 s with the ideal, realised 55.0 s"
    )


def test_a_job_says_what_its_maps_waited_and_what_that_was_to_save():
    told = of_maps(ended_map(ran_s=50.0, waitedSeconds=12.0, escapedSeconds=45.0))["refused"]
    assert told == "1 map that waited for other neighbours, mean: waited 12.0 s to save 45.0 s, then ran 50.0 s"


def test_a_pod_with_less_cpu_says_what_it_has_and_whose():
    assert rows(with_figures(cpuShare=0.3, lentMilli=490.0), "size") == [
        ("size", "30% of the requested CPU; 490m CPU from suspended reducers")
    ]


def test_a_pod_says_which_place_its_job_had():
    pod = with_figures(virtualMemorySeconds=340.0 * 1024**3, group=fspy.Group.SIZED)
    assert rows(pod, "order") == [("order", "by size; virtual size 340.0 GiB·s")]


def test_each_group_of_the_order_by_size_has_a_text():
    assert len(set(decisions.GROUPS)) == len(decisions.GROUPS) == len(fspy.Group)
    assert rows(with_figures(group=fspy.Group.OVER), "order") == [("order", "probe, beyond the share of probes")]
    assert rows(with_figures(group=99), "order") == [("order", "group 99")]


def test_figures_of_a_later_version_are_printed_by_name():
    assert rows(with_figures(novelty=0.5), "figures") == [("figures", "novelty 0.5")]


@pytest.mark.parametrize(
    "written", ["", "[]", "{", "[" * 500, '{"slowdown": "high"}', '{"slowdown": NaN}', '{"slowdown": 1e999}', " " * 600]
)
def test_figures_that_cannot_be_read_give_no_rows(written):
    pod = with_annotations(cli.task_pod(), figures=written)
    assert rows(pod) == rows(cli.task_pod())


def test_a_suspended_reducer_says_since_when_how_long_and_why():
    pod = with_cpu(with_annotations(cli.task_pod("reduce"), suspension=RECORD.text()), "1m")
    assert rows(pod, "suspension") == [
        (
            "suspension",
            "suspended 20s ago, for 1m40s more at most: MapsNeedCpu, decided by ikayak; it requested 500m CPU; gain 9",
        )
    ]


def test_a_resumed_reducer_says_that_it_was_suspended():
    pod = with_cpu(with_annotations(cli.task_pod("reduce"), suspension=RECORD.text()), "500m")
    assert rows(pod, "suspension") == [
        ("suspension", "was suspended 20s ago: MapsNeedCpu, decided by ikayak; it requested 500m CPU; gain 9")
    ]


def test_a_record_that_cannot_be_read_gives_no_row():
    assert rows(with_annotations(cli.task_pod(), suspension="{}"), "suspension") == []


def test_a_job_says_its_predicted_size_and_what_it_used():
    prediction = {
        "probe": "Succeeded",
        "sampledFraction": 0.02,
        "mapSeconds": 12.0,
        "reduceSeconds": 30.5,
        "memorySeconds": 123.0,
        "source": "Probe",
        "usedMemorySeconds": 140.0,
        "error": -0.12,
    }
    found = of_job(prediction=prediction)
    assert found["size"] == (
        "predicted 123.0 GiB·s of memory, from a probe of 2.0% of the input; 12.0 s a map; 30.5 s a reduce; "
        "used 140.0 GiB·s (error -12%)"
    )
    assert found["probe"] == "Succeeded"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Stated", "predicted 5.0 GiB·s of memory, from run times of earlier jobs of the program"),
        ("Program", "predicted 5.0 GiB·s of memory, from earlier jobs of the program"),
        ("History", "predicted 5.0 GiB·s of memory, from the mean of earlier jobs"),
        ("Later", "predicted 5.0 GiB·s of memory"),
    ],
)
def test_a_prediction_names_its_source(source, text):
    assert of_job(prediction={"memorySeconds": 5, "source": source})["size"] == text


def test_a_probe_that_failed_says_why():
    assert of_job(prediction={"probe": "Failed", "reason": "OutOfMemory"})["probe"] == "Failed: OutOfMemory"


def test_a_job_without_a_prediction_has_no_rows_about_it():
    assert of_job(prediction={"probe": "None"}) == of_job() == {}


def test_a_job_says_that_reducers_are_suspended_and_that_signals_are_missing():
    found = of_job(
        condition("ReducersSuspended", "True", "MapsNeedCpu", "2 reducers until 12:00:00"),
        condition("SignalsAvailable", "False", "KubeletsNotRead", "set signals.kubelets.enabled"),
    )
    assert found == {"suspended": "2 reducers until 12:00:00", "signals": "set signals.kubelets.enabled"}


def test_a_job_says_which_policies_are_off_for_it():
    assert of_job(condition("PoliciesActive", "False", "Harmful", "it did harm"))["policies"] == "it did harm"


def test_a_time_that_suspends_no_reducers_is_explained():
    found = of_job(condition("ReducersSuspended", "False", "InvalidTime", "the annotation has no effect"))
    assert found == {"suspended": "the annotation has no effect"}


def test_conditions_that_are_as_they_should_be_give_no_rows():
    assert of_job(condition("ReducersSuspended", "False"), condition("SignalsAvailable", "True")) == {}


def of_app(*drivers):
    app, pods = sparkapps.read(cli.sparkapp()), [model.task_pod(pod) for pod in drivers]
    return dict(explain.explain_job(app, pods, None, now_s=NOW_S).details)


def test_an_application_says_where_its_last_driver_had_room_for_executors():
    old = with_annotations(cli.driver_pod(), reserved='{"node-2": 3}')
    new = with_annotations(cli.driver_pod(attempt=2), reserved='{"node-1": 1, "node-0": 2}')
    assert of_app(new, old)["reservation"] == (
        "executors that had room reserved when the driver was placed: 2 on node-0, 1 on node-1"
    )


def test_an_application_says_how_much_memory_its_executors_have_and_why():
    why = "executors have 2Gi of memory instead of 4Gi: no nodes had more free memory"
    driver = with_annotations(cli.driver_pod(), executor_memory="2147483648", decision=why)
    assert of_app(driver)["executor memory"] == why


def test_an_application_without_reservations_has_no_rows_about_them():
    assert not {"reservation", "executor memory"} & of_app(cli.driver_pod()).keys()
