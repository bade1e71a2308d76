"""The recorded command lines become the SparkApps whose submissions were compared with Spark's own."""

import pytest

from boathouse_cli.conversion import command_lines
from tests.builders import conversions
from tests.spark import configurations, ours

OTHERWISE = {
    "upper-case": "2G stays 2G, which the field reads as Spark does",
}
"""Configurations whose spec says the same in other words, and why."""


def converted(configuration):
    (found,) = command_lines.convert_text(conversions.recorded_line(configuration), read=conversions.missing_file)
    assert found.notes == ()
    return found.manifest


@pytest.mark.parametrize("configuration", configurations.ALL, ids=lambda configuration: configuration.name)
def test_a_recorded_line_becomes_the_spec_that_was_written_for_it(configuration):
    spec = {**configuration.spec, "image": configurations.IMAGE}
    assert (converted(configuration)["spec"] == spec) == (configuration.name not in OTHERWISE)


@pytest.mark.parametrize("configuration", configurations.ALL, ids=lambda configuration: configuration.name)
def test_a_recorded_line_is_submitted_as_the_spec_that_was_written_for_it(configuration):
    found = ours.submission_of(converted(configuration)["spec"])
    assert found == ours.submission_of({**configuration.spec, "image": configurations.IMAGE})


def test_name_and_namespace_are_those_of_the_line():
    metadata = converted(configurations.ALL[0])["metadata"]
    assert metadata == {"name": configurations.NAME, "namespace": configurations.NAMESPACE}
