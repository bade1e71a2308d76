"""`boathouse convert` as users run it."""

import pytest
import yaml
from typer.testing import CliRunner

from boathouse_cli import commands
from tests.builders import conversions

LINE = "spark-submit --num-executors 3 s3a://b/main.py\n"
NOTED = "spark-submit --proxy-user alice s3a://b/main.py\n"


def invoke(*words, stdin=None):
    return CliRunner().invoke(commands.app, ["convert", *words], input=stdin)


def test_a_line_on_standard_input_becomes_a_manifest():
    result = invoke("-", stdin=LINE)
    assert result.exit_code == 0
    assert result.stderr == ""
    made = yaml.safe_load(result.stdout)
    assert (made["apiVersion"], made["kind"]) == ("boathouse.dev/v1alpha1", "SparkApp")
    assert made["spec"]["executor"] == {"instances": 3}


def test_documents_of_a_file_become_documents(tmp_path):
    applications = [conversions.spark_application(name=name, **conversions.APPLICATION) for name in ("one", "two")]
    (file := tmp_path / "apps.yaml").write_text(yaml.safe_dump_all(applications))
    assert [made["metadata"]["name"] for made in yaml.safe_load_all(invoke(str(file)).stdout)] == ["one", "two"]


@pytest.mark.parametrize(("words", "code"), [(["-"], 0), (["-", "--strict"], 3)])
def test_what_has_no_counterpart_is_on_standard_error_and_strict_fails(words, code):
    result = invoke(*words, stdin=NOTED)
    assert result.exit_code == code
    assert result.stderr == "line 1: --proxy-user: a driver cannot act for another user: remove it\n"
    assert yaml.safe_load(result.stdout)["kind"] == "SparkApp"


def test_an_application_that_cannot_be_converted_fails_and_the_others_are_printed():
    result = invoke("-", stdin="spark-submit s3a://b/main.R\n" + LINE)
    assert result.exit_code == 3
    assert "applications in R are not supported" in result.stderr
    assert yaml.safe_load(result.stdout)["spec"]["mainApplicationFile"] == "s3a://b/main.py"


@pytest.mark.parametrize("text", ["", "set -e\necho spark\n", "a: [b\n"])
def test_a_file_without_applications_is_wrong_usage(text):
    assert invoke("-", stdin=text).exception.code == 2
