"""Every profile has its name, and policies/README.md lists all of them."""

import re
from pathlib import Path

import pytest

from boathouse.resources import config
from boathouse_policies import profiles

README = Path(__file__).resolve().parents[3] / "policies" / "README.md"


def documented() -> dict[str, str]:
    """Each profile of the table in the README, with whether the chart has it."""
    table = README.read_text().partition("\n## Profiles\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:-1] for row in table.splitlines() if row.startswith("| `")]
    return {name: in_chart.strip() for names, _, in_chart, _ in rows for name in re.findall(r"`([^`]+)`", names)}


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_has_the_name_by_which_it_is_built(name):
    assert profiles.build(name).name == name


def test_the_readme_lists_every_profile():
    assert sorted(documented()) == sorted(profiles.names())


def test_the_readme_says_which_profiles_the_chart_offers():
    assert {name for name, in_chart in documented().items() if in_chart == "yes"} == set(config.PROFILES)
    assert set(documented().values()) == {"yes", "no"}
