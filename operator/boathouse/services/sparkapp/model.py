"""A SparkApp as the services see it: its spec with every default decided, the names of its attempts, its status. Pure.

`from_resource` creates an application, or returns a `Refusal` with a message for the user. An `AppState` is all that
survives when pods vanish: which attempt is the last, how those before it ended, and when the next may start. Numbers of
attempts are never used twice.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Self

from boathouse.cluster import catalogue, wire
from boathouse.resources import names, quantity
from boathouse.resources.config import OperatorConfig, SparkDefaults
from boathouse.resources.sparkapp.fields import is_closed
from boathouse.resources.sparkapp.names import SPARKAPP_KIND, SPARKAPP_PLURAL
from boathouse.resources.sparkapp.roles import MAX_EXECUTORS
from boathouse.resources.sparkapp.spec import SparkAppSpec
from boathouse.resources.sparkapp.status import MAX_ATTEMPTS_KEPT, SparkApp, SparkAppStatus
from boathouse.services.frame.admission import Applicant, applicant
from boathouse.services.frame.kind import Body, Refusal, refusing
from boathouse.services.frame.manifests import derived_name
from boathouse.services.frame.status_codec import StatusCodec
from boathouse.services.sparkapp import sizing, user_properties

SPARKAPPS: Final = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural=SPARKAPP_PLURAL, kind=SPARKAPP_KIND, view=wire.Manifest
)
MAX_PROPERTIES_BYTES: Final = 512 * 1024
"""Of the effective properties: a ConfigMap holds 1 MiB."""
MAX_PREFIX: Final = 38
"""Of executors' names: Spark adds `-exec-` and a number of up to 10 digits."""
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elastic:
    """How much less memory the executors of an application may have.

    `least` is for the least heap, with which they run longer by the factor `slowdown`, until that is measured.
    """

    least: sizing.Requests
    slowdown: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNames:
    """The names of an attempt: a second submission of it would meet the objects of the first.

    Attempts are numbered from 1, and no two attempts of an application have the same number. All have the same Service.
    `application_id` is the ID by which Spark knows the attempt, such as `spark-0123456789abcdef0123456789abcdef-1`.
    """

    attempt: int
    application_id: str
    driver_pod: str
    config_map: str
    executor_prefix: str
    service: str

    @classmethod
    def of(cls, application: str, uid: str, number: int) -> Self:
        """Return the names of an attempt of an application."""
        return cls(
            attempt=number,
            application_id=f"spark-{uid.replace('-', '')}-{number}",
            driver_pod=derived_name(application, uid, f"a{number}-driver"),
            config_map=derived_name(application, uid, f"a{number}-conf"),
            executor_prefix=derived_name(application, uid, f"a{number}", limit=MAX_PREFIX),
            service=derived_name(application, uid, "ui"),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class App(Applicant):
    """A valid SparkApp.

    `conf` has what the user and the defaults say in Spark's properties, without what is an attempt's. For `minimum`
    executors room is reserved before the driver starts. `ideal_executor` is what an executor requests with the memory
    of the spec, if `executor` is less.
    """

    spec: SparkAppSpec
    conf: Mapping[str, str]
    driver: sizing.Requests
    executor: sizing.Requests
    minimum: int
    defaults: SparkDefaults
    elastic: Elastic | None = None
    ideal_executor: sizing.Requests | None = None
    hadoop_clusters: tuple[str, ...] = ()

    @property
    def account(self) -> str:
        """Return the service account of its drivers."""
        return (self.spec.driver and self.spec.driver.service_account_name) or self.defaults.service_account

    @property
    def has_service(self) -> bool:
        """Return whether Spark's UI gets a Service."""
        return self.defaults.ui_service if self.spec.ui is None else self.spec.ui.service

    @property
    def mounts_objects(self) -> bool:
        """Return whether its pods mount a Secret or a ConfigMap of the user."""
        return any(volume.secret_name or volume.config_map_name for volume in self.spec.volumes or ())

    def attempt(self, number: int) -> AttemptNames:
        """Return the names of an attempt."""
        return AttemptNames.of(self.name, self.uid, number)

    @property
    def is_python(self) -> bool:
        """Return whether the program is in Python."""
        return self.spec.type == "Python"


@refusing
def from_resource(body: Body, config: OperatorConfig) -> App | Refusal:
    """Return the application that a custom resource describes, or why it cannot run."""
    spec = SparkApp.model_validate({"spec": body.get("spec")}).spec  # the status is another version's too
    fields = applicant(body, spec, config, config.spark.image, "Spark")
    if isinstance(fields, Refusal):
        return fields
    closed = sorted(filter(is_closed, spec.spark_conf or ()))
    if closed:
        message = f"sparkConf: {', '.join(closed)}: set by Boathouse: remove them"
        return Refusal(reason=names.Reason.INVALID_SPEC, message=message)
    conf = user_properties.of(spec)
    _check(spec, conf)
    is_python = spec.type == "Python"
    executor = sizing.executor(conf, is_python=is_python)
    return App(
        **fields,
        conf=conf,
        driver=sizing.driver(conf, is_python=is_python),
        executor=executor,
        minimum=sizing.minimum_executors(conf),
        elastic=_elastic(spec, conf, executor),
        hadoop_clusters=tuple(spec.hadoop_clusters or ()),
        defaults=config.spark,
    )


def _elastic(spec: SparkAppSpec, conf: Mapping[str, str], executor: sizing.Requests) -> Elastic | None:
    """Return how much less memory executors may have than in the spec."""
    elastic_memory = spec.executor.elastic_memory if spec.executor else None
    if elastic_memory is None:
        return None
    is_python, least = spec.type == "Python", {**conf, sizing.HEAP: sizing.spark_size(elastic_memory.min)}
    elastic = Elastic(
        least=sizing.executor(least, is_python=is_python), slowdown=1 + elastic_memory.slowdown_percent / 100
    )
    if elastic.least.memory_mib > executor.memory_mib:
        raise ValueError(f"executor.elasticMemory.min is more than {sizing.HEAP} (absent: 1g): lower it")
    return elastic


def _check(spec: SparkAppSpec, conf: Mapping[str, str]) -> None:
    user_properties.ports(conf)
    size = len(user_properties.render(conf))
    if size > MAX_PROPERTIES_BYTES:
        raise ValueError(
            f"the properties have {size} bytes, more than {MAX_PROPERTIES_BYTES}: shorten sparkConf, hadoopConf or deps"
        )
    minimum = sizing.minimum_executors(conf)
    if minimum > MAX_EXECUTORS:
        raise ValueError(f"{minimum} executors are more than {MAX_EXECUTORS}: lower the number, or allocate them")
    if sizing.is_dynamic(conf) and minimum > sizing.maximum_executors(conf):
        raise ValueError("dynamicAllocation: the minimum of executors is more than the maximum: lower it")
    for role in filter(None, (spec.driver, spec.executor)):
        for amount in (role.ephemeral_storage or 0, *(role.extended_resources or {}).values()):
            quantity.units(amount)
    if any("\0" in argument for argument in spec.arguments or ()):
        raise ValueError("arguments have no NUL: remove it")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppState(SparkAppStatus):
    """An application's status."""

    @property
    def is_finished(self) -> bool:
        """Whether the application has ended, one way or the other."""
        return self.phase in TERMINAL

    @property
    def is_settled(self) -> bool:
        """Whether the last attempt has ended and is counted, or there was none."""
        return self.attempt == 0 or any(attempt.number == self.attempt for attempt in self.past_attempts)


_CODEC: Final = StatusCodec(AppState)


def from_status(status: Mapping[str, Any] | None) -> AppState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    state = _CODEC.read(status)
    last = max((state.attempt, *(attempt.number for attempt in state.past_attempts)))
    return dataclasses.replace(state, attempt=last)


def to_status(state: AppState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    return _CODEC.write(dataclasses.replace(state, past_attempts=state.past_attempts[-MAX_ATTEMPTS_KEPT:]))


def without_free_parts(state: AppState) -> AppState:
    """Return the state without what only informs people and comes from drivers: the rest of a status is ours alone."""
    ended = tuple(dataclasses.replace(attempt, message="") for attempt in state.past_attempts)
    return dataclasses.replace(state, last_log="", past_attempts=ended, stages=None, tasks=None, progress_percent=None)
