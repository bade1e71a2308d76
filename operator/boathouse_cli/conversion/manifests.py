"""Manifests of the Spark operator of Kubeflow (`sparkoperator.k8s.io/v1beta2`) as SparkApps.

That operator runs `spark-submit` with a property for most fields; the properties are converted as those of a command
line are. The other fields describe pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from boathouse import bounded_yaml
from boathouse.resources.sparkapp.fields import FIELDS
from boathouse_cli.conversion import apache_manifests, pod_fields
from boathouse_cli.conversion.draft import DRIVER, EXECUTOR, ROLES, Converted, Draft, Unconvertible
from boathouse_cli.conversion.fields import Fields, put_version
from boathouse_cli.conversion.properties import Properties, drop_metadata

GROUP: Final = "sparkoperator.k8s.io"
API_VERSION: Final = f"{GROUP}/v1beta2"
KIND: Final = "SparkApplication"
SCHEDULED: Final = "ScheduledSparkApplication"
SPARK_CONF: Final = "/mnt/spark-conf"
_NEITHER: Final = "has neither objects in YAML nor a command line of spark-submit"
_RETRY_INTERVAL_S: Final = 300
"""The longest interval between attempts of a SparkApp, unless it says more."""
_MANY: Final = 1000
"""What `Always` of the other operator means: it has no limit."""
_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("image",),
    DRIVER: ("cores", "coreLimit", "coreRequest", "javaOptions", "memory", "memoryOverhead", "serviceAccount"),
    EXECUTOR: (
        *("cores", "coreLimit", "coreRequest", "deleteOnTermination", "instances", "javaOptions", "memory"),
        *("memoryOverhead", "serviceAccount"),
    ),
    "deps": ("jars", "files", "pyFiles", "archives", "packages", "excludePackages", "repositories"),
    "dynamicAllocation": (
        *("initialExecutors", "minExecutors", "maxExecutors", "shuffleTrackingEnabled", "shuffleTrackingTimeout"),
    ),
}
"""Fields that are properties, by the part of the spec."""
_KEYS: Final[Mapping[str, str]] = FIELDS | {
    "image": "spark.kubernetes.container.image",
    "driver.serviceAccount": "spark.kubernetes.authenticate.driver.serviceAccountName",
    "executor.deleteOnTermination": "spark.kubernetes.executor.deleteOnTermination",
    "executor.serviceAccount": "spark.kubernetes.authenticate.executor.serviceAccountName",
    "dynamicAllocation.shuffleTrackingEnabled": "spark.dynamicAllocation.shuffleTracking.enabled",
    "dynamicAllocation.shuffleTrackingTimeout": "spark.dynamicAllocation.shuffleTracking.timeout",
}
"""Their properties, which most have in a SparkApp too."""
_DEFAULTS: Final[Mapping[str, str]] = {
    "imagePullPolicy": "spark.kubernetes.container.image.pullPolicy",
    "memoryOverheadFactor": "spark.kubernetes.memoryOverheadFactor",
}
"""Fields that are properties unless `sparkConf` has them."""
_VARIABLE: Final[Mapping[str, str]] = {DRIVER: "spark.kubernetes.driverEnv", EXECUTOR: "spark.executorEnv"}
_FILES_OF_SECRETS: Final[Mapping[str, tuple[str, str]]] = {
    "GCPServiceAccount": ("GOOGLE_APPLICATION_CREDENTIALS", "key.json"),
    "HadoopDelegationToken": ("HADOOP_TOKEN_FILE_LOCATION", "hadoop.token"),
    "KerberosKeytab": ("KRB5_KEYTAB_FILE", "krb5.keytab"),
}
_OF_SERVER: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
"""Metadata that the API server adds."""


def convert_text(text: str) -> Iterator[Converted]:
    """Convert each document; a List counts as its items. Raises ValueError for a text that is not YAML of objects."""
    try:
        documents = [document for document in bounded_yaml.load_all(text) if document is not None]
    except ValueError as error:
        raise ValueError(f"{_NEITHER}: {error}") from error
    for number, document in enumerate(documents, 1):
        if not isinstance(document, dict):
            raise ValueError(_NEITHER)  # noqa: TRY004 - it is the text that is wrong
        items = document.get("items")
        for manifest in items if isinstance(items, list) else [document]:
            yield convert(manifest, number)


def convert(manifest: Any, number: int = 1) -> Converted:
    """Convert one manifest."""
    given = Fields(manifest, "")
    given.take("status")
    kind, version = given.text("kind") or "", given.text("apiVersion") or ""
    metadata = given.inner("metadata")
    name = metadata.text("name")
    draft = Draft(f"{kind.lower()}/{name}" if kind and name else f"document {number}")
    is_apache = kind == apache_manifests.KIND and version.startswith(f"{apache_manifests.GROUP}/")
    if not is_apache and (kind not in {KIND, SCHEDULED} or not version.startswith(f"{GROUP}/")):
        draft.note("kind", f"{version} {kind} is no {KIND}: left out; apply it as it is, if the application needs it")
        return Converted(manifest=None, notes=tuple(draft.notes))
    if not is_apache and version != API_VERSION:
        draft.note("apiVersion", f"{version} is not {API_VERSION}: have the cluster convert it first")
        return draft.refuse()
    try:
        _metadata(draft, name, metadata)
        spec = given.inner("spec")
        if kind == SCHEDULED:
            spec = _of_schedule(draft, spec)
        if is_apache:
            apache_manifests.convert(draft, spec)
        else:
            _Application(draft, spec).convert()
        for fields in (given, metadata):
            fields.note_left(draft)
        return draft.finish()
    except Unconvertible as why:
        return draft.refuse(why)


def _metadata(draft: Draft, name: str | None, metadata: Fields) -> None:
    found = {"name": name, **{key: metadata.text(key) for key in ("generateName", "namespace")}}
    draft.metadata |= {key: value for key, value in found.items() if value is not None}
    for key in _OF_SERVER:
        metadata.take(key)
    for key in ("labels", "annotations"):
        kept = metadata.texts(key)
        kept.pop("kubectl.kubernetes.io/last-applied-configuration", None)
        draft.metadata |= {key: kept} if kept else {}


def _of_schedule(draft: Draft, spec: Fields) -> Fields:
    """Return the spec of each run; the schedule itself has no counterpart."""
    for key in ("schedule", "timeZone", "concurrencyPolicy", "suspend"):
        if (value := spec.text(key)) is not None:
            advice = "create the SparkApp from a CronJob that runs `kubectl create`, or a workflow"
            draft.note(f"spec.{key}", f"{value}: there are no schedules: {advice}")
    for key in ("successfulRunHistoryLimit", "failedRunHistoryLimit"):
        if spec.take(key) is not None:
            draft.note(f"spec.{key}", "has no counterpart: set ttlSecondsAfterFinished")
    template = spec.inner("template")
    spec.note_left(draft)
    return template


class _Application:
    def __init__(self, draft: Draft, spec: Fields) -> None:
        self._draft, self._spec = draft, spec
        self._conf: dict[str, str] = {}
        self._where: dict[str, str] = {}

    def convert(self) -> None:
        draft, spec = self._draft, self._spec
        self._program()
        roles = {role: spec.inner(role) for role in ROLES}
        self._collect_properties(roles)
        pods = pod_fields.PodSpecs(draft, [*spec.mappings("volumes")])
        for role, fields in roles.items():
            pods.convert_template(role, fields.inner("template"))
        properties = Properties(draft, self._conf, self._where_of)
        properties.convert_pods()
        for role, fields in roles.items():
            pods.convert(role, fields)
        pod_fields.convert(draft, pods.mounts)
        self._config_maps()
        draft.put("mainApplicationFile", pod_fields.main_file(draft, "spec.mainApplicationFile", self._main_file))
        properties.convert_rest()
        self._life()
        self._rest(pods)
        for fields in (spec, *roles.values()):
            fields.note_left(draft)

    def _program(self) -> None:
        draft, spec = self._draft, self._spec
        program = spec.text("type") or "Scala"
        if program not in {"Java", "Python", "Scala"}:
            raise Unconvertible("spec.type", f"{program} is not supported, only Java, Python, Scala: keep it there")
        draft.put("type", program)
        self._main_file = spec.text("mainApplicationFile") or ""
        if not self._main_file:
            raise Unconvertible("spec.mainApplicationFile", "is missing: name a Python file or a jar")
        main_class = spec.text("mainClass")
        if program != "Python":
            if main_class is None:
                raise Unconvertible("spec.mainClass", "is missing: name the class of the jar that has the main method")
            draft.put("mainClass", main_class)
        elif main_class is not None:
            draft.note("spec.mainClass", "a Python application has none: it is left out")
        if arguments := [str(argument) for argument in spec.items("arguments")]:
            draft.put("arguments", arguments)

    def _collect_properties(self, roles: Mapping[str, Fields]) -> None:
        """Collect `sparkConf` and `hadoopConf`, then the fields, as the other operator does: the last one wins."""
        spec = self._spec
        self._conf |= spec.texts("sparkConf")
        self._collect_defaults()
        for key, text in spec.texts("hadoopConf").items():
            self._set(f"spark.hadoop.{key}", text, f'spec.hadoopConf["{key}"]')
        allocation = spec.inner("dynamicAllocation")
        if allocation.take("enabled") is True:
            self._set("spark.dynamicAllocation.enabled", "true", allocation.path("enabled"))
        else:  # the other operator does not read the rest
            allocation = Fields({}, "")
        parts = {"": spec, **roles, "deps": spec.inner("deps"), "dynamicAllocation": allocation}
        for part, names in _PROPERTIES.items():
            fields = parts[part]
            for name in names:
                value = ",".join(map(str, fields.items(name))) if part == "deps" else fields.text(name)
                if value:
                    self._set(_KEYS[f"{part}.{name}".removeprefix(".")], value, fields.path(name))
            if part in {"deps", "dynamicAllocation"}:
                fields.note_left(self._draft)
        for role, fields in roles.items():
            self._collect_pods(role, fields)
        self._set_all("spark.kubernetes.node.selector", spec.texts("nodeSelector"), spec.path("nodeSelector"))
        if self._conf.get("spark.dynamicAllocation.enabled") != "true":
            self._conf.setdefault("spark.executor.instances", "1")  # the other operator's default; Spark's own is 2

    def _collect_defaults(self) -> None:
        """Collect the fields that the other operator writes before `sparkConf`, and metadata that is not its."""
        secrets = ",".join(map(str, self._spec.items("imagePullSecrets")))
        found = {"spark.kubernetes.container.image.pullSecrets": ("imagePullSecrets", secrets)}
        found |= {key: (name, self._spec.text(name) or "") for name, key in _DEFAULTS.items()}
        for key, (name, value) in found.items():
            if value and self._conf.setdefault(key, value) != value:
                advice = f"{self._where_of(key)} says otherwise, and is taken: remove one of them"
                self._draft.note(f"spec.{name}", advice)
        drop_metadata(self._draft, self._conf, self._where_of, "remove one of them")

    def _collect_pods(self, role: str, fields: Fields) -> None:
        """Collect what the other operator says of a role's pods in properties."""
        prefix = f"spark.kubernetes.{role}"
        generic, own = "spark.kubernetes.container.image", f"{prefix}.container.image"
        if image := fields.text("image"):
            self._set(own, image, fields.path("image"))
        elif generic in self._where and own in self._conf:
            self._set(own, self._conf[generic], self._where[generic])
        self._set_all(f"{prefix}.label", self._draft.metadata.get("labels", {}), "metadata.labels")
        for field, part in (("labels", "label"), ("annotations", "annotation"), ("nodeSelector", "node.selector")):
            self._set_all(f"{prefix}.{part}", fields.texts(field), fields.path(field))
        references = fields.inner("envSecretKeyRefs")
        for name in references.names():
            key = references.inner(name)
            text = f"{key.text('name') or ''}:{key.text('key') or ''}"
            self._set(f"{prefix}.secretKeyRef.{name}", text, fields.path("envSecretKeyRefs"))
        self._set_all(_VARIABLE[role], fields.texts("envVars"), fields.path("envVars"))
        for secret in fields.mappings("secrets"):
            name, folder = str(secret.get("name")), str(secret.get("path")).rstrip("/")
            path = f"{fields.path('secrets')}.{name}"
            self._set(f"{prefix}.secrets.{name}", folder, path)
            if (known := _FILES_OF_SECRETS.get(str(secret.get("secretType")))) is not None:
                self._set(f"{_VARIABLE[role]}.{known[0]}", f"{folder}/{known[1]}", path)

    def _set_all(self, prefix: str, texts: Mapping[str, str], path: str) -> None:
        for key, text in texts.items():
            self._set(f"{prefix}.{key}", text, path)

    def _set(self, key: str, value: str, path: str) -> None:
        if self._conf.get(key, value) != value:
            self._draft.note(self._where_of(key), f"{path} says otherwise, and is taken: remove one of them")
        self._conf[key], self._where[key] = value, path

    def _where_of(self, key: str) -> str:
        return self._where.get(key, f'spec.sparkConf["{key}"]')

    def _config_maps(self) -> None:
        draft = self._draft
        if name := self._spec.text("hadoopConfigMap"):
            pod_fields.put_hadoop_config_map(draft, "spec.hadoopConfigMap", name)
        if name := self._spec.text("sparkConfigMap"):
            path = "spec.sparkConfigMap"
            pod_fields.mount_config_map(draft, path, name, volume="spark-conf", mount_path=SPARK_CONF)
            draft.note(
                path,
                f"is mounted at {SPARK_CONF}, and SPARK_CONF_DIR is Boathouse's: write properties into sparkConf, and "
                f"name a log4j2.properties by javaOptions -Dlog4j2.configurationFile=file://{SPARK_CONF}/log4j2.properties",
            )

    def _life(self) -> None:
        draft, policy = self._draft, self._spec.inner("restartPolicy")
        kind = policy.text("type") or "Never"
        interval = policy.take("onFailureRetryInterval") or 5
        retries = policy.take("onFailureRetries")
        if kind != "Never":
            if retries is None:
                retries = _MANY if kind == "Always" else 0
            draft.put("restartPolicy", {"type": kind, "onFailureRetries": retries, "onFailureRetryInterval": interval})
            if isinstance(interval, int) and interval > _RETRY_INTERVAL_S:
                draft.put("restartPolicy.maxRetryIntervalSeconds", interval)
        policy.note_left(draft)
        for key, field in (("timeToLiveSeconds", "ttlSecondsAfterFinished"), ("suspend", "suspend")):
            if (value := self._spec.take(key)) is not None:
                draft.put(field, value)

    def _rest(self, pods: pod_fields.PodSpecs) -> None:
        draft, spec = self._draft, self._spec
        if version := spec.text("sparkVersion"):
            put_version(draft, "spec.sparkVersion", version)
        if (mode := spec.text("mode")) not in {None, "cluster"}:
            draft.note("spec.mode", f"{mode}: the driver runs in a pod that Boathouse makes, as with cluster")
        if spec.text("pythonVersion") == "2":
            draft.note("spec.pythonVersion", "Spark needs Python 3: convert the program")
        options = spec.inner("batchSchedulerOptions")
        if scheduler := spec.text("batchScheduler"):
            draft.note("spec.batchScheduler", f"{scheduler}: Boathouse places the driver and its executors together")
        if queue := options.text("queue"):
            pod_fields.put_queue(draft, options.path("queue"), queue)
        pods.finish(priority_class=options.text("priorityClassName"))
        options.note_left(draft)
        monitoring = spec.inner("monitoring")
        exposed = [monitoring.take(key) for key in ("exposeDriverMetrics", "exposeExecutorMetrics")]
        if monitoring.take("prometheus"):
            advice = "the JMX exporter is replaced by Spark's own Prometheus servlet, at the UI port of the driver"
            draft.note(monitoring.path("prometheus"), advice)
            if any(exposed):
                draft.put("monitoring.prometheus", True)
        monitoring.note_left(draft)
