"""A cluster as other kinds see it. Pure."""

from typing import Final

from boathouse.resources.mrcluster.names import ConditionType
from boathouse.services.hadoop.directory import ClusterFacts
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.planning.observation import Observation
from boathouse.services.mrcluster.settings import files
from boathouse.services.mrcluster.state.cluster_state import ClusterState
from boathouse_policies.model import NodeName

_SERVING: Final = frozenset({"Ready", "Degraded"})
"""Phases in which jobs may begin if HDFS and YARN are available: a lost core node does not hold them up."""


def of(observation: Observation, state: ClusterState) -> ClusterFacts:
    """Return the facts of a cluster in a state.

    The settings for clients are those that all nodes have: while nodes are restarted, the former ones.
    """
    cluster, spec = observation.cluster, observation.cluster.spec
    names = Names(cluster)
    secrets = (*cluster.defaults.image_pull_secrets, *(each.name for each in spec.image_pull_secrets or ()))
    return ClusterFacts(
        uid=cluster.uid,
        namespace=cluster.namespace,
        name=cluster.name,
        queue=cluster.queue,
        phase=state.phase,
        is_ready=state.phase in _SERVING and state.holds(ConditionType.READY),
        has_compute=spec.compute,
        domain=names.fqdn(naming.MASTER).partition(".")[2],
        image=cluster.image,
        classpath=spec.classpath,
        java_home=spec.java_home,
        settings=names.config_map(state.settings or observation.digest),
        master=naming.MASTER,
        image_pull_policy=spec.image_pull_policy,
        image_pull_secrets=tuple(dict.fromkeys(secrets)),
        user_id=files.user_ids(cluster)[0],
        hosts={pod.host: NodeName(pod.node) for pod in observation.nodes if pod.node is not None and not pod.is_over},
    )
