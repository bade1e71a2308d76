"""Which tests a line or a change concerns."""

import json

import pytest
from coverage import numbits

from boathouse_e2e import results
from tests.coverage import changed, record, recording, sources

CODE = """\
LIMIT = 3


def small(number):
    if number > LIMIT:
        return False
    return True


class Box:
    def open(self):
        return 1
"""
USER = """\
def use(box):
    return box.LIMIT
"""
SMALL, BOX, USED, LARGE = (f"tests/unit/test_{name}.py::test_it" for name in ("small", "box", "used", "large"))


@pytest.fixture
def recorded(tmp_path):
    (tmp_path / "operator").mkdir()
    (tmp_path / "operator/box.py").write_text(CODE)
    (tmp_path / "operator/user.py").write_text(USER)
    kept = recording.Recording(tmp_path / "recording.sqlite", tmp_path)
    lines = {("box", SMALL): [4, 5, 7], ("box", LARGE): [5, 6], ("box", BOX): [12], ("user", USED): [2]}
    kept.replace(
        recording.Run(
            files={name.partition("::")[0]: "digest" for _, name in lines},
            modules=recording.modules(tmp_path),
            seconds={SMALL: (1, 1), BOX: (2, 2), USED: (3, 3), LARGE: (0.5, 0.5)},
            lines={
                (f"operator/{module}.py", name): numbits.nums_to_numbits(at) for (module, name), at in lines.items()
            },
        )
    )
    return tmp_path, lambda: recording.Recording(tmp_path / "recording.sqlite", tmp_path)


def names(tests):
    return [test.name for test in tests]


def test_a_line_concerns_the_tests_that_execute_it_the_cheapest_first(recorded):
    assert names(recorded[1]().concerning("operator/box.py", 5)) == [LARGE, SMALL]
    assert names(recorded[1]().concerning("operator/box.py", 6)) == [LARGE]


def test_a_constant_concerns_the_tests_of_its_module_and_of_lines_that_name_it(recorded):
    assert names(recorded[1]().concerning("operator/box.py", 1)) == [LARGE, SMALL, BOX, USED]


def test_a_constant_concerns_the_tests_that_name_it_themselves(recorded):
    folder, opened = recorded
    (folder / "operator/ports.py").write_text("LIMIT = 1\n")
    (folder / "tests/unit").mkdir(parents=True)
    (folder / LARGE.partition("::")[0]).write_text("def test_it():\n    assert ports.LIMIT\n")
    assert LARGE in names(opened().concerning("operator/ports.py", 1))


def test_a_constant_concerns_the_tests_of_what_uses_a_constant_made_of_it(recorded):
    folder, opened = recorded
    (folder / "operator/ports.py").write_text("FIRST = 1\nLIMIT = {\n    'first': FIRST,\n}\n")
    assert USED in names(opened().concerning("operator/ports.py", 1))


def test_a_line_that_moved_concerns_the_tests_that_executed_it_before(recorded):
    folder, opened = recorded
    (folder / "operator/box.py").write_text("NEW = 1\n" + CODE)
    assert names(opened().concerning("operator/box.py", 7)) == [LARGE]


def test_a_new_line_concerns_the_tests_of_its_function(recorded):
    folder, opened = recorded
    (folder / "operator/box.py").write_text(CODE.replace("    return True", "    number += 1\n    return True"))
    assert names(opened().concerning("operator/box.py", 7)) == [LARGE, SMALL]


def test_recording_a_file_of_tests_again_replaces_what_it_executed(recorded):
    _, opened = recorded
    kept, file = opened(), SMALL.partition("::")[0]
    kept.replace(recording.Run(files={file: "new"}, modules={}, seconds={SMALL: (1, 1)}, lines={}))
    assert kept.digests()[file] == "new"
    assert names(opened().concerning("operator/box.py", 5)) == [LARGE]


def test_tests_of_a_file_that_is_gone_are_forgotten(recorded):
    folder, opened = recorded
    remaining = folder / LARGE.partition("::")[0]
    remaining.parent.mkdir(parents=True, exist_ok=True)
    remaining.write_text("")
    opened().forget_gone()
    assert names(opened().concerning("operator/box.py", 5)) == [LARGE]


@pytest.mark.parametrize(
    ("context", "tests"),
    [
        (SMALL, [SMALL]),
        (f"{SMALL} (call)", [SMALL]),
        ("below tests/unit/test_box.py", [BOX]),
        ("below tests/unit", [SMALL, BOX]),
        ("", []),
    ],
)
def test_what_a_child_or_a_shared_fixture_executes_counts_for_the_tests_that_use_it(context, tests):
    assert sorted(recording._tests_of(context, {SMALL, BOX})) == sorted(tests)


def test_the_innermost_function_of_a_line_is_found_with_its_class():
    module = sources.Module(CODE)
    assert [function.name for function in module.functions] == ["small", "Box.open"]
    assert module.function(12).name == "Box.open"
    assert module.function(11) is None  # the import executes it
    assert module.definitions[1] == {"LIMIT"}


def test_changed_lines_are_the_new_ones_and_those_beside_a_deletion():
    assert changed.changed_lines("a\nb\nc\n", "a\nx\nc\n") == {2}
    assert changed.changed_lines("a\nb\nc\n", "a\nc\n") == {1, 2}
    assert changed.changed_lines("", "a\n") == {1}


@pytest.fixture
def helpers(tmp_path):
    texts = {
        "tests/unit/test_a.py": "from boathouse import pods as code\nfrom tests.builders import pods\n",
        "tests/unit/test_b.py": "import tests.wire.world\n",
        "tests/wire/world.py": "from tests.builders.pods import pod\n",
        "tests/builders/pods.py": "PAGE = 'mrjob.md'\n",
        "tests/wire/conftest.py": "",
        "tests/wire/test_c.py": "'mrjob.md'",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return changed.Importers(tmp_path)


def test_a_changed_helper_concerns_the_tests_that_import_it_directly_or_not(helpers):
    assert helpers.tests("tests/builders/pods.py") == {"tests/unit/test_a.py", "tests/unit/test_b.py"}
    assert helpers.tests("tests/wire/conftest.py") == {"tests/wire/test_c.py", "tests/unit/test_b.py"}
    assert helpers.naming("mrjob.md") == {"tests/wire/test_c.py"}
    assert helpers.of("operator/boathouse/pods.py") == {"tests/unit/test_a.py"}


def test_the_cheapest_tests_run_within_the_time_and_the_others_are_named(recorded):
    selection = changed.Selection(tests=frozenset({SMALL, BOX, LARGE}), files=frozenset(), unfollowed=())
    assert changed.within(recorded[1](), selection, 2) == ([LARGE, SMALL], [BOX])


def test_a_recorded_test_is_charged_for_all_its_phases_and_for_no_other_work_of_the_run(tmp_path):
    common = {"outcome": "passed", "date": "2026-11-28", "sources": "s", "machine_cpu_s": 9.0, "properties": {}}
    phases = [("t", "setup", 1.0), ("t", "call", 2.0), ("t", "teardown", 0.5), ("", results.SESSION, 60.0)]
    rows = [
        {"test": test, "phase": phase, "own_cpu_s": took_s, "wall_s": 2 * took_s} | common
        for test, phase, took_s in phases
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert record.seconds(path) == {"t": (3.5, 7.0)}
