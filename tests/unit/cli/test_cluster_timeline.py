from boathouse_cli import model, mrclusters, picture, timeline
from boathouse_cli.timeline import Activity
from tests.builders import cli

TIMES = {"startTime": cli.time(1), "readyTime": cli.time(21), "phase": "Ready"}
SIZES = [
    {"time": cli.time(21), "core": 3, "transient": 0},
    {"time": cli.time(40), "core": 3, "transient": 5},
]


def cluster_line(*pods, now_s=100, **status):
    cluster = mrclusters.read(cli.mrcluster(**(TIMES | status)))
    return timeline.of_cluster(cluster, map(model.task_pod, pods), now_s=cli.START_S + now_s)


def test_the_life_of_a_cluster_is_pending_starting_and_running():
    assert cli.wall_seconds(cluster_line()) == {Activity.WAITING: 1, Activity.STARTING: 20, Activity.RUNNING: 79}


def test_a_cluster_that_never_got_ready_starts_until_now():
    assert cli.wall_seconds(cluster_line(readyTime=None, now_s=30)) == {Activity.WAITING: 1, Activity.STARTING: 29}


def test_a_cluster_that_expired_ends_then():
    assert cluster_line(completionTime=cli.time(60), phase="Expired").duration_s == 60


def test_levels_last_until_the_next_change():
    levels = [
        (level.start_s - cli.START_S, level.end_s - cli.START_S, level.transient)
        for level in cluster_line(sizes=SIZES).levels
    ]
    assert levels == [(21, 40, 0), (40, 100, 5)]


def test_the_picture_has_a_bar_for_each_node_and_the_size_as_stacked_areas():
    drawn = picture.Picture(cluster_line(cli.host_pod("master"), cli.host_pod("c0", node="node-1"), sizes=SIZES))
    assert [group.name for group in drawn.groups] == ["cluster", "nodes (at most 8)", "node-0", "node-1"]
    areas = [(rect.colour, rect.height) for rect in drawn.rects if "core and" in rect.title]
    assert areas == [(picture.CORE_COLOUR, 24), (picture.CORE_COLOUR, 24), (picture.TRANSIENT_COLOUR, 40)]
    assert [frame.label for frame in drawn.frames] == ["master", "c0"]


def test_a_cluster_without_nodes_yet_is_drawn_too():
    nothing = [{"time": cli.time(5), "core": 0, "transient": 0}]
    assert "nodes (at most 0)" in picture.to_svg(cluster_line(sizes=nothing))
