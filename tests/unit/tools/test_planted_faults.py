"""The faults that make test-mutations plants, and what it says of them."""

import dataclasses
import importlib.util

import pytest

from tests.coverage import recording
from tests.mutations import faults, operators, page, plugin, running, worker

CODE = '''\
"""A module."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Counter"]


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count: int = 0

    def add(self, numbers: "Iterable[int]") -> bool:
        """Add numbers."""
        total = sum(numbers, 1)
        log.info("adding %s", total)
        self.count += total
        match total:
            case 1:
                self.reset()
            case _:
                raise ValueError
        return self.count < 5 and total > 1
'''


def changes():
    return {(change.family, change.line, change.old, change.new) for change in operators.Changes(CODE).found}


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("self.count += total", (operators.Family.STATEMENT, "self.count += total", "pass")),
        ("self.reset()", (operators.Family.STATEMENT, "self.reset()", "pass")),
        ("raise ValueError", (operators.Family.STATEMENT, "raise ValueError", "pass")),
        ("return self", (operators.Family.RETURN, "return self.count < 5 and total > 1", "return True")),
        ("return self", (operators.Family.RETURN, "return self.count < 5 and total > 1", "return False")),
        ("return self", (operators.Family.COMPARISON, "< 5", "<= 5")),
        ("total = sum", (operators.Family.ARGUMENT, "sum(numbers, 1)", "sum(numbers, )")),
        ("total = sum", (operators.Family.CONSTANT, "1", "2")),
    ],
)
def test_statements_results_conditions_and_constants_are_changed(line, change):
    number = next(at for at, text in enumerate(CODE.splitlines(), 1) if line in text)
    assert (change[0], number, *change[1:]) in changes()


@pytest.mark.parametrize("text", ["A module", "TYPE_CHECKING", "__all__", "Counts.", "log.info", "from "])
def test_nothing_is_changed_that_no_test_should_check(text):
    numbers = {at for at, line in enumerate(CODE.splitlines(), 1) if text in line}
    assert numbers
    assert not {change for change in changes() if change[1] in numbers}


def test_a_variable_is_not_set_to_none_since_any_test_fails_at_once():
    assert not [change for change in changes() if change[2].startswith("total =")]


def test_a_change_alters_one_place_only():
    found = operators.Changes(CODE)
    for change in found.found:
        before, after = CODE.splitlines(), found.apply(change).splitlines()
        assert [line for line in after if line not in before] or len(after) < len(before), change


@pytest.fixture
def checkout(tmp_path):
    for folder in faults.PACKAGES.values():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "counting.py").write_text(CODE)
    return tmp_path


def test_the_same_faults_are_chosen_each_time_one_for_a_line(checkout):
    chosen = [fault for fault in faults.choose("cluster", checkout) if not fault.planted]
    assert chosen == [fault for fault in faults.choose("cluster", checkout, checkout / "kept") if not fault.planted]
    assert chosen == [fault for fault in faults.choose("cluster", checkout, checkout / "kept") if not fault.planted]
    assert len({fault.line for fault in chosen}) == len(chosen) > 3


def test_a_change_of_one_function_leaves_the_faults_of_others(checkout):
    before = {(fault.function, fault.old, fault.new) for fault in faults.choose("cluster", checkout)}
    file = checkout / faults.PACKAGES["cluster"] / "counting.py"
    file.write_text(CODE.replace("class Counter:", "def new() -> int:\n    return 7\n\n\nclass Counter:"))
    after = {(fault.function, fault.old, fault.new) for fault in faults.choose("cluster", checkout)}
    assert before < after


def test_small_packages_get_enough_faults_and_large_ones_their_share():
    assert faults.shares({"small": 10, "large": 990}) == {"small": faults.LEAST, "large": round(0.99 * faults.TOTAL)}


def test_every_fault_that_is_planted_by_hand_has_its_place():
    texts = recording.modules()
    found = list(faults.planted(texts))
    assert len(found) >= 5
    for fault in found:
        compile(fault.mutated, fault.path, "exec")


def test_a_planted_fault_whose_text_is_gone_says_what_to_correct(tmp_path):
    file = tmp_path / "planted.toml"
    file.write_text('[[fault]]\nfile = "a.py"\nwhy = "w"\nold = "x = 1"\nnew = "x = 2"\n')
    with pytest.raises(SystemExit, match=r"planted.toml: a.py has this text 0 times, not once; correct it: x = 1"):
        list(faults.planted({"a.py": "y = 1\n"}, file))


FAULT = faults.Fault(
    path="operator/boathouse/cluster/a.py", line=3, function="f", family="constant", old="1 | 2", new="3", mutated="x"
)
TEST = recording.Test(name="tests/unit/test_a.py::test_one", file="tests/unit/test_a.py", cpu_s=0.1, wall_s=0.1)


def result(caught_by="", **changes):
    values = {"tests": (TEST.name,), "executed_by": 1, "took_s": 1.0, "digests": {}}
    return running.Result(key=FAULT.key, caught_by=caught_by, **{**values, **changes})


def tried(*, caught, survived):
    results = [result("t")] * caught + [result()] * survived
    return [page.Tried(package="cluster", fault=FAULT, result=one) for one in results]


def test_a_package_with_fewer_than_nine_of_ten_faults_caught_is_below():
    assert page.below(tried(caught=9, survived=1)) == []
    assert page.below(tried(caught=8, survived=1)) == ["cluster"]


def test_the_page_has_the_reason_of_each_survivor_or_says_that_there_is_none():
    known = {(FAULT.path, "f", "1 | 2", "3"): "The result is the same."}
    assert "| `` 1 \\| 2 `` → `` 3 `` | The result is the same. |" in page.page(
        tried(caught=1, survived=1), {"cluster": 3}, known
    )
    assert page.NO_REASON in page.page(tried(caught=1, survived=1), {"cluster": 3}, {})


def test_the_list_of_survivors_shows_the_change_and_the_cheapest_tests(tmp_path):
    (tmp_path / "operator/boathouse/cluster").mkdir(parents=True)
    (tmp_path / FAULT.path).write_text("y")
    shown = page.survivors("cluster", tried(caught=0, survived=1), 1, {}, tmp_path)
    assert "-y\n+x\n" in shown
    assert f"- `{TEST.name}`" in shown


@pytest.fixture
def results(tmp_path):
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / TEST.file).write_text("first")
    return lambda: running.Results(tmp_path / "results.jsonl", tmp_path), tmp_path / TEST.file


def test_a_result_is_kept_until_the_module_or_its_tests_change(results):
    opened, file = results
    opened().add(result(digests={TEST.file: opened().digest(TEST.file)}))
    assert opened().get(FAULT, [TEST]) is not None
    assert opened().get(dataclasses.replace(FAULT, mutated="z"), [TEST]) is None
    assert opened().get(FAULT, [TEST, dataclasses.replace(TEST, file="tests/unit/test_new.py")]) is None
    file.write_text("changed")
    assert opened().get(FAULT, [TEST]) is None


def test_a_survivor_meets_only_tests_that_are_new_or_have_changed(results):
    opened, _ = results
    new = dataclasses.replace(TEST, file="tests/unit/test_new.py")
    opened().add(result(digests={TEST.file: opened().digest(TEST.file)}))
    assert opened().left(FAULT, [TEST, new]) == [new]
    assert opened().left(dataclasses.replace(FAULT, mutated="z"), [TEST, new]) == [TEST, new]


def test_results_of_other_code_are_forgotten(results):
    opened, _ = results
    other = dataclasses.replace(FAULT, mutated="z")
    for fault in (FAULT, other):
        opened().add(dataclasses.replace(result(TEST.name), key=fault.key))
    opened().keep_only([FAULT])
    assert opened().get(FAULT, [TEST]) is not None
    assert opened().get(other, [TEST]) is None


def test_a_result_ends_with_a_change_of_what_its_test_uses(results):
    opened, file = results
    builder, fixtures = file.parents[1] / "builders.py", file.parents[1] / "conftest.py"
    file.write_text("from tests import builders")
    for used in (builder, fixtures):
        used.write_text("first")
    opened().add(result(TEST.name, digests={TEST.file: opened().digest(TEST.file)}))
    for used in (builder, fixtures):
        used.write_text("changed")
        assert opened().get(FAULT, [TEST]) is None
        used.write_text("first")
    assert opened().get(FAULT, [TEST]) is not None


def test_a_fault_that_was_caught_stays_caught_when_other_tests_are_added(results):
    opened, _ = results
    opened().add(result(TEST.name, digests={TEST.file: opened().digest(TEST.file)}))
    assert opened().get(FAULT, [TEST, dataclasses.replace(TEST, file="tests/unit/test_new.py")]) is not None


class Planting:
    """A worker whose runs fail as told."""

    def __init__(self, fails):
        self.health, self._fails = running.Health(), fails
        self.worker = running.Worker(None, self.health)
        self.worker._run = self._run

    def _run(self, tests, fault, is_whole=False):  # noqa: ARG002 - as the worker calls it
        failing = [test.name for test in tests if self._fails(test.name, fault)]
        return {
            "begun": [test.name for test in tests],
            "failing": failing,
            **({"fails": failing[0]} if failing else {}),
        }

    def attempt(self, left=slice(None)):
        tests = [dataclasses.replace(TEST, name=f"t{number}", cpu_s=number) for number in range(4)]
        return self.worker.try_fault(FAULT, tests, lambda _: "", tests[left])


def test_the_first_test_that_fails_catches_a_fault():
    assert Planting(lambda name, fault: fault and name in {"t2", "t3"}).attempt().caught_by == "t2"


def test_of_a_survivor_only_the_tests_that_are_left_run():
    assert not Planting(lambda name, fault: fault and name == "t2").attempt(left=slice(1)).is_caught
    assert Planting(lambda name, fault: fault and name == "t0").attempt(left=slice(1)).caught_by == "t0"


def test_a_fault_that_no_test_notices_survives():
    assert not Planting(lambda name, fault: False).attempt().is_caught  # noqa: ARG005


def test_a_test_that_fails_without_a_fault_catches_nothing():
    planting = Planting(lambda name, fault: name == "t1")  # noqa: ARG005
    assert not planting.attempt().is_caught
    assert planting.health.failing == {"t1"}
    assert Planting(lambda name, fault: name == "t1" or (fault and name == "t3")).attempt().caught_by == "t3"


def test_the_chosen_tests_run_in_their_order():
    class Item:
        def __init__(self, nodeid):
            self.nodeid = nodeid

    items = [Item(name) for name in "abc"]
    plugin.Chosen([{"name": "c"}, {"name": "a"}], print).pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["c", "a"]


def test_a_worker_finds_all_its_libraries():
    assert [name for name in worker.LIBRARIES if importlib.util.find_spec(name) is None] == []


def test_tests_whose_file_imports_the_module_come_before_cheaper_ones():
    cheap, near, dear = (
        dataclasses.replace(TEST, name=name, file=f"tests/unit/test_{name}.py") for name in ("cheap", "near", "dear")
    )
    assert running.nearest_first([cheap, near, dear], {near.file}) == [near, cheap, dear]
