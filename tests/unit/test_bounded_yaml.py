"""YAML of others is read within bounds."""

import pytest

from boathouse import bounded_yaml
from tests.builders.bombs import yaml_bomb

MERGES = "\n".join(
    ["a0: &a0 {x: 1}", *(f"a{n + 1}: &a{n + 1} {{<<: [{', '.join([f'*a{n}'] * 10)}]}}" for n in range(9))]
)


def test_documents_are_plain_values():
    text = "a: &one [1, 2.5, yes, 0x1F]\nb: *one\n---\n---\n- x"
    assert list(bounded_yaml.load_all(text)) == [{"a": [1, 2.5, True, 31], "b": [1, 2.5, True, 31]}, None, ["x"]]
    assert bounded_yaml.load("a: 1") == {"a": 1}
    assert bounded_yaml.load("") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(yaml_bomb(), "more than 100000 values", id="aliases of aliases"),
        pytest.param(MERGES, "more than 100000 values", id="merges of merges"),
        pytest.param("&a [*a]", "the alias a inside of what it repeats", id="an alias of itself"),
        pytest.param("[" * 100_000, "more than 64 deep", id="nested lists"),
        pytest.param("a: " + "{a: " * 100_000, "more than 64 deep", id="nested mappings"),
        pytest.param("- x\n" * 100_001, "more than 100000 values", id="many values"),
        pytest.param("a: " + "9" * 100_000, "more than 64 characters", id="a huge number"),
        pytest.param("a: " + "1" + ":1" * 100_000, "more than 64 characters", id="a huge number to the base of 60"),
        pytest.param('a: !!float "' + "1:" * 100_000 + '1.0"', "more than 64 characters", id="a huge float"),
        pytest.param("a: *b", "undefined alias", id="an alias of nothing"),
        pytest.param("a: !!python/object:os.system x", "could not determine a constructor", id="an object"),
        pytest.param("a: [", "did not find expected|expected the node content", id="no YAML"),
    ],
)
def test_a_text_beyond_the_bounds_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        list(bounded_yaml.load_all(text))


def test_several_documents_are_not_one():
    with pytest.raises(ValueError, match="it has 2 documents instead of one"):
        bounded_yaml.load("a: 1\n---\nb: 2")
