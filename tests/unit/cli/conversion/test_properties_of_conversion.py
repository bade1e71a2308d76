"""Whatever is converted is a SparkApp by the models, and nothing that users write raises."""

from hypothesis import HealthCheck, given, settings, strategies as st

from boathouse.resources.sparkapp.fields import is_closed
from boathouse.resources.sparkapp.status import SparkApp
from boathouse.services.sparkapp import model
from boathouse_cli.conversion import command_lines, manifests
from tests.builders import conversion_strategies, conversions, sparkapps


def assert_admitted(found):
    """A SparkApp by the models, that the operator can read; else a reason."""
    if found.manifest is None:
        assert found.notes
        return
    SparkApp.model_validate(found.manifest)
    spec = found.manifest["spec"]
    assert not [key for key in spec.get("sparkConf", {}) if is_closed(key)]
    model.from_resource(sparkapps.sparkapp(**{"mainClass": None, **spec}), sparkapps.CONFIG)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversion_strategies.command_lines())
def test_a_submission_becomes_an_application(words):
    assert_admitted(command_lines.convert(words, source="line 1", read=conversions.missing_file))


@given(st.lists(conversion_strategies.WORDS, max_size=8))
def test_any_words_get_an_answer(words):
    assert_admitted(command_lines.convert(words, source="line 1", read=conversions.missing_file))


@given(st.text())
def test_any_text_gets_answers(text):
    for found in command_lines.convert_text(f"spark-submit {text}", read=conversions.missing_file):
        assert_admitted(found)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(conversion_strategies.SPECS)
def test_any_manifest_gets_an_answer(spec):
    base = {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"}
    whole = {"apiVersion": manifests.API_VERSION, "kind": manifests.KIND, "metadata": {"name": "pi"}}
    assert_admitted(manifests.convert({**whole, "spec": {**base, **spec}}))


@given(conversion_strategies.ANYTHING)
def test_anything_that_yaml_can_say_gets_an_answer(value):
    assert_admitted(manifests.convert(value))
