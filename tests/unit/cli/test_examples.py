import pathlib
import subprocess
import sys
from collections import Counter

import pytest
import yaml

from boathouse.resources import mrjob_status

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
TEXT = b"The cat and the dog.\nTHE END\n"


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def keys(value):
    """All keys of nested mappings that the API would have to know."""
    if isinstance(value, dict):
        return {key for key, each in value.items()} | set().union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_every_field_of_an_example_is_known(name):
    job = next(each for each in documents(name) if each["kind"] == "MRJob")
    spec = mrjob_status.MRJob.model_validate(job).spec
    assert keys(spec.model_dump(by_alias=True)) >= keys(job["spec"])


def run(script, data, tmp_path):
    (path := tmp_path / "script").write_text(script)
    return subprocess.run([sys.executable, path], input=data, capture_output=True, check=True).stdout


def test_the_word_counts_scripts_count_words(tmp_path):
    scripts = documents("wordcount.yaml")[0]["data"]
    mapped = run(scripts["mapper.py"], TEXT * 3, tmp_path)
    reduced = run(scripts["reducer.py"], b"".join(sorted(mapped.splitlines(keepends=True))), tmp_path)
    expected = {word: count * 3 for word, count in Counter(b"the cat and the dog the end".split()).items()}
    assert {line.split(b"\t")[0]: int(line.split(b"\t")[1]) for line in reduced.splitlines()} == expected
