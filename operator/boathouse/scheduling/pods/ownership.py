"""A pod as the ledger counts it, whom its resources are held by, and the task class of a pod of others."""

import functools
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts, requests, rows
from boathouse_policies import framework, model

_NAME_LENGTH = 253  # of an object; the name that an ownerReference says is not checked
PROBE = "/probe"  # what follows a job's UID in the name of its probe's job
QueueOf = Callable[[wire.Pod], model.QueueName]  # the queue that a pod names, or that of its namespace, or the default

ChargedQueueOf = Callable[[facts.PodFacts], model.QueueName | None]
"""The queue that a pod is charged to; None for a pod that the queue does not accept."""


def default_queue(pod: wire.Pod) -> model.QueueName:
    """Return the queue that a pod's label names, else `default`."""
    return model.QueueName(pod.metadata.labels.get(names.LABEL_QUEUE, "default"))


def charged_queue_of(queue_of: QueueOf, scheduling_queue: framework.SchedulingQueue) -> ChargedQueueOf:
    """Return what names the queue that a pod is charged to: the one that it names, if that accepts it."""

    def charged(pod: facts.PodFacts) -> model.QueueName | None:
        name = queue_of(pod)
        queue = scheduling_queue.queues.get(name)
        # a task's class was judged with its job, and an admission plugin may have given the pod the cluster's default.
        priority_class = "" if pod.task_of else pod.priority_class
        return name if queue is None or queue.accepts(pod.metadata.namespace, priority_class) else None

    return charged


def of(
    pod: facts.PodFacts,
    *,
    scheduler_name: str = names.SCHEDULER_NAME,
    queue_of: ChargedQueueOf = default_queue,
    driver: facts.PodFacts | None = None,
) -> framework.Account:
    """Return the account of a pod that is not terminal. `driver` is the pod of a job that controls it.

    Only Boathouse's pods are charged to a job, and of these only pods of this scheduler to a queue. A pod whose
    requests cannot be computed fills its node, and is charged to no job or queue.
    """
    owner = driver or pod
    is_ours = pod.scheduler_name == scheduler_name and not pod.problem
    is_charged = is_ours or (pod.task_of is not None and not pod.problem)
    return framework.Account(
        id=pod.id,
        node=model.NodeName(pod.node_name) if pod.node_name else None,
        resources=pod.resources,
        uid=model.PodUid(pod.metadata.uid),
        job=job_of(owner) if is_charged else None,
        queue=queue_of(owner) if is_ours else None,
        namespace=model.NamespaceName(pod.metadata.namespace),
        host_ports=pod.host_ports,
        labels=pod.labels,
        anti_affinity=pod.anti_affinity,
        is_ending=pod.metadata.deletion_timestamp is not None,
        is_long_running=driver is None and (pod.task_of is None or pod.restarts),
    )


def owning_job(pod: wire.Pod) -> str | None:
    """Return the job that a pod is a task of, or None: UID of an MRJob, or of an object of another kind of the group.

    A probe of a job is a task of a job of its own, so its usage and its attempts are not the job's.

    The label must agree with the controller: anybody may write a label, and only Boathouse makes pods that a resource
    of its own owns.
    """
    owner, uid = pod.metadata.controller, pod.metadata.labels.get(names.LABEL_JOB_UID)
    if owner is None or owner.api_version.partition("/")[0] != names.GROUP or owner.uid != uid:
        return None
    return f"{uid}{PROBE}" if pod.metadata.labels.get(names.LABEL_PROBE) == "true" else uid


def parent_of(metadata: wire.ObjectMeta) -> rows.PodKey | None:
    """Return the pod that controls a pod, such as a driver; None for another controller.

    Anybody can name any UID as owner, so the controller of a pod is in the pod's namespace.
    """
    owner = metadata.controller
    is_pod = owner is not None and (owner.kind, owner.api_version) == ("Pod", "v1")
    return (metadata.namespace, owner.uid) if owner is not None and is_pod else None


def job_of(pod: facts.PodFacts) -> model.JobId:
    """Return the job of a pod: that of a task, the owner of a foreign pod, or the pod itself.

    Pods of one owner that differ in namespace, queue label or priority are different jobs, because these are a job's.
    Anybody can name any owner; so such a job never has the name of an MRJob, or of a job in another namespace.
    """
    if pod.task_of is not None:
        return model.JobId(pod.task_of)
    metadata = pod.metadata
    uid, queue = (metadata.controller or metadata).uid, metadata.labels.get(names.LABEL_QUEUE, "")
    return model.JobId(f"{metadata.namespace}/{uid}/{queue}/{pod.priority_class}/{pod.priority}")


def holder_of(pod: facts.PodFacts) -> str:
    """Return who holds a pod's resources, for people: `mrjob/ns/name` for a task, else `ns/owner`."""
    namespace, owner = pod.metadata.namespace, pod.metadata.controller
    if owner is None:
        return f"{namespace}/{pod.metadata.name}"
    name = owner.name[:_NAME_LENGTH]
    return f"{owner.kind.lower()}/{namespace}/{name}" if pod.task_of else f"{namespace}/{name}"


def foreign_class(
    pod: facts.PodFacts, job: model.JobId | None = None, shown: Callable[[str, str], str | None] = lambda *_: None
) -> model.TaskClass:
    """Return the class of a foreign pod. `shown` returns what selectors tell apart of a label (`Ledger.shown`).

    Pods of one owner with equal requests and constraints have one class, if no selector tells their labels apart: pods
    may have labels of their own, such as the index of a Job's pod. Raises UnreadablePodError for one with a problem.
    """
    job = job_of(pod) if job is None else job
    constraints = pod.constraints or model.UNCONSTRAINED
    if pod.problem:
        raise problem_of(pod)
    if isinstance(constraints, str):
        raise requests.UnreadablePodError(constraints, is_too_complex=pod.is_too_complex)
    own = constraints.mentions if constraints.concern_pods else frozenset()
    labels = dict(_distinguishing_labels(pod.labels, own, shown))
    parts = (pod.resources, constraints, tuple(sorted(labels.items()))) if labels else (pod.resources, constraints)
    return model.TaskClass(
        id=model.ClassId(f"{job}/{_digest(*parts)}"),
        job=job,
        resources=pod.resources,
        constraints=constraints,
        labels=labels,
    )


def _distinguishing_labels(
    labels: Mapping[str, str], own: Collection[model.LabelMention], shown: Callable[[str, str], str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the labels that own selectors or those of others depend on, as far as these tell them apart."""
    for key, value in labels.items():
        shown_value = value if (key, value) in own else shown(key, value)
        if shown_value is None and (key, None) in own:
            shown_value = framework.OTHER_VALUE
        if shown_value is not None:
            yield key, shown_value


def problem_of(pod: facts.PodFacts) -> requests.UnreadablePodError:
    """Return why a pod cannot be represented."""
    return requests.UnreadablePodError(pod.problem, is_too_complex=pod.is_too_complex)


@functools.lru_cache(maxsize=256)  # pods of one owner have equal requests
def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
