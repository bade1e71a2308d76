"""Scripts of users as a shell reads them: quotes, comments, continued lines, and what only a shell knows."""

import pytest

from boathouse_cli.conversion import command_lines
from tests.builders import conversions
from tests.builders.conversions import PYTHON


def of_text(text):
    return list(command_lines.convert_text(text, read=conversions.missing_file))


def words(text):
    (command,) = command_lines.commands(text)
    return [word.text for word in command.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b # c", ["a", "b"]),
        ("a b#c '#d' \\#e", ["a", "b#c", "#d", "#e"]),
        ("a 'b c' \"d 'e'\" f\\ g", ["a", "b c", "d 'e'", "f g"]),
        (r'a "\$b \"c\" \d \\"', ["a", r'$b "c" \d ' + "\\"]),
        ("a \\\n  b\\\nc", ["a", "bc"]),
        ("a 'b\nc' \"d\\\ne\"", ["a", "b\nc", "de"]),
        ("a \\\n# b \\\n", ["a"]),
        (r"a $'b\tc\'' ''", ["a", "b\tc'", ""]),
        ("a \\\r\n b\r\n", ["a", "b"]),
    ],
)
def test_words_are_those_that_a_shell_passes(text, expected):
    assert words(text) == expected


def test_a_comment_after_a_line_is_no_argument_of_the_program():
    (found,) = of_text(f"spark-submit {PYTHON} --day 1 # every night\n")
    assert found.manifest["spec"]["arguments"] == ["--day", "1"]


def test_a_number_sign_in_a_word_is_no_comment():
    (found,) = of_text(f"spark-submit --archives s3a://b/e.tar.gz#environment {PYTHON}")
    assert found.manifest["spec"]["deps"]["archives"] == ["s3a://b/e.tar.gz#environment"]


def test_a_comment_between_continued_lines_ends_the_command_as_in_a_shell():
    (found,) = of_text("spark-submit \\\n  --num-executors 3 \\\n  # --executor-memory 9g \\\n")
    assert found.has_failed
    assert found.notes[-1].advice.startswith("has no application")


def test_a_value_may_have_several_lines():
    (found,) = of_text(f'spark-submit {PYTHON} "one\n  two"\nspark-submit {PYTHON}')[:1]
    assert found.manifest["spec"]["arguments"] == ["one\n  two"]


@pytest.mark.parametrize(
    "program",
    [
        *("spark2-submit", "spark3-submit", "/usr/bin/spark3-submit", "spark-submit.cmd", "spark-submit.sh"),
        *("nohup spark-submit", "exec /opt/spark/bin/spark-submit", "time spark-submit", "env A= spark-submit"),
        '"$SPARK_HOME/bin/spark-submit"',
    ],
)
def test_the_program_has_other_names_and_others_start_it(program):
    (found,) = of_text(f"{program} {PYTHON}")
    assert found.manifest["spec"] == {"type": "Python", "mainApplicationFile": PYTHON}
    assert [note.path for note in found.notes] == (["A"] if "A=" in program else [])


@pytest.mark.parametrize(
    ("before", "paths"),
    [
        ("sudo -u alice", ["sudo", "-u", "alice"]),
        ("ssh gateway", ["ssh", "gateway"]),
        ("PYSPARK_PYTHON=p", ["PYSPARK_PYTHON"]),
    ],
)
def test_what_stands_before_the_program_and_has_no_effect_is_noted(before, paths):
    (found,) = of_text(f"{before} spark-submit {PYTHON}")
    assert [note.path for note in found.notes] == paths


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("$1", "$1"),
        ("$@", "$@"),
        ('"${DAY:-1 2}"', "${DAY:-1 2}"),
        ("$(date +%F | tr - _)", "$("),
        ("`date +%F`", "`"),
        ("~/x.csv", "~/x.csv"),
        ("lib/*.jar", "lib/*.jar"),
    ],
)
def test_each_value_that_only_a_shell_knows_is_noted(argument, path):
    (found,) = of_text(f"spark-submit {PYTHON} {argument}")
    assert [note.path for note in found.notes] == [path]


@pytest.mark.parametrize("argument", ["'$1'", "\\$HOME", '"\\$x"', "s3a://b/in/*.csv", "'a*'", "a=*", "local[*]", "5$"])
def test_a_value_that_a_shell_leaves_is_not_noted(argument):
    (found,) = of_text(f"spark-submit {PYTHON} {argument}")
    assert found.notes == ()


def test_a_quote_that_is_open_before_a_submission_hides_none():
    found = of_text("echo don't\nspark-submit s3a://b/a.py\n")
    assert [(converted.has_failed, converted.notes[-1].path) for converted in found] == [(True, "quotes")]
