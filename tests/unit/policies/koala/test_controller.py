"""The two levels in the cycle: what the provider offers of a view, and what becomes of the answers."""

import types

import pytest

from boathouse_policies import framework, koala, model, profiles
from boathouse_policies.koala import Config, Policy
from boathouse_policies.koala.cluster import read
from tests.builders import core
from tests.builders.core_koala import cluster_state

WORKER = core.amount(4000, 8)
"""A whole node."""


class MastersShell(core.ReportingShell):
    """A shell whose clusters' masters report what a test says."""

    def __init__(
        self, nodes: int = 10, *, sites: tuple[str, ...] = ("",), profile: framework.Profile | None = None, **config
    ) -> None:
        zone = "topology.kubernetes.io/zone"
        zoned = [core.node(f"n{i}", labels={zone: sites[i % len(sites)]}) for i in range(nodes)]
        super().__init__(zoned, profile=profile or koala.build(Config(**config)))
        self.koala = koala.of(self.profile)
        assert self.koala is not None

    def submit_cluster(self, name: str, waiting: int = 0, kind: str = "", size=WORKER) -> None:
        """Submit a cluster of which so many nodes wait."""
        self.submit(name, waiting, size, kind=kind)

    def report_load(self, name: str, tasks: int = 0, **fields) -> None:
        """A master reports."""
        counters = cluster_state(tasks, name=name, **({"core": 2} | fields)).counters()
        self.report_task(model.Progress, core.task(core.task_class(core.job(name))), phase="cluster", counters=counters)

    def scales(self, at_s: float) -> list[tuple[str, int, bool]]:
        """(cluster, workers, core nodes) of each decision at a time."""
        self.now_s = at_s
        return [
            (decision.job, decision.workers, decision.stores) for decision in self.koala.advise(self.queue, self.view())
        ]


def busy(name: str = "c", shell: MastersShell | None = None, **options) -> MastersShell:
    """A shell with one cluster of two nodes that has much to do."""
    shell = shell or MastersShell(**options)
    shell.submit_cluster(name)
    shell.report_load(name, 16, waiting=500)
    return shell


def largest_part(shell: MastersShell) -> int:
    """The most nodes that one of four busy clusters takes."""
    for name in ("x", "y", "z", "zz"):
        busy(name, shell)
    return max(workers for _, workers, _ in shell.scales(30.0)) - 2


def test_a_cluster_is_offered_nodes_after_each_period_and_not_before():
    shell = busy()
    assert shell.scales(29.0) == []
    assert shell.scales(30.0) == [("c", 7, False)]
    assert shell.scales(35.0) == []
    assert shell.scales(60.0) == [("c", 12, False)]


def test_the_first_period_begins_with_the_first_report():
    shell = MastersShell()
    shell.submit_cluster("c")
    shell.now_s = 20.0
    shell.report_load("c", 16, waiting=500)
    assert shell.scales(49.0) == []
    assert shell.scales(50.0) != []


def test_no_more_nodes_are_taken_than_there_are():
    shell = busy(nodes=3)
    assert shell.scales(30.0) == [("c", 5, False)]


def test_nodes_that_hold_pods_are_not_idle():
    shell = busy(nodes=3)
    shell.ledger.observe(core.account("other", "n0"))
    assert shell.scales(30.0) == [("c", 4, False)]


def test_nodes_that_are_not_offered_to_the_cycle_are_not_offered_to_clusters():
    shell = busy(nodes=3)
    shell.now_s = 30.0
    view = shell.view(offered=[model.NodeName("n1")])
    assert [decision.workers for decision in shell.koala.advise(shell.queue, view)] == [3]


def test_an_accepted_offer_counts_until_the_master_reports_again():
    shell = busy()
    shell.scales(30.0)
    assert shell.scales(60.0) == [("c", 12, False)]
    shell.report_load("c", 16, waiting=500, transient=5)
    assert shell.scales(90.0) == [("c", 12, False)]


def test_nodes_that_one_cluster_took_are_not_offered_to_another_before_they_are_bound():
    shell = busy("first", nodes=6)
    shell.now_s = 10.0
    busy("second", shell)
    assert shell.scales(30.0) == [("first", 5, False)]
    assert shell.scales(40.0) == [("second", 4, False)]


def test_nodes_that_workers_of_a_cluster_wait_for_are_offered_to_no_other():
    shell = busy(nodes=6)
    shell.submit_cluster("other", waiting=4)
    shell.report_load("other", core=6, most_nodes=6)
    assert [scale for scale in shell.scales(30.0) if scale[0] == "c"] == [("c", 4, False)]


def test_a_cluster_below_the_minimum_shrinks_at_the_time_of_an_offer():
    shell = MastersShell()
    shell.submit_cluster("c")
    shell.report_load("c", 1, transient=4)
    assert shell.scales(30.0) == [("c", 4, False)]
    assert shell.scales(60.0) == [("c", 2, False)]
    assert shell.scales(90.0) == []


def test_idle_nodes_are_split_equally_over_clusters():
    shell = busy("x", busy("y", nodes=4))
    assert shell.scales(30.0) == [("y", 4, False), ("x", 4, False)]


def test_per_site_each_site_is_split_by_itself():
    for partition, most in (("all", 2), ("per-site", 3)):
        config = Config(partition=koala.Partition(partition))
        assert largest_part(MastersShell(nodes=6, sites=("a", "b", "c"), profile=koala.build(config))) == most


def test_a_static_cluster_leaves_its_part_to_others():
    shell = busy(nodes=4)
    shell.submit_cluster("s", kind="static")
    shell.report_load("s", 16, waiting=500)
    assert shell.scales(30.0) == [("c", 6, False)]


def test_a_job_names_its_policy_by_its_kind():
    shell = MastersShell()
    shell.submit_cluster("c", kind="ggdp")
    shell.report_load("c")
    assert shell.scales(30.0) == []
    assert shell.scales(120.0) == [("c", 4, True)]


def test_nodes_that_submissions_wait_for_are_not_offered():
    shell = busy(nodes=5)
    shell.submit_cluster("new", waiting=3)
    assert shell.scales(30.0) == [("c", 4, False)]


def test_what_waits_is_counted_in_nodes():
    shell = busy(nodes=5)
    shell.submit_cluster("small", waiting=5, size=core.amount(2000, 1))  # two of them fill a node's CPU
    assert shell.scales(30.0) == [("c", 4, False)]


def test_clusters_give_transient_nodes_back_for_submissions():
    shell = MastersShell(nodes=0)
    shell.submit_cluster("c")
    shell.report_load("c", 16, transient=4)
    shell.submit_cluster("new", waiting=3)
    assert shell.scales(5.0) == [("c", 4, False)]
    assert shell.scales(10.0) == []
    assert shell.scales(35.0) == [("c", 3, False)]  # two of three leave already


def test_a_cluster_that_needs_its_nodes_keeps_them():
    shell = MastersShell(nodes=0)
    shell.submit_cluster("c")
    shell.report_load("c", 48, transient=4, waiting=24)
    shell.submit_cluster("new", waiting=3)
    assert shell.scales(5.0) == []


def test_between_offers_and_reclaims_it_looks_at_neither_queue_nor_nodes():
    shell = busy()
    shell.report_load("c", 16, transient=3)
    shell.submit_cluster("new", waiting=20)
    assert shell.scales(1.0) == [("c", 3, False)]
    assert shell.koala.advise(None, types.SimpleNamespace(now_s=2.0)) == ()
    shell.report_load("c", 16)
    assert shell.koala.advise(None, types.SimpleNamespace(now_s=29.0)) == ()


def test_idle_nodes_come_before_reclaims():
    shell = MastersShell(nodes=3)
    shell.submit_cluster("c")
    shell.report_load("c", 16, transient=4)
    shell.submit_cluster("new", waiting=3)
    assert shell.scales(5.0) == []


def test_a_node_with_room_for_several_workers_counts_as_several():
    shell = MastersShell(nodes=1)
    shell.submit_cluster("c", size=core.amount(1000, 2))
    shell.report_load("c", 16, waiting=500)
    assert shell.scales(30.0) == [("c", 6, False)]


def test_a_cluster_with_workers_that_fit_nowhere_takes_nothing_from_others():
    shell = busy()
    shell.submit_cluster("huge", size=core.amount(400_000, 800))
    shell.report_load("huge", 16, waiting=500)
    assert shell.scales(30.0) == [("c", 7, False)]


def test_waiting_jobs_that_no_node_would_help_keep_no_nodes_back():
    shell = busy(nodes=5)
    shell.submit_cluster("never", waiting=3, size=core.amount(400_000, 8))
    shell.cycle()
    assert shell.scales(30.0) == [("c", 7, False)]


def test_a_cluster_may_have_constants_of_its_own():
    shell = MastersShell()
    own = Config(policy=Policy.GGDP, offer_nodes=3)
    shell.koala.terms[model.JobId("c")] = koala.Terms(config=own)
    busy("c", shell)
    assert shell.scales(30.0) == []
    assert shell.scales(120.0) == [("c", 5, True)]


def test_new_constants_of_a_cluster_hold_once_it_is_submitted_again():
    shell = busy()
    shell.koala.terms[model.JobId("c")] = koala.Terms(config=Config(grow_by=1))
    shell.submit_cluster("c")
    assert shell.scales(30.0) == [("c", 3, False)]


def test_only_the_class_that_a_cluster_grows_by_must_fit():
    shell = MastersShell(nodes=2)
    job = core.job("c")
    master, worker = core.task_class(job, core.amount(400_000, 800), name="master"), core.task_class(job, WORKER)
    shell.koala.terms[job.id] = koala.Terms(config=Config(), worker=worker.id)
    shell.report(core.submitted(job, master, worker, tasks={}))
    shell.report_load("c", 16, waiting=500)
    assert shell.scales(30.0) == [("c", 4, False)]


def test_workers_that_share_no_node_count_one_for_each_node_without_such_a_worker():
    shell = MastersShell(nodes=3)
    apart = (model.HostPort(port=0, protocol="apart/c"),)
    job = core.job("c")
    worker = core.task_class(job, core.amount(1000, 2), constraints=model.Constraints(host_ports=apart))
    shell.report(core.submitted(job, worker, tasks={}))
    shell.ledger.observe(core.account("core", "n0", host_ports=apart))
    shell.report_load("c", 16, waiting=500)
    assert shell.scales(30.0) == [("c", 4, False)]


def test_a_cluster_at_its_maximum_is_offered_nothing():
    shell = MastersShell()
    shell.submit_cluster("c")
    shell.report_load("c", 16, waiting=500, most_nodes=3)
    assert shell.scales(30.0) == [("c", 3, False)]
    assert shell.scales(60.0) == []


def test_the_last_offer_is_explained():
    shell = busy("x", busy("y", nodes=4))
    assert shell.koala.explain(model.JobId("x")) == ""
    shell.scales(30.0)
    assert shell.koala.explain(model.JobId("x")) == "2 of 4 idle nodes, weight 1 of 2"


def test_a_shell_need_not_wake_it_only_while_there_are_clusters():
    shell = MastersShell()
    assert shell.koala.is_idle()
    assert not busy(shell=shell).koala.is_idle()


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_can_grow_clusters_and_none_does_unless_a_shell_allows_it(name):
    plain, scaled = (profiles.build(name, switches=profiles.Switches(scale=on)) for on in (False, True))
    assert (koala.of(plain) is None) == (name != "koala")
    assert koala.of(scaled) is not None
    assert koala.added(scaled) is scaled


@pytest.mark.parametrize("name", ["fair", "koala"])
@pytest.mark.parametrize(("per_site", "most"), [(False, 2), (True, 3)])
def test_a_shell_chooses_whether_each_site_is_split_by_itself(name, per_site, most):
    profile = profiles.build(name, switches=profiles.Switches(scale=True, per_site=per_site))
    assert largest_part(MastersShell(nodes=6, sites=("a", "b", "c"), profile=profile)) == most


def test_jobs_that_ended_are_forgotten():
    shell = busy()
    shell.report(model.Ended(now_s=1.0, job=model.JobId("c"), succeeded=True))
    assert shell.scales(30.0) == []


def test_reports_of_other_programs_are_no_clusters():
    assert read(model.JobId("c"), {"phase_fraction": 0.5}) is None


def test_a_report_reads_as_it_was_written():
    state = cluster_state(5, transient=3, waiting=7, pending_nodes=2, leaving_nodes=1, workload_ended=True)
    assert read(state.name, state.counters()) == state


def test_a_dump_holds_nothing_and_loads():
    shell = busy()
    shell.koala.load(shell.koala.dump())
    assert shell.koala.dump() == {}
    assert shell.scales(30.0) == [("c", 7, False)]


@pytest.mark.parametrize("policy", list(Policy))
def test_the_profile_is_built_for_every_policy(policy):
    profile = koala.build(Config(policy=policy))
    assert profile.name == "koala"
    assert profile.controllers == profile.observers
