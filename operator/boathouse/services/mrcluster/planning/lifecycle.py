"""What is recorded once in the life of a cluster, and since when its nodes lack a place. Pure."""

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.planning import membership
from boathouse.services.mrcluster.planning.observation import Draft, Observation


def record(observation: Observation, draft: Draft) -> Draft:
    """Record what holds for the whole life, the first core nodes and the ID of the HDFS, and the replication now.

    The ID is recorded when the NameNode first reports it; from then on no NameNode of the cluster may format a volume.
    """
    cluster = observation.cluster
    draft = draft.with_state(
        observed_generation=cluster.generation, queue=cluster.queue, replication=cluster.replication
    )
    if not draft.state.first_core_nodes:
        first = cluster.spec.core.count
        draft = draft.with_state(
            first_core_nodes=first,
            start_s=observation.now_s if draft.state.start_s is None else draft.state.start_s,
        )
        draft = membership.with_wanted(membership.added(draft, Role.CORE, range(first)), Role.CORE, first)
        draft = membership.with_wanted(draft, Role.TRANSIENT, cluster.spec.transient.minimum)
    found = observation.report.hdfs if observation.report else None
    if found is not None and not draft.state.cluster_id:
        draft = draft.with_state(cluster_id=found.cluster_id)
    return draft


def remember(observation: Observation, draft: Draft) -> Draft:
    """Note when the agent was last heard, and since when hosts have no Kubernetes node."""
    now_s, marks, age_s = observation.now_s, draft.marks, observation.report_age_s
    first_s = now_s if marks.heard_s is None else marks.heard_s
    hosts = [host for host in draft.state.wanted_hosts if host not in draft.state.leaving_hosts]
    unplaced_s = {host: marks.unplaced_s.get(host, now_s) for host in hosts if observation.is_unplaced(host)}
    return draft.with_marks(unplaced_s=unplaced_s, heard_s=first_s if age_s is None else now_s - age_s)
