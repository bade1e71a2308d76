"""The recorder of decisions: what it writes, and what a comparison says of two recordings."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from benchmarks.decisions import __main__ as command, compare, journal, scenarios
from tests.builders import core

if TYPE_CHECKING:
    from boathouse_policies import model

SIZE = core.amount(500, 1)


def recording(*decisions: model.Decision, pending: int = 0, mean_s: float = 10.0) -> dict[str, journal.Run]:
    """The runs of a recording with one cycle."""
    text = io.StringIO()
    book = journal.Journal(text)
    book.begin("only")
    book.cycle(1.5, decisions, [journal.Pending("job/map", "Unschedulable", pending)] if pending else [])
    book.measure("mean_job_time_s", mean_s)
    return journal.parse(text.getvalue().splitlines())


def compared(first: dict[str, journal.Run], other: dict[str, journal.Run]) -> compare.Comparison:
    return compare.scenarios("test", first, other)


def test_equal_recordings_are_equal():
    assert compared(recording(core.create(resources=SIZE)), recording(core.create(resources=SIZE))).equal


def test_another_node_is_named_with_both_decisions():
    (found,) = compared(
        recording(core.create(on="n0", resources=SIZE)), recording(core.create(on="n1", resources=SIZE))
    ).divergences
    assert (found.kind, found.place) == ("d", 1)
    assert found.ours == "1.500000 Create ns/job/map-0 n0 500 1073741824 3"
    assert "n1" in found.theirs


def test_a_decision_that_is_missing_is_named():
    found = compared(recording(core.create(resources=SIZE)), recording()).divergences
    assert [divergence.theirs for divergence in found if divergence.kind == "d"] == ["(nothing more)"]


def test_another_number_of_pending_tasks_is_named_apart_from_decisions():
    found = compared(recording(pending=2), recording(pending=3)).divergences
    assert [
        (divergence.kind, divergence.ours, divergence.theirs) for divergence in found if divergence.kind == "p"
    ] == [("p", "1.500000 job/map Unschedulable 2", "1.500000 job/map Unschedulable 3")]


@pytest.mark.parametrize(("mean_s", "tolerable"), [(10.0, True), (10.049, True), (10.06, False)])
def test_means_may_differ_by_half_a_percent(mean_s, tolerable):
    assert compared(recording(), recording(mean_s=mean_s)).tolerable is tolerable


def test_a_run_that_one_recording_lacks_is_a_difference():
    found = compared(recording(), {})
    assert (found.missing, found.tolerable) == (("only",), False)


def test_a_scenario_that_one_recording_lacks_is_named_without_figures():
    for runs, place in (((recording(), {}), "a"), (({}, recording()), "b")):
        assert compare.lines(compared(*runs), most=3) == [f"only in {place}: test"]


def test_a_scenario_that_one_recording_lacks_is_no_difference_of_what_both_have():
    assert compare.scenarios("test", {}, recording(), common=True).equal


def test_unchanged_pending_classes_are_written_once():
    text = io.StringIO()
    book = journal.Journal(text)
    book.begin("only")
    for now_s in (1.0, 2.0):
        book.cycle(now_s, (), [journal.Pending("job/map", "Unschedulable", 2)])
    assert len(journal.parse(text.getvalue().splitlines())["only"].of("p")) == 1


def test_two_recordings_of_the_same_code_are_equal(tmp_path):
    for name in ("a", "b"):
        with journal.writing(tmp_path / name / f"x{journal.SUFFIX}") as book:
            scenarios.worlds_of("boathouse", range(1), book)
    (found,) = compare.folders(tmp_path / "a", tmp_path / "b")
    assert found.equal
    assert found.runs == 1
    assert len(journal.read(tmp_path / "a" / f"x{journal.SUFFIX}")["000-plain-small"].of("d")) > 10


def test_the_exit_code_says_whether_a_difference_matters(tmp_path, monkeypatch, capsys):
    for name, node in (("a", "n0"), ("b", "n1")):
        with journal.writing(tmp_path / name / f"x{journal.SUFFIX}") as book:
            book.begin("only")
            book.cycle(1.0, [core.create(on=node)], None)
    arguments = ["decisions", "compare", str(tmp_path / "a"), str(tmp_path / "b")]
    monkeypatch.setattr("sys.argv", arguments)
    assert command.main() == 0
    monkeypatch.setattr("sys.argv", [*arguments, "--strict"])
    assert command.main() == 1
    assert "decisions differ first at number 1" in capsys.readouterr().out


def test_a_folder_without_recordings_is_refused(tmp_path, monkeypatch, capsys):
    with journal.writing(tmp_path / "a" / f"x{journal.SUFFIX}") as book:
        scenarios.worlds_of("fifo", range(1), book)
    monkeypatch.setattr("sys.argv", ["decisions", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--common"])
    assert command.main() == 2
    assert "b has no recordings" in capsys.readouterr().out


def test_every_profile_is_in_every_kind_of_scenario():
    names = set(scenarios.catalogue(quick=True))
    for profile in scenarios.profiles.names():
        for kind in ("core", "instant", "heartbeats", "live", "table2-uniform-24"):
            assert f"{kind}/{profile}" in names
