"""Jobs of two namespaces that name one output at the same time."""

import pytest

from boathouse.resources.names import ConditionType
from boathouse_task import contract
from e2e.tests import harness

pytestmark = pytest.mark.cluster

CAT = {
    "mapper": {"command": ["sh", "-c", "sleep 1; cat"], "resources": harness.SMALL},
    "reducer": None,
    "numReduceTasks": None,
    "keyOnlyOutput": True,
}


def lines(word):
    return b"".join(b"%s %d\n" % (word, number) for number in range(200_000))


def test_one_of_them_succeeds_and_its_parts_are_not_mixed(place, other_place):
    places = {"first": place, "second": other_place}
    output = place.url("out-shared")
    for name, where in places.items():
        place.put(f"in-{name}/a.txt", lines(name.encode()))
        where.start(name, input=[place.url(f"in-{name}")], output=output, **CAT)
    ended = {name: where.finish(name) for name, where in places.items()}
    assert sorted(job.phase for job in ended.values()) == ["Failed", "Succeeded"]
    winner, loser = sorted(ended, key=lambda name: ended[name].phase != "Succeeded")
    parts = place.parts("shared")
    assert b"".join(parts[part] for part in sorted(parts)) == lines(winner.encode())
    failed = ended[loser].condition(ConditionType.FAILED)
    assert failed is not None
    assert failed.reason == contract.Reason.OUTPUT_EXISTS
