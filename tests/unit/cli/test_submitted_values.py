"""`submit` sends nothing that the operator or Spark would refuse."""

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import ExitCode


def submit(*words):
    return CliRunner().invoke(commands.app, ["submit", "--dry-run", "--", "spark-submit", *words, "local:///opt/pi.py"])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--num-executors", "abc", '"abc" is not a whole number'),
        ("--executor-memory", "8gigs", '"8gigs" is not a size for Spark'),
        ("--executor-cores", "two", '"two", which is not a whole number'),
        ("--conf", "spark.dynamicAllocation.maxExecutors=many", '"many" is not a whole number'),
        ("--conf", "spark.dynamicAllocation.enabled=maybe", '"maybe" is neither true nor false'),
        ("--conf", "spark.sql.shuffle.partitions=1.5", '"1.5" is not a whole number'),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_before_it_is_sent(option, value, message):
    result = submit(option, value)
    assert message in result.stderr
    assert result.exception.code == ExitCode.NOT_CONVERTED
    assert result.stdout == ""


@pytest.mark.parametrize("value", ["spark.sql.shuffle.partitions=200", "spark.dynamicAllocation.enabled=True"])
def test_values_that_spark_reads_are_sent(value):
    result = submit("--conf", value)
    assert (result.exit_code, result.stderr) == (0, "")
