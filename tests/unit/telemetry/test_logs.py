"""Log lines are the same from all sources, and keep secrets to themselves."""

import io
import json
import logging

import pytest

from boathouse.telemetry import logs


@pytest.fixture
def lines():
    """Log as the operator does; return the lines written so far, decoded."""
    before, written = logging.getLogger().handlers[:], io.StringIO()
    logs.configure(log_format="json", level="INFO", stream=written)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logging.getLogger().handlers[:] = before
    logging.getLogger().setLevel(logging.WARNING)


def test_a_line_says_when_who_what_and_how_bad(lines):
    logs.get("example.module").warning("bind failed", pod="demo/p", attempt=2)
    (line,) = lines()
    assert (line["message"], line["level"], line["logger"], line["pod"], line["attempt"]) == (
        *("bind failed", "warning", "example.module", "demo/p"),
        2,
    )
    assert line["time"].endswith("Z")


def test_libraries_that_use_the_standard_library_log_in_the_same_form(lines):
    logging.getLogger("kopf.reactor").error("watch of %s ended", "mrjobs")
    (line,) = lines()
    assert (line["message"], line["logger"], line["level"]) == ("watch of mrjobs ended", "kopf.reactor", "error")


@pytest.mark.parametrize("key", ["token", "AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "db_password", "Authorization"])
def test_values_of_keys_that_look_like_secrets_are_left_out_at_any_depth(lines, key):
    logs.get("t").info("starting", config={"storage": [{key: "hunter2"}]}, **{key: "hunter2"})
    (line,) = lines()
    assert "hunter2" not in json.dumps(line)
    assert line["config"] == {"storage": [{key: logs.REDACTED}]}


def test_the_name_of_a_secret_is_no_secret(lines):
    logs.get("t").info("mounting", secret_name="s3-credentials", secretRef={"name": "s3-credentials"})
    (line,) = lines()
    assert line["secret_name"] == "s3-credentials"
    assert line["secretRef"] == {"name": "s3-credentials"}


def test_a_bearer_token_inside_a_text_is_left_out_even_in_a_traceback(lines):
    try:
        raise RuntimeError("Authorization: Bearer abcdefgh12345678")  # noqa: TRY301
    except RuntimeError:
        logs.get("t").exception("request failed")
    (line,) = lines()
    assert "abcdefgh" not in json.dumps(line)
    assert "RuntimeError" in line["exception"]


def test_lines_below_the_level_are_not_written(lines):
    logs.get("t").debug("details")
    assert lines() == []
