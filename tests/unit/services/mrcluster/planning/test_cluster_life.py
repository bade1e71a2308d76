"""Clusters live through crashes at every write, lost and late reports, stale leaders and lost nodes.

No replica is lost, no name of a transient node is used twice, the NameNode's volume is never formatted once its ID is
recorded, there are never fewer core nodes than at first, and once faults end the cluster is as its spec says.
"""

import hypothesis
from hypothesis import stateful, strategies as st

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning import draining
from boathouse_task.cluster_contract import Version
from tests.builders.simulated_cluster import SimulatedCluster

picks = st.integers(0, 20)
WRITES = 9
"""More than a reconcile has writes."""


class ClusterLife(stateful.RuleBasedStateMachine):
    """A cluster with GSP, whose policy may decide anything."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = SimulatedCluster(hdfs={"replication": 1})
        self.cluster.hdfs.replication = 1  # so that each replica counts
        self.cluster.settle(15)
        self.cluster.spec["core"] = {"count": 5}
        self.cluster.settle(8)
        for _ in range(15):
            self.cluster.hdfs.write({f"c{i}" for i in range(5)})
        self.history = [self.cluster.ordered]

    def _picked(self, pick: int) -> str | None:
        hosts = sorted(self.cluster.pods)
        return hosts[pick % len(hosts)] if hosts else None

    # The operator

    @stateful.rule(deaths_in=st.integers(0, WRITES))
    def reconcile(self, deaths_in):
        self.cluster.reconcile(deaths_in)
        self.history.append(self.cluster.ordered)

    @stateful.rule(pick=picks, lands=st.booleans())
    def the_operator_dies_while_it_creates_a_pod(self, pick, lands):
        submitted = sorted(self.cluster.submitted)
        self.cluster.forget()
        self.cluster.epoch += 1
        if submitted and lands:
            self.cluster.submitted = {submitted[pick % len(submitted)]}
            self.cluster.create(submitted[pick % len(submitted)])
        self.cluster.submitted = set()

    @stateful.rule(nodes=st.integers(0, 12))
    def the_policy_decides(self, nodes):
        self.cluster.decide(nodes)

    @stateful.rule(count=st.integers(3, 5))
    def the_spec_has_another_number_of_core_nodes(self, count):
        self.cluster.spec["core"] = {"count": max(count, self.cluster.state.first_core_nodes)}  # as CEL demands
        self.cluster.generation += 1

    @stateful.rule(minimum=st.integers(0, 3))
    def the_spec_has_another_number_of_transient_nodes(self, minimum):
        self.cluster.spec["transient"] = {"minimum": minimum, "maximum": 8}
        self.cluster.generation += 1

    @stateful.rule(digest=st.sampled_from(["first", "second"]))
    def the_settings_change(self, digest):
        self.cluster.digest = digest

    # Time, and Kubernetes

    @stateful.rule(seconds=st.sampled_from([1, 5, 20, 130, 700]))
    def time_passes(self, seconds):
        self.cluster.now_s += seconds

    @stateful.rule(rounds=st.sampled_from([2, 5, 15]))
    def some_quiet_time(self, rounds):
        self.cluster.settle(rounds)

    @stateful.rule(most=st.integers(1, 6))
    def the_scheduler_creates(self, most):
        for host in sorted(self.cluster.submitted)[:most]:
            self.cluster.create(host)

    @stateful.rule()
    def containers_start(self):
        for host in list(self.cluster.pods):
            self.cluster.start(host)

    @stateful.rule(pick=picks)
    def a_pod_is_deleted(self, pick):
        if host := self._picked(pick):
            self.cluster.delete(host)

    @stateful.rule(pick=picks)
    def a_node_is_lost(self, pick):
        if host := self._picked(pick):
            self.cluster.lose_node(host)

    @stateful.rule()
    def deleted_pods_vanish(self):
        for host in list(self.cluster.pods):
            self.cluster.vanish(host)

    # Hadoop

    @stateful.rule(arrives=st.booleans(), answered=st.booleans())
    def the_agent_reports(self, arrives, answered):
        self.cluster.exchange(arrives=arrives, answered=answered)

    @stateful.rule(pick=picks)
    def a_former_leader_answers_the_agent(self, pick):
        version, leaving = self.history[pick % len(self.history)]
        self.cluster.agent.take(Version(version.epoch, version.revision), leaving)

    @stateful.rule()
    def orders_are_carried_out(self):
        self.cluster.agent.refresh()

    @stateful.rule(count=st.integers(1, 6))
    def blocks_are_written(self, count):
        live = {host for host in self.cluster.up if model.role_of(host) is Role.CORE}
        for _ in range(count if self.cluster.hdfs.serving(live) else 0):
            self.cluster.hdfs.write(live)

    @stateful.rule()
    def blocks_are_copied(self):
        self.cluster.hdfs.copy({host for host in self.cluster.up if model.role_of(host) is Role.CORE})

    @stateful.rule(pending=st.integers(0, 4))
    def an_application_runs(self, pending):
        self.cluster.yarn.pending += pending
        self.cluster.yarn.run(self.cluster.up)

    @stateful.rule()
    def applications_end(self):
        self.cluster.yarn.containers.clear()

    # What always holds

    @stateful.invariant()
    def no_replica_is_lost(self):
        state = self.cluster.state
        given_up = {node.host for node in state.leaving if draining.has_ended(node)}
        kept = {model.host_of(Role.CORE, number) for number in state.wanted_core} - given_up
        assert not self.cluster.hdfs.missing(kept)

    @stateful.invariant()
    def a_recorded_hdfs_is_never_formatted(self):
        assert self.cluster.formats in ([], [""])

    @stateful.invariant()
    def there_are_as_many_core_nodes_as_at_first(self):
        state = self.cluster.state
        assert len(state.staying(Role.CORE)) >= state.first_core_nodes

    @stateful.invariant()
    def each_pod_was_in_the_status_before(self):
        state = self.cluster.state
        for pod in self.cluster.pods.values():
            if pod.role is Role.TRANSIENT:
                assert pod.number < state.next_transient
            if pod.role is Role.CORE:
                assert pod.number in state.wanted_core or pod.deleting_since_s is not None

    def _is_settled(self) -> bool:
        state = self.cluster.state
        is_sized = len(state.wanted_core) == self.cluster.spec["core"]["count"]
        return state.phase == "Ready" and is_sized and not state.leaving and state.settings == self.cluster.digest

    def teardown(self):
        """Without further faults the cluster becomes what its spec says."""
        self.cluster.yarn.containers.clear()
        self.cluster.yarn.pending = 0
        self.cluster.turn()  # which undoes a decommission that stalled,
        self.cluster.generation += 1  # so that it is tried again
        for _ in range(15):
            self.cluster.settle(10)
            if self._is_settled():
                break
        state, spec = self.cluster.state, self.cluster.spec
        assert state.phase == "Ready", (state.reason, state.conditions)
        assert not state.leaving
        assert sorted(self.cluster.pods) == sorted(state.wanted_hosts)
        assert len(state.wanted_core) == spec["core"]["count"]
        assert len(state.wanted_transient) >= spec["transient"].get("minimum", 0)
        assert state.settings == self.cluster.digest


TestClusterLife = ClusterLife.TestCase
TestClusterLife.settings = hypothesis.settings(max_examples=15, stateful_step_count=40)
