import pytest

from boathouse_cli import kinds, model, mrjobs, reading, tables
from boathouse_cli.errors import CommandError, ExitCode
from tests.builders import cli
from tests.builders.cli import printed


@pytest.mark.parametrize(("seconds", "expected"), [(0, "0s"), (59.6, "1m0s"), (200, "3m20s"), (90061, "1d1h")])
def test_durations_have_two_units(seconds, expected):
    assert model.duration(seconds) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(-1, "0s"), (59, "59s"), (200, "3m"), (90061, "1d")])
def test_ages_have_one_unit(seconds, expected):
    assert model.ago(seconds) == expected


@pytest.mark.parametrize(("size_bytes", "expected"), [(0, "0 B"), (1536, "1.5 KiB"), (3 * 2**40, "3.0 TiB")])
def test_sizes_have_binary_units(size_bytes, expected):
    assert model.size(size_bytes) == expected


@pytest.mark.parametrize("written", ["mrjob/a", "mrj/a", "mrjobs/a", "a"])
def test_a_job_may_be_named_as_kubectl_names_it(written):
    assert kinds.target(written) == (kinds.MRJOB, "a")


@pytest.mark.parametrize("written", ["node/a", "pod/"])
def test_other_kinds_are_refused_with_what_to_write(written):
    with pytest.raises(CommandError, match=r"write mrjob/NAME, sparkapp/NAME, mrcluster/NAME or pod/NAME") as caught:
        kinds.target(written)
    assert caught.value.code is ExitCode.USAGE


def test_the_list_shows_why_a_job_waits():
    waiting = cli.mrjob(conditions=[cli.condition("Scheduled", "False", "InsufficientCPU")], phase="Map")
    assert "InsufficientCPU" in printed(tables.jobs([mrjobs.read(waiting)], namespaces=False, now_s=cli.START_S))


def test_the_namespace_is_a_column_only_when_asked_for():
    job = mrjobs.read(cli.mrjob())
    assert "demo" in printed(tables.jobs([job], namespaces=True, now_s=cli.START_S))
    assert "demo" not in printed(tables.jobs([job], namespaces=False, now_s=cli.START_S))


def test_live_progress_counts_tasks():
    job = mrjobs.read(cli.mrjob(phase="Map", maps={"total": 8, "succeeded": 3, "running": 2, "failedAttempts": 1}))
    assert "3/8, 2 running, 1 attempts failed" in printed(reading.draw_job(job, now_s=cli.START_S + 5))
