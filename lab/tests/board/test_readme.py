"""The figures of the README are those of the board's page, which the command writes."""

import re

from boathouse_e2e import paths

README = (paths.REPOSITORY / "README.md").read_text()
BOARD = (paths.REPOSITORY / "docs" / "board.md").read_text()


def rows(text, header):
    """The cells of a table, by the row's name, without intervals."""
    table = text[text.index(header) :].split("\n\n")[0]
    found = {}
    for line in table.splitlines():
        named = re.search(r"`([a-z0-9.-]+)`\)? \|", line)
        if named:
            cells = line[named.end() :].strip("| ").split(" | ")
            found[named.group(1)] = [cell.partition(" (")[0].strip() for cell in cells]
    return found


def test_the_table_of_the_readme_has_the_means_of_the_board():
    board = rows(BOARD, "| workload | fair |")
    shown = rows(README, "| mean job time over that of fair sharing |")
    assert len(shown) >= 6
    place = [name.strip() for name in BOARD[BOARD.index("| workload | fair |") :].split("\n")[0].strip("|").split("|")]
    ours, theirs = (place.index(f"{name} / fair") - 1 for name in ("boathouse", "kube-scheduler"))
    assert shown == {name: [board[name][ours], board[name][theirs]] for name in shown}


def test_the_readme_has_what_the_slowest_applications_lose():
    measures = rows(BOARD, "| workload | p95 |")
    assert f"the slowest of twenty jobs took {measures['spark'][0]} times as long" in README
