"""The results of a run, and how the next one resumes from them."""

import pytest

from boathouse_e2e import results, times

pytest_plugins = ["pytester"]
CONFTEST = """
import pathlib
from boathouse_e2e import results

def pytest_addoption(parser):
    parser.addoption("--results", type=pathlib.Path)
    parser.addoption("--resume", action="store_true")

def pytest_configure(config):
    config.pluginmanager.register(results.Recorder(config))
"""
TESTS = """
import pathlib

def test_that_passes(record_property):
    record_property("kills", 3)

def test_that_passes_when_mended():
    assert pathlib.Path({mended!r}).exists()
"""


@pytest.fixture
def suite(pytester):
    """Return a function that runs two tests, of which one fails until the file `mended` exists."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=TESTS.format(mended=str(pytester.path / "mended")))
    return lambda *arguments: pytester.inline_run(
        "-o", "asyncio_default_fixture_loop_scope=function", "--results=results.jsonl", *arguments
    )


def test_each_phase_of_a_test_has_a_row_and_so_has_the_run(suite, pytester):
    suite()
    rows = results.read(pytester.path / "results.jsonl")
    assert [(row.test, row.phase, row.outcome) for row in rows if "mended" not in row.test] == [
        ("test_suite.py::test_that_passes", "setup", "passed"),
        ("test_suite.py::test_that_passes", "call", "passed"),
        ("test_suite.py::test_that_passes", "teardown", "passed"),
        ("", results.SESSION, "failed"),
    ]
    assert [row.properties for row in rows if row.properties] == [{"kills": 3}]


def test_a_resumed_run_leaves_out_what_passed_and_keeps_its_rows(suite, pytester):
    suite()
    (pytester.path / "mended").touch()
    suite("--resume").assertoutcome(passed=1)
    assert {row.outcome for row in results.read(pytester.path / "results.jsonl") if row.test} == {"passed"}


def test_a_run_that_does_not_resume_runs_everything(suite, pytester):
    (pytester.path / "mended").touch()
    suite()
    suite().assertoutcome(passed=2)


def test_what_passed_on_other_sources_runs_again(suite, monkeypatch):
    suite()
    monkeypatch.setattr(results, "hash_of_sources", lambda: "other")
    suite("--resume").assertoutcome(passed=1, failed=1)


def test_documents_do_not_change_the_hash_of_the_sources(pytester):
    pytester.run("git", "init", "--quiet")
    (pytester.path / "module.py").write_text("1")
    before = results.hash_of_sources(pytester.path)
    (pytester.path / "README.md").write_text("text")
    assert before == results.hash_of_sources(pytester.path) != ""
    (pytester.path / "module.py").write_text("2")
    assert before != results.hash_of_sources(pytester.path)


def test_the_table_of_times_adds_the_phases_of_a_file(suite, pytester, capsys):
    suite()
    times.main([str(pytester.path / "results.jsonl")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("test_suite.py")] == ["2"]
