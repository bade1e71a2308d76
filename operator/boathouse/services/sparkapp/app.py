"""A SparkApp as the services see it, with every default decided.

`from_resource` creates a job, or returns a `Refusal` with a message for the user.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import pydantic

from boathouse.cluster import catalogue, wire
from boathouse.resources import names, quantity, statuses
from boathouse.resources.config import OperatorConfig, SparkDefaults
from boathouse.resources.sparkapp.fields import is_closed
from boathouse.resources.sparkapp.names import SPARKAPP_KIND, SPARKAPP_PLURAL
from boathouse.resources.sparkapp.roles import MAX_EXECUTORS
from boathouse.resources.sparkapp.spec import HadoopFields, SparkAppSpec
from boathouse.resources.sparkapp.status import SparkApp
from boathouse.services.frame import manifests, queues
from boathouse.services.frame.kind import Body, ObjectUid, Refusal
from boathouse.services.hadoop.directory import ClusterFacts, Directory
from boathouse.services.sparkapp.submission import ports, sizing, user_properties

SPARKAPPS: Final = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural=SPARKAPP_PLURAL, kind=SPARKAPP_KIND, view=wire.Manifest
)
MAX_PROPERTIES_BYTES: Final = 512 * 1024
"""Of the effective properties: a ConfigMap holds 1 MiB."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elastic:
    """How much less memory the executors of an application may have.

    Attributes:
        least: What an executor requests with the least heap.
        slowdown: How much longer they then run, until that is measured.
    """

    least: sizing.Requests
    slowdown: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A valid SparkApp.

    Attributes:
        conf: What the user and the defaults say in Spark's properties, without what is an attempt's.
        driver: What the driver's pod requests, without extended resources of the field.
        executor: The same of an executor with the default resource profile.
        minimum: Executors that have room reserved before the driver starts.
        elastic: How much less memory executors may have; None: none.
        ideal_executor: What an executor requests with the memory of the spec; None: `executor`.
        hadoop_clusters: MRClusters of its namespace whose HDFS it sees as hdfs://NAME/.
        deleting_since_s: When it was deleted; it stays until its finalizers are gone.
    """

    uid: ObjectUid
    name: str
    namespace: str
    generation: int
    created_s: float
    queue: str
    image: str
    spec: SparkAppSpec
    template: manifests.Template
    conf: Mapping[str, str]
    driver: sizing.Requests
    executor: sizing.Requests
    minimum: int
    defaults: SparkDefaults
    elastic: Elastic | None = None
    ideal_executor: sizing.Requests | None = None
    hadoop_clusters: tuple[str, ...] = ()
    deleting_since_s: float | None = None

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

    @property
    def is_python(self) -> bool:
        """Return whether the program is in Python."""
        return self.spec.type == "Python"


def from_resource(body: Body, config: OperatorConfig) -> App | Refusal:
    """Return the application that a custom resource describes, or why it cannot run."""
    try:
        spec = SparkApp.model_validate({"spec": body.get("spec")}).spec  # the status is another version's too
        hadoop = HadoopFields.model_validate(body.get("spec") or {})
        return _app(body["metadata"], spec, hadoop, config)
    except pydantic.ValidationError as error:
        problems = "; ".join(f"spec.{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return Refusal(reason=names.Reason.INVALID_SPEC, message=problems)
    except (ValueError, ArithmeticError) as error:  # ArithmeticError: quantities with exponents of a dozen digits
        return Refusal(reason=names.Reason.INVALID_SPEC, message=str(error))


def _app(
    metadata: Mapping[str, Any], spec: SparkAppSpec, hadoop: HadoopFields, config: OperatorConfig
) -> App | Refusal:
    template = manifests.template(spec)
    queue = queues.admitting(config, metadata["namespace"], asked=spec.queue, priority_class=template.priority_class)
    if isinstance(queue, Refusal):
        return queue
    image = spec.image or config.spark.image
    if not image:
        return Refusal(reason=names.Reason.INVALID_SPEC, message="no image: set spec.image, or the chart's Spark image")
    closed = sorted(filter(is_closed, spec.spark_conf or ()))
    if closed:
        message = f"sparkConf: {', '.join(closed)}: set by Boathouse: remove them"
        return Refusal(reason=names.Reason.INVALID_SPEC, message=message)
    conf = user_properties.of(spec)
    _check(spec, conf)
    is_python = spec.type == "Python"
    return App(
        uid=ObjectUid(metadata["uid"]),
        name=metadata["name"],
        namespace=metadata["namespace"],
        generation=metadata.get("generation", 1),
        created_s=statuses.epoch(metadata["creationTimestamp"]) or 0.0,
        deleting_since_s=statuses.epoch(metadata.get("deletionTimestamp")),
        queue=queue,
        image=image,
        spec=spec,
        template=template,
        conf=conf,
        driver=sizing.driver(conf, is_python=is_python),
        executor=sizing.executor(conf, is_python=is_python),
        minimum=sizing.minimum_executors(conf),
        elastic=_elastic(spec, conf),
        hadoop_clusters=tuple(hadoop.hadoop_clusters or ()),
        defaults=config.spark,
    )


def _elastic(spec: SparkAppSpec, conf: Mapping[str, str]) -> Elastic | None:
    """Return how much less memory executors may have.

    Raises:
        ValueError: The least heap is more than the heap.
    """
    asked = spec.executor.elastic_memory if spec.executor else None
    if asked is None:
        return None
    is_python, least = spec.type == "Python", {**conf, sizing.HEAP: sizing.spark_size(asked.min)}
    found = Elastic(least=sizing.executor(least, is_python=is_python), slowdown=1 + asked.slowdown_percent / 100)
    if found.least.memory_mib > sizing.executor(conf, is_python=is_python).memory_mib:
        raise ValueError(f"executor.elasticMemory.min is more than {sizing.HEAP} (absent: 1g): lower it")
    return found


def _check(spec: SparkAppSpec, conf: Mapping[str, str]) -> None:
    """Refuse what would only fail when the driver starts.

    Raises:
        ValueError: With what is wrong.
    """
    ports.of(conf)
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


def hdfs_clusters(app: App, clusters: Directory) -> list[ClusterFacts]:
    """Return the clusters whose HDFS an application sees, as far as they exist."""
    found = (clusters.find(app.namespace, name) for name in app.hadoop_clusters)
    return [cluster for cluster in found if cluster is not None]


def unknown_clusters(app: App, clusters: Directory) -> list[str]:
    """Return the names of those that do not exist, or that a new leader has not reconciled yet."""
    return [name for name in app.hadoop_clusters if clusters.find(app.namespace, name) is None]
