"""The kinds of jobs that the commands know: how each is named, read, and what of its pods is whose."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from boathouse.resources import names
from boathouse.resources.mrcluster import names as mrcluster_names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.sparkapp import names as sparkapp_names
from boathouse_cli import model, mrclusters, mrjobs, options, sparkapps, timeline
from boathouse_cli.errors import CommandError, UnknownKindError, UsageError
from boathouse_cli.gateway import Gateway


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of jobs: its names for users, in manifests and in URLs, and how to read its objects.

    The selector is of the pods of a job, and perhaps of others; `own_pods` are those of them that are the job's.
    """

    name: str
    title: str
    plural: str
    aliases: tuple[str, ...]
    read: Callable[[model.Raw], model.Job]
    timeline: Callable[..., timeline.Timeline]
    selector: Callable[[model.Job], str] = lambda job: f"{names.LABEL_JOB_UID}={job.uid}"
    own_pods: Callable[[model.Job, Iterable[model.Raw]], Iterable[model.Raw]] = lambda _, pods: pods


MRJOB: Final = Kind(
    name=options.MRJOB,
    title=mrjob_names.KIND,
    plural=mrjob_names.PLURAL,
    aliases=("mrjobs", "mrj"),
    read=mrjobs.read,
    timeline=timeline.build,
)
SPARKAPP: Final = Kind(
    name=options.SPARKAPP,
    title=sparkapp_names.SPARKAPP_KIND,
    plural=sparkapp_names.SPARKAPP_PLURAL,
    aliases=("sparkapps", "sapp"),
    read=sparkapps.read,
    selector=sparkapps.selector,
    own_pods=sparkapps.own_pods,
    timeline=timeline.of_spark,
)
MRCLUSTER: Final = Kind(
    name=options.MRCLUSTER,
    title=mrcluster_names.KIND,
    plural=mrcluster_names.PLURAL,
    aliases=("mrclusters", "mrc"),
    read=mrclusters.read,
    timeline=timeline.of_cluster,
)
KINDS: Final = (MRJOB, SPARKAPP, MRCLUSTER)
JOBS: Final = (MRJOB, SPARKAPP)
"""Kinds whose objects end by themselves."""


def target(text: str) -> tuple[Kind | None, str]:
    """Split KIND/NAME; the kind is None for a pod."""
    written, slash, name = text.partition("/")
    if not slash:
        return MRJOB, written
    if name and written in {"pod", "pods", "po"}:
        return None, name
    kind = next((kind for kind in KINDS if written == kind.name or written in kind.aliases), None)
    if kind is None or not name:
        raise UsageError(f'"{text}" is not understood: write {options.SYNTAX} or pod/NAME')
    return kind, name


def object_target(text: str) -> tuple[Kind, str]:
    """Split KIND/NAME of an object of one of the kinds."""
    kind, name = target(text)
    if kind is None:
        raise UsageError(f'"{text}" is not an object of Boathouse: write {options.SYNTAX}')
    return kind, name


def job_target(text: str) -> tuple[Kind, str]:
    """Split KIND/NAME of a job."""
    kind, name = target(text)
    if kind is None or kind not in JOBS:
        raise UsageError(f'"{text}" is not a job: write {options.JOB_SYNTAX}')
    return kind, name


def job(gateway: Gateway, kind: Kind, name: str) -> model.Job:
    """Return the job of this name."""
    return kind.read(gateway.get(kind.plural, name))


def raw_jobs(gateway: Gateway, *, all_namespaces: bool, among: Sequence[Kind] = KINDS) -> list[model.Raw]:
    """Return the jobs of the kinds as JSON; none of a kind that the cluster does not have."""
    found, missing = list[model.Raw](), list[UnknownKindError]()
    for kind in among:
        try:
            found += gateway.objects(kind.plural, all_namespaces=all_namespaces)
        except UnknownKindError as error:
            missing.append(error)
    if len(missing) == len(among):
        raise missing[0]
    return found


def read(raw: model.Raw) -> model.Job:
    """Read a job of any kind."""
    return next((kind for kind in KINDS if kind.title == raw.get("kind")), MRJOB).read(raw)


def pods(gateway: Gateway, kind: Kind, of: model.Job) -> list[model.TaskPod]:
    """Return the pods of a job."""
    return [model.task_pod(raw) for raw in kind.own_pods(of, gateway.pods(kind.selector(of)))]


def drawn_pods(gateway: Gateway, kind: Kind, of: model.Job) -> list[model.TaskPod]:
    """Return the pods of a job, and executors whose pods are gone, as far as events about them are left."""
    found = pods(gateway, kind, of)
    if kind is not SPARKAPP:
        return found
    with contextlib.suppress(CommandError):  # events may not be readable
        found += sparkapps.gone_executors(of, gateway.events(involvedObject__kind="Pod"), {pod.name for pod in found})
    return found
