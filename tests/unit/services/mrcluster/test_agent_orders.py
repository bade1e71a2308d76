"""Orders of leaders for an agent that ignores those of a smaller version than its own."""

import hypothesis
import pytest
from hypothesis import stateful, strategies as st

from boathouse.resources.mrcluster.status import LeavingNode
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop import Applications
from boathouse.services.mrcluster.agent import OrderBook
from boathouse.services.mrcluster.model import ClusterState
from boathouse_task.cluster_contract import NO_TIMEOUT, Leaving, Version

UID = ObjectUid("u-1")
NONE = Version()


class Leader:
    """A leader that publishes and answers orders."""

    def __init__(self, epoch=3):
        self.epoch, self.leads = epoch, True
        self.applications = Applications(lambda _: None)
        self.book = OrderBook(self.applications, epoch=lambda: self.epoch, may_lead=lambda: self.leads)

    def publish(self, revision, *leaving):
        self.book.publish(UID, ClusterState(leaving=leaving), revision)

    def answer(self, held=NONE):
        return self.book.answer(UID, held, number=1, next_s=5.0)


@pytest.fixture
def leader():
    return Leader()


def test_orders_have_the_leaving_nodes_of_the_status_and_its_version(leader):
    core = LeavingNode(host="c3", since_s=100.0)
    transient = LeavingNode(host="t7", since_s=100.0, deadline_s=400.0)
    leader.publish(17, core, transient)
    orders = leader.answer()
    assert (orders.version, orders.number, orders.next_s) == (Version(3, 17), 1, 5.0)
    assert orders.leaving == [Leaving("c3", NO_TIMEOUT, True), Leaving("t7", 300, False)]


def test_orders_have_tags_and_kills(leader):
    leader.publish(17)
    leader.applications.follow(UID, "a", ObjectUid("job"))
    leader.applications.request_kill(UID, "application_1_1")
    orders = leader.answer()
    assert (orders.tags, orders.kill) == (["a"], ["application_1_1"])


def test_an_agent_holds_the_orders_since_the_status_that_let_its_nodes_leave(leader):
    core = LeavingNode(host="c3", since_s=100.0)
    leader.publish(17)
    leader.publish(18, core)
    leader.publish(19, core)
    held = [Version(3, 17), Version(2, 18), Version(3, 18), Version(3, 19)]
    assert [leader.book.holds(UID, version) for version in held] == [False, False, True, True]


def test_without_a_status_no_agent_holds_orders(leader):
    assert not leader.book.holds(UID, Version(3, 17))


def no_status(leader):
    leader.book.forget(UID)


def lost_lease(leader):
    leader.leads = False


def no_epoch(leader):
    leader.epoch = None


@pytest.mark.parametrize("change", [no_status, lost_lease, no_epoch])
def test_a_leader_that_must_not_order_gives_an_answer_without_orders(leader, change):
    leader.publish(17, LeavingNode(host="c3", since_s=100.0))
    leader.applications.follow(UID, "a", ObjectUid("job"))
    change(leader)
    orders = leader.answer()
    assert (orders.version, orders.leaving, orders.tags, orders.number) == (None, [], [], 1)


@pytest.mark.parametrize(
    ("held", "given"),
    [
        (Version(3, 17), Version(3, 17)),
        (Version(2, 99), Version(3, 17)),
        pytest.param(Version(9, 17), Version(10, 17), id="restored, epoch of the Lease is smaller"),
        pytest.param(Version(3, 18), Version(4, 17), id="restored, epoch is the same"),
        pytest.param(Version(2**62, 2**62), Version(2**62, 17), id="no leader gave such orders"),
    ],
)
def test_orders_are_later_than_those_that_the_agent_holds(leader, held, given):
    leader.publish(17)
    assert leader.answer(held).version == given


def test_orders_after_a_restore_stay_above_it(leader):
    leader.publish(17)
    assert leader.answer(Version(9, 40)).version == Version(10, 17)
    leader.publish(18)
    assert leader.answer(Version(10, 17)).version == Version(10, 18)
    assert leader.answer(Version(9, 40)).version == Version(10, 18)


class Leaders(stateful.RuleBasedStateMachine):
    """Leaders that follow one another, are suspended and resume, and an etcd that is restored.

    `Leader.leads` is the check of the lease by the leader's own clock: a suspended leader may resume, but not pass it.
    """

    def __init__(self):
        super().__init__()
        self.epoch, self.revision, self.leaving = 1, 1, ()
        self.backup = (1, 1, ())
        self.former = []
        self.held, self.excluded = Version(), frozenset()
        self.leader = Leader(1)
        self.publish()

    def publish(self):
        self.leader.publish(self.revision, *self.leaving)

    @stateful.rule(hosts=st.sets(st.sampled_from(["c3", "c4", "t1", "t2"])))
    def the_status_is_written(self, hosts):
        self.revision += 1
        self.leaving = tuple(LeavingNode(host=host, since_s=0.0) for host in sorted(hosts))
        self.publish()

    @stateful.rule()
    def another_process_leads(self):
        self.leader.leads = False
        self.former.append(self.leader)
        self.epoch += 1
        self.leader = Leader(self.epoch)

    @stateful.rule()
    def the_leader_reconciles(self):
        self.publish()

    @stateful.rule()
    def etcd_is_backed_up(self):
        self.backup = (self.epoch, self.revision, self.leaving)

    @stateful.rule()
    def etcd_is_restored(self):
        self.epoch, self.revision, self.leaving = self.backup
        self.another_process_leads()

    @stateful.rule()
    def etcd_is_restored_under_a_leader_of_the_time_of_the_backup(self):
        if self.backup[0] == self.epoch:
            self.epoch, self.revision, self.leaving = self.backup
            self.leader.book.forget(UID)

    @stateful.rule(pick=st.integers(0, 9))
    def a_former_leader_answers(self, pick):
        if self.former:
            before = self.held
            self.take(self.former[pick % len(self.former)])
            assert self.held == before

    @stateful.rule()
    def the_leader_answers(self):
        self.take(self.leader)

    def take(self, leader):
        """Take the orders of a leader as the agent does."""
        orders = leader.answer(self.held)
        if orders.version is not None and orders.version >= self.held:
            self.held = orders.version
            self.excluded = frozenset(node.host for node in orders.leaving)

    def teardown(self):
        """Once a leader has reconciled, one answer is enough, whatever the agent holds."""
        self.publish()
        self.take(self.leader)
        assert self.excluded == {node.host for node in self.leaving}


def test_orders_of_a_restored_etcd_may_have_the_version_of_those_that_the_agent_holds():
    leaders = Leaders()
    leaders.another_process_leads()
    leaders.the_status_is_written(hosts={"c3"})
    leaders.the_leader_answers()
    leaders.etcd_is_restored()
    leaders.the_status_is_written(hosts=set())
    leaders.teardown()


TestLeaders = Leaders.TestCase
TestLeaders.settings = hypothesis.settings(max_examples=60, stateful_step_count=30)


def test_an_answer_that_a_former_leader_made_before_has_a_smaller_version_than_its_successors_orders():
    former, leader = Leader(3), Leader(4)
    former.publish(900, LeavingNode(host="c3", since_s=0.0))
    leader.publish(17)
    late, held = former.answer(), leader.answer().version
    assert late.version is not None
    assert held is not None
    assert late.version < held
