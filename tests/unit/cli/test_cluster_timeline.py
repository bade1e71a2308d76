from boathouse_cli import cluster_timeline, model, mrclusters, picture
from boathouse_cli.timeline import Activity
from tests.unit.cli import build

TIMES = {"startTime": build.at(1), "readyTime": build.at(21), "phase": "Ready"}
SIZES = [
    {"time": build.at(21), "core": 3, "transient": 0},
    {"time": build.at(40), "core": 3, "transient": 5},
]


def of(*pods, now_s=100, **status):
    cluster = mrclusters.read(build.cluster(**(TIMES | status)))
    return cluster_timeline.build(cluster, map(model.task_pod, pods), now_s=build.START_S + now_s)


def test_the_life_of_a_cluster_is_pending_starting_and_running():
    assert of().wall_seconds() == {Activity.WAITING: 1, Activity.STARTING: 20, Activity.RUNNING: 79}


def test_a_cluster_that_never_got_ready_starts_until_now():
    assert of(readyTime=None, now_s=30).wall_seconds() == {Activity.WAITING: 1, Activity.STARTING: 29}


def test_a_cluster_that_expired_ends_then():
    assert of(completionTime=build.at(60), phase="Expired").duration_s == 60


def test_levels_last_until_the_next_change():
    levels = [
        (level.start_s - build.START_S, level.end_s - build.START_S, level.transient)
        for level in of(sizes=SIZES).levels
    ]
    assert levels == [(21, 40, 0), (40, 100, 5)]


def test_the_picture_has_a_bar_for_each_node_and_the_size_as_stacked_areas():
    drawn = picture.layout(of(build.cluster_pod("master"), build.cluster_pod("c0", node="node-1"), sizes=SIZES))
    assert [group.name for group in drawn.groups] == ["cluster", "nodes (at most 8)", "node-0", "node-1"]
    areas = [(rect.colour, rect.height) for rect in drawn.rects if "core and" in rect.title]
    assert areas == [(picture.CORE_COLOUR, 24), (picture.CORE_COLOUR, 24), (picture.TRANSIENT_COLOUR, 40)]
    assert [frame.label for frame in drawn.frames] == ["master", "c0"]


def test_a_cluster_without_nodes_yet_is_drawn_too():
    nothing = [{"time": build.at(5), "core": 0, "transient": 0}]
    assert "nodes (at most 0)" in picture.to_svg(of(sizes=nothing))
