"""Candidates and rankings are mended as a cycle goes on: they equal what is computed anew at any time."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings, strategies as st

from boathouse_policies import framework, model
from boathouse_policies.framework.candidates import Candidates, FewNodes, Table, candidates
from boathouse_policies.framework.cycle_state import Assignment, PendingClass
from boathouse_policies.framework.ranking import Rankings
from tests.builders import core
from tests.builders.core_plain import PlainRankings
from tests.builders.core_strategies import Load, clusters, loaded_shell, loads, profile_names

steps = st.tuples(st.sampled_from(["place", "place", "undo", "withdraw", "keep", "release"]), st.integers(0, 100))
courses = st.lists(steps, max_size=20)
options = st.sampled_from([{}, {"max_per_node": 2}, {"offered": ["n0", "n2"]}, {"offered": ["n1"], "max_per_node": 1}])
NOT_BY_NODE = {"yarn-client", "yarn-cluster", "spread-out", "non-spread-out"}
"""Profiles whose reservations depend on a class' other nodes too: these may rank by an earlier state."""
by_node = profile_names.filter(lambda profile: profile[0] not in NOT_BY_NODE)


@st.composite
def staged(draw: st.DrawFn) -> list[Load]:
    """Loads whose classes are of any stage."""
    stage = st.sampled_from([model.Stage.OTHER, model.Stage.MAP, model.Stage.REDUCE, model.Stage.EXECUTOR])
    return [
        (job, [dataclasses.replace(task_class, stage=draw(stage)) for task_class in classes], tasks)
        for job, classes, tasks in draw(loads())
    ]


class Cycle:
    """A cycle whose steps a test decides."""

    def __init__(self, shell: core.Shell, **options) -> None:
        self.queue, self.profile = shell.queue, shell.profile
        self.state = framework.CycleState(shell.view(**options), self.queue.reserved)
        for controller in self.profile.controllers:
            controller.advise(self.queue, self.state.view)
        for hooks in self.profile.hooks:
            hooks.begins(self.queue, self.state)
        self.sorted_classes = self.queue.sorted_classes()
        self.candidates = self.candidates_anew()
        self.rankings = Rankings(self.candidates, self.profile, self.state)
        self.open = [self.pending(place) for place in self.sorted_classes.open.nonzero()[0].tolist()]
        self.assignments: list[Assignment] = []
        self.keeps = not self.profile.reserve.is_idle(self.state)

    def candidates_anew(self) -> Candidates:
        return candidates(self.sorted_classes, self.profile, self.state, self.queue.freed)

    def pending(self, place: int) -> PendingClass:
        pending = PendingClass(self.sorted_classes.queued[place], self.profile, self.state)
        pending.place = place
        return pending

    def step(self, kind: str, which: int) -> None:
        state, nodes = self.state, len(self.state.offered)
        match kind:
            case "place" if self.open:
                self.place(self.open[which % len(self.open)])
            case "undo" if self.assignments:
                self.undo(self.assignments.pop(which % len(self.assignments)))
            case "withdraw" if nodes:
                state.withdraw(which % nodes)
            case "keep" if nodes and self.open and self.keeps:
                state.reserve(which % nodes, self.open[which % len(self.open)].task_class.id)
            case "release" if state.reserved:
                state.release(list(state.reserved)[which % len(state.reserved)])

    def place(self, pending: PendingClass) -> None:
        node = self.rankings.best(pending)
        if node is None or not pending.left:
            return
        pick = pending.take_closest(node)
        assert pick is not None
        assignment = Assignment(pending, pick, node, pending.task_class.resources, pending.shape.sizes)
        self.state.place(assignment)
        self.assignments.append(assignment)
        for hooks in self.profile.hooks:
            hooks.placed(assignment, self.state)

    def undo(self, assignment: Assignment) -> None:
        """The class has no turn any more: a gang that fails is closed."""
        self.state.undo(assignment)
        assignment.pending.give_back(assignment.pick)
        for hooks in self.profile.hooks:
            hooks.undone(assignment, self.state)
        self.open = [pending for pending in self.open if pending is not assignment.pending]


@settings(max_examples=60, deadline=None)
@given(clusters(), staged(), by_node, courses, options)
def test_the_best_node_equals_that_of_all_nodes_reevaluated(nodes, load, profile, course, options):
    cycle = Cycle(loaded_shell(nodes, load, profile), **options)
    plain = PlainRankings(cycle.candidates, cycle.profile, cycle.state)
    for kind, which in course:
        cycle.step(kind, which)
        assert [cycle.rankings.best(pending) for pending in cycle.open] == [
            plain.best(pending) for pending in cycle.open
        ]


def room_and_best(candidates: FewNodes | Table, pending: PendingClass) -> tuple[list[int], int | None]:
    """Return the nodes with room for the shape of a class; of few nodes also the best one."""
    if isinstance(candidates, Table):
        return [candidates.listed[i] for i in candidates.row(pending).nonzero()[0]], None
    fits = candidates.with_room(pending.shape)
    return fits, candidates.best_of(pending.shape, fits, None)


@settings(max_examples=60, deadline=None)
@given(clusters(), staged(), profile_names, courses, options)
def test_updated_candidates_equal_recomputed_ones(nodes, load, profile, course, options):
    cycle = Cycle(loaded_shell(nodes, load, profile), **options)
    for kind, which in course:
        cycle.step(kind, which)
        cycle.candidates.renew()
        anew = cycle.candidates_anew()
        for pending in cycle.open:
            assert room_and_best(cycle.candidates, pending) == room_and_best(anew, pending)
            assert cycle.candidates.has_room(pending.place) == anew.has_room(pending.place)


@settings(max_examples=25, deadline=None)
@given(loads(), st.lists(st.lists(steps, min_size=1, max_size=25), max_size=4))
def test_many_changed_nodes_are_all_reranked(load, courses):
    cycle = Cycle(loaded_shell(core.nodes(40, core.amount(4000, 8, 4, gpu=1), labels={"zone": "a"}), load))
    plain = PlainRankings(cycle.candidates, cycle.profile, cycle.state)
    for course in courses:
        for kind, which in course:
            cycle.step(kind, which)
        assert [cycle.rankings.best(pending) for pending in cycle.open] == [
            plain.best(pending) for pending in cycle.open
        ]


def test_a_node_that_the_sizer_refused_is_not_offered_to_the_class_again():
    cycle = Cycle(make_world())
    (pending,) = cycle.open
    first = cycle.rankings.best(pending)
    cycle.rankings.refuse(pending, first)
    cycle.state.touch(first)
    assert (first, cycle.rankings.best(pending)) == (0, 1)


def test_a_node_that_is_kept_in_the_cycle_is_closed_to_classes_that_were_ranked_before():
    shell = core.Shell(core.nodes(1), profile="boathouse")
    shell.submit("executors", 9, stage=model.Stage.EXECUTOR)
    shell.submit("other", 3)
    cycle = Cycle(shell)
    executors, other = cycle.open
    before = cycle.rankings.best(other)
    cycle.state.reserve(0, executors.task_class.id)
    assert (before, cycle.rankings.best(other)) == (0, None)


def make_world() -> core.Shell:
    shell = core.Shell(core.nodes(2))
    shell.profile = framework.Profile(name="t", sizer=framework.Sizer())
    shell.submit(count=3)
    return shell
