import dataclasses
import re
import xml.etree.ElementTree as ET

import pytest

from boathouse_cli import model, mrjobs, picture, timeline
from tests.builders import cli


@pytest.fixture
def line():
    pods = [
        cli.ended_task_pod(cli.task_pod("setup", created_s=1), ("list", 2, 3)),
        cli.ended_task_pod(cli.task_pod("map", 0, created_s=3), ("read", 4, 8)),
        cli.ended_task_pod(cli.task_pod("map", 1, created_s=3), ("read", 4, 9)),
        cli.ended_task_pod(cli.task_pod("map", 2, created_s=8), ("read", 9, 12)),
        cli.ended_task_pod(
            cli.task_pod("map", 3, node="node-1", created_s=3), ("read", 4, 5), reason="UserCommandFailed"
        ),
    ]
    job = mrjobs.read(cli.mrjob("word<count>", phase="Succeeded", completionTime=cli.time(13)))
    return timeline.build(job, map(model.task_pod, pods), now_s=0)


def test_every_piece_lies_inside_the_picture(line):
    drawn = picture.Picture(line)
    for shape in (*drawn.rects, *drawn.frames):
        assert shape.x >= drawn.left
        assert shape.x + shape.width <= picture.WIDTH - picture.RIGHT + 1
        assert shape.y + shape.height <= drawn.bottom


def texts(svg):
    return list(ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))  # noqa: S314 - our own output


def test_long_names_of_nodes_have_room_and_names_without_end_are_shortened_in_the_middle(line):
    node = "ip-10-0-123-45.eu-central-1.compute.internal"
    bars = [dataclasses.replace(bar, pod=dataclasses.replace(bar.pod, node=node)) for bar in line.bars]
    drawn = picture.Picture(dataclasses.replace(line, bars=tuple(bars)))
    assert drawn.groups[-1].label == node
    assert drawn.left > 6 * len(node)
    group = picture.Group(name="a" * 200 + "-end", y=0, height=1)
    assert (len(group.label), group.label[-4:]) == (picture.LONGEST, "-end")


@pytest.mark.parametrize("jobs", [1, 12])
def test_title_and_legend_lie_inside_the_picture(line, jobs):
    svg = picture.to_svg(*[line] * jobs)
    height = float(ET.fromstring(svg).attrib["viewBox"].split()[3])  # noqa: S314 - our own output
    assert max(float(text.attrib["y"]) for text in texts(svg)) < height - 4
    titles = [text.text for text in texts(svg) if text.attrib.get("font-size") == "14"]
    assert " ".join(titles).count("word<count>") == jobs
    assert max(map(len, titles)) <= picture.TITLE_CHARACTERS


def test_attempts_that_overlap_never_share_a_lane(line):
    frames = picture.Picture(line).frames
    for one in frames:
        for other in frames:
            if one is not other and one.y == other.y:
                assert one.x + one.width <= other.x + 0.01 or other.x + other.width <= one.x + 0.01


def test_a_free_lane_is_used_again(line):
    node = next(group for group in picture.Picture(line).groups if group.name == "node-0")
    assert node.height == 2 * picture.LANE


def test_failed_attempts_are_marked(line):
    assert [frame.failed for frame in picture.Picture(line).frames].count(True) == 1


def test_the_svg_is_well_formed_and_has_a_tooltip_for_each_piece(line):
    root = ET.fromstring(picture.to_svg(line))  # noqa: S314 - our own output
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(picture.Picture(line).rects)
    assert any("m-00001 attempt 1: read and map, 5.00 s" in title for title in titles)


def test_names_are_escaped(line):
    assert "word&lt;count&gt;" in picture.to_html(line)
    assert "word<count>" not in picture.to_html(line)


def test_the_page_needs_nothing_from_elsewhere(line):
    assert not re.search(r"(src|href)=|url\(|@import", picture.to_html(line))


@pytest.mark.parametrize("duration_s", [0.4, 7, 39, 3600, 86400])
def test_the_axis_has_between_five_and_eleven_ticks(duration_s):
    job = mrjobs.read(cli.mrjob())
    drawn = picture.Picture(timeline.build(job, [], now_s=cli.START_S + duration_s))
    assert 5 <= len(drawn.ticks) <= 11
