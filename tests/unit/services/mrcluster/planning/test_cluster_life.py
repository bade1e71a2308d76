"""Clusters live through crashes at every write, lost and late reports, stale leaders and lost nodes.

No replica is lost, no name of a transient node is used twice, the NameNode's volume is never formatted once its ID is
recorded, there are never fewer core nodes than at first, and once faults end the cluster is as its spec says.
"""

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.planning import draining, membership
from boathouse_task.cluster_contract import Version
from tests.unit.services.mrcluster.planning.world import World

picks = st.integers(0, 20)
WRITES = 9
"""More than a reconcile has writes."""


class ClusterLife(stateful.RuleBasedStateMachine):
    """A cluster with GSP, whose policy may decide anything."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(hdfs={"replication": 1})
        self.world.hdfs.replication = 1  # so that each replica counts
        self.world.settle(15)
        self.world.spec["core"] = {"count": 5}
        self.world.settle(8)
        for _ in range(15):
            self.world.hdfs.write({f"c{i}" for i in range(5)})
        self.history = [self.world.ordered]

    def _picked(self, pick: int) -> str | None:
        hosts = sorted(self.world.pods)
        return hosts[pick % len(hosts)] if hosts else None

    # The operator

    @stateful.rule(deaths_in=st.integers(0, WRITES))
    def reconcile(self, deaths_in):
        self.world.reconcile(deaths_in)
        self.history.append(self.world.ordered)

    @stateful.rule(pick=picks, lands=st.booleans())
    def the_operator_dies_while_it_creates_a_pod(self, pick, lands):
        submitted = sorted(self.world.submitted)
        self.world.forget()
        self.world.epoch += 1
        if submitted and lands:
            self.world.submitted = {submitted[pick % len(submitted)]}
            self.world.create(submitted[pick % len(submitted)])
        self.world.submitted = set()

    @stateful.rule(nodes=st.integers(0, 12))
    def the_policy_decides(self, nodes):
        self.world.decide(nodes)

    @stateful.rule(count=st.integers(3, 5))
    def the_spec_has_another_number_of_core_nodes(self, count):
        self.world.spec["core"] = {"count": max(count, self.world.state.first_core_nodes)}  # as CEL demands
        self.world.generation += 1

    @stateful.rule(minimum=st.integers(0, 3))
    def the_spec_has_another_number_of_transient_nodes(self, minimum):
        self.world.spec["transient"] = {"minimum": minimum, "maximum": 8}
        self.world.generation += 1

    @stateful.rule(digest=st.sampled_from(["first", "second"]))
    def the_settings_change(self, digest):
        self.world.digest = digest

    # Time, and Kubernetes

    @stateful.rule(seconds=st.sampled_from([1, 5, 20, 130, 700]))
    def time_passes(self, seconds):
        self.world.now_s += seconds

    @stateful.rule(rounds=st.sampled_from([2, 5, 15]))
    def some_quiet_time(self, rounds):
        self.world.settle(rounds)

    @stateful.rule(most=st.integers(1, 6))
    def the_scheduler_creates(self, most):
        for host in sorted(self.world.submitted)[:most]:
            self.world.create(host)

    @stateful.rule()
    def containers_start(self):
        for host in list(self.world.pods):
            self.world.start(host)

    @stateful.rule(pick=picks)
    def a_pod_is_deleted(self, pick):
        if host := self._picked(pick):
            self.world.delete(host)

    @stateful.rule(pick=picks)
    def a_node_is_lost(self, pick):
        if host := self._picked(pick):
            self.world.lose_node(host)

    @stateful.rule()
    def deleted_pods_vanish(self):
        for host in list(self.world.pods):
            self.world.vanish(host)

    # Hadoop

    @stateful.rule(arrives=st.booleans(), answered=st.booleans())
    def the_agent_reports(self, arrives, answered):
        self.world.exchange(arrives=arrives, answered=answered)

    @stateful.rule(pick=picks)
    def a_former_leader_answers_the_agent(self, pick):
        version, leaving = self.history[pick % len(self.history)]
        self.world.agent.take(Version(version.epoch, version.revision), leaving)

    @stateful.rule()
    def orders_are_carried_out(self):
        self.world.agent.refresh()

    @stateful.rule(count=st.integers(1, 6))
    def blocks_are_written(self, count):
        live = {host for host in self.world.up if naming.role_of(host) is Role.CORE}
        for _ in range(count if self.world.hdfs.serving(live) else 0):
            self.world.hdfs.write(live)

    @stateful.rule()
    def blocks_are_copied(self):
        self.world.hdfs.copy({host for host in self.world.up if naming.role_of(host) is Role.CORE})

    @stateful.rule(pending=st.integers(0, 4))
    def an_application_runs(self, pending):
        self.world.yarn.pending += pending
        self.world.yarn.run(self.world.up)

    @stateful.rule()
    def applications_end(self):
        self.world.yarn.containers.clear()

    # What always holds

    @stateful.invariant()
    def no_replica_is_lost(self):
        state = self.world.state
        given_up = {node.host for node in state.leaving if draining.has_ended(node)}
        kept = {naming.host_of(Role.CORE, number) for number in state.wanted_core} - given_up
        assert not self.world.hdfs.missing(kept)

    @stateful.invariant()
    def a_recorded_hdfs_is_never_formatted(self):
        assert self.world.formats in ([], [""])

    @stateful.invariant()
    def there_are_as_many_core_nodes_as_at_first(self):
        state = self.world.state
        assert len(membership.staying(state, Role.CORE)) >= state.first_core_nodes

    @stateful.invariant()
    def each_pod_was_in_the_status_before(self):
        state = self.world.state
        for pod in self.world.pods.values():
            if pod.role is Role.TRANSIENT:
                assert pod.number < state.next_transient
            if pod.role is Role.CORE:
                assert pod.number in state.wanted_core or pod.deleting_since_s is not None

    def _is_settled(self) -> bool:
        state = self.world.state
        is_sized = len(state.wanted_core) == self.world.spec["core"]["count"]
        return state.phase == "Ready" and is_sized and not state.leaving and state.settings == self.world.digest

    def teardown(self):
        """Without further faults the cluster becomes what its spec says."""
        self.world.yarn.containers.clear()
        self.world.yarn.pending = 0
        self.world.generation += 1  # so that a decommission that stalled is tried again
        for _ in range(15):
            self.world.settle(10)
            if self._is_settled():
                break
        state, spec = self.world.state, self.world.spec
        assert state.phase == "Ready", (state.reason, state.conditions)
        assert not state.leaving
        assert sorted(self.world.pods) == sorted(state.wanted_hosts)
        assert len(state.wanted_core) == spec["core"]["count"]
        assert len(state.wanted_transient) >= spec["transient"].get("minimum", 0)
        assert state.settings == self.world.digest


TestClusterLife = ClusterLife.TestCase
TestClusterLife.settings = hypothesis.settings(max_examples=15, stateful_step_count=40, deadline=None)
