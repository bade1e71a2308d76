"""Properties: what is written is what Java reads, and nothing can add a line."""

import javaproperties
import pytest
from hypothesis import given, strategies as st

from boathouse.services.sparkapp import user_properties

LINES = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r\n")
TEXTS = st.text(LINES, max_size=60)


@given(st.dictionaries(st.text(LINES, min_size=1, max_size=60), TEXTS, max_size=8))
def test_rendered_properties_are_parsed_to_the_same(properties):
    assert javaproperties.loads(user_properties.render(properties)) == properties


@given(st.dictionaries(st.text(LINES, min_size=1, max_size=60), TEXTS, max_size=8))
def test_each_property_is_one_line_of_printable_ascii(properties):
    text = user_properties.render(properties)
    assert len(text.splitlines()) == len(properties)
    assert all(" " <= character <= "~" or character == "\n" for character in text)


@pytest.mark.parametrize("character", ["\0", "\n", "\r"])
def test_a_line_end_or_a_nul_is_refused(character):
    with pytest.raises(ValueError, match="line end or a NUL"):
        user_properties.render({"spark.a": f"x{character}spark.master=local"})
    with pytest.raises(ValueError, match="line end or a NUL"):
        user_properties.render({f"spark.a{character}": "x"})


def test_comments_and_separators_are_escaped():
    assert user_properties.render({"#a b=c": " !x:y\\"}) == "\\#a\\ b\\=c=\\ \\!x\\:y\\\\\n"
