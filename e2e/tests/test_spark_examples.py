"""The examples for Spark, as SparkApps on a real cluster, with results computed here."""

import collections

import pytest

from e2e.tests import harness, spark_harness
from e2e.tests.spark_harness import Applications

pytestmark = pytest.mark.cluster

LINKS = ["a b", "a c", "b c", "c a", "d c"]
ROWS = 1000


def lines(place: harness.Place, folder: str) -> list[list[str]]:
    """The lines of an example's output, in columns."""
    files = spark_harness.files(place, folder)
    text = b"".join(files[name] for name in sorted(files) if name.startswith("part-"))
    return [line.split("\t") for line in text.decode().splitlines()]


def ranks(rounds: int) -> dict[str, float]:
    """The ranks of LINKS, as the example defines them: a page without links to it has none after the first round."""
    links = collections.defaultdict(list)
    for line in LINKS:
        links[line.split()[0]].append(line.split()[1])
    found = dict.fromkeys(links, 1.0)
    for _ in range(rounds):
        received: dict[str, float] = collections.defaultdict(float)
        for page in found.keys() & links.keys():
            for target in links[page]:
                received[target] += found[page] / len(links[page])
        found = {page: 0.15 + 0.85 * total for page, total in received.items()}
    return found


def revenues() -> list[list[str]]:
    """The answer to the example's query over ROWS orders."""
    found: dict[str, list[int]] = {}
    for order in range(ROWS):
        quantity = order % 5 + 1
        if quantity > 1:
            count = found.setdefault(("north", "east", "south", "west")[order % 4], [0, 0])
            count[0] += 1
            count[1] += quantity * (order % 10) * 10
    ordered = sorted(found.items(), key=lambda region: -region[1][1])
    return [[region, str(orders), str(revenue)] for region, (orders, revenue) in ordered]


@pytest.mark.long
def test_three_examples_at_once_find_what_is_found_without_spark(apps: Applications) -> None:
    place = apps.place
    place.put("links/all", "\n".join(LINKS).encode())
    examples = {
        "kmeans": ["3", spark_harness.s3a(place, "kmeans"), "3000"],
        "pagerank": [spark_harness.s3a(place, "links"), spark_harness.s3a(place, "pagerank"), "5"],
        "sql_parquet": [spark_harness.s3a(place, "orders"), spark_harness.s3a(place, "sql_parquet"), str(ROWS)],
    }
    for name, arguments in examples.items():
        apps.example(name, arguments=arguments)
    for name in examples:
        apps.succeed(f"spark-{name.replace('_', '-')}")
    centres = [float(number) for line in lines(place, "kmeans") for number in line]
    assert centres == pytest.approx([0, 0, 10, 10, 20, 20], abs=0.1)
    assert {page: float(rank) for page, rank in lines(place, "pagerank")} == pytest.approx(ranks(5), abs=1e-3)
    found = lines(place, "sql_parquet")
    assert sorted(found) == sorted(revenues())
    assert [line[2] for line in found] == [line[2] for line in revenues()]
