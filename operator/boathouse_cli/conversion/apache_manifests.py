"""SparkApplications of Apache's Spark operator (`spark.apache.org`) as SparkApps.

That operator submits `sparkConf` as it is, so its properties are converted as those of a command line are. What pods
have besides is in templates, and how an application is run in `applicationTolerations`.
"""

from collections.abc import Mapping
from typing import Final

from boathouse_cli.conversion import pod_fields, properties
from boathouse_cli.conversion.draft import ROLES, Draft, Unconvertible
from boathouse_cli.conversion.fields import Fields, put_version

GROUP: Final = "spark.apache.org"
KIND: Final = "SparkApplication"
_BACKOFF_MS: Final = 30_000
"""That operator's defaults."""
_KEPT: Final = "finished applications stay with their pods: set ttlSecondsAfterFinished"
_ROUTE: Final = "there is no Ingress or route: use `boathouse ui`, or write one for the Service of status.driver"
_ADVICE: Final[Mapping[str, str]] = {
    "instanceConfig": "Boathouse places the driver together with its minimum of executors: set "
    "dynamicAllocation.minExecutors, or executor.instances",
    "resourceRetainPolicy": _KEPT,
    "resourceRetainDurationMillis": _KEPT,
    "driverServiceIngressList": _ROUTE,
    "driverHttpRouteList": _ROUTE,
    "driverGrpcRouteList": _ROUTE,
    "configMapSpecs": "the SparkApp makes no ConfigMaps: write them as objects of their own, and apply them too",
    "proxyUser": "a driver cannot act for another user: remove it",
    "maxRestartOnSchedulingFailure": "is counted with other failures: set restartPolicy.onFailureRetries",
    "restartBackoffMillisForSchedulingFailure": "has no counterpart: restartPolicy.onFailureRetryInterval counts",
    "driverReadyTimeoutMillis": "has no counterpart: timeouts.driverStartSeconds ends when the driver runs",
}


def convert(draft: Draft, spec: Fields) -> None:
    """Fill the draft with a spec."""
    version = spec.inner("runtimeVersions").text("sparkVersion")
    conf = spec.texts("sparkConf")
    if version:
        conf = {key: text.replace("{{SPARK_VERSION}}", version) for key, text in conf.items()}
    # Name and namespace are those of the metadata, as in that operator.
    properties.drop_metadata(draft, conf, _where, "remove it")
    if files := spec.text("files"):
        conf.setdefault("spark.files", files)
    path, file = _program(draft, spec, conf)
    pods = pod_fields.PodSpecs(draft, [])
    for role in ROLES:
        part = spec.inner(f"{role}Spec")
        pods.convert_template(role, part.inner("podTemplateSpec"))
        part.note_left(draft, _ADVICE)
    left = properties.Properties(draft, conf, _where)
    left.convert_pods()
    pod_fields.convert(draft, pods.mounts)
    draft.put("mainApplicationFile", pod_fields.main_file(draft, path, file))
    left.convert_rest()
    if version:
        put_version(draft, "spec.runtimeVersions.sparkVersion", version)
    _tolerations(draft, spec.inner("applicationTolerations"))
    pods.finish(priority_class=None)
    if (suspended := spec.take("suspend")) is not None:
        draft.put("suspend", suspended)
    if (mode := spec.text("deploymentMode")) not in {None, "ClusterMode"}:
        draft.note("spec.deploymentMode", f"{mode}: the driver runs in a pod that Boathouse makes")
    spec.note_left(draft, _ADVICE)


def _where(key: str) -> str:
    return f'spec.sparkConf["{key}"]'


def _program(draft: Draft, spec: Fields, conf: dict[str, str]) -> tuple[str, str]:
    """Set the program; return where it is named, and its file."""
    jars, python, r = (spec.text(field) for field in ("jars", "pyFiles", "sparkRFiles"))
    if not jars and not python:
        if r:
            raise Unconvertible("spec.sparkRFiles", "applications in R are not supported: keep them where they are")
        raise Unconvertible("spec.jars", "is missing: name the jar of the image that has the class, as local:///PATH")
    field, key = ("jars", "spark.jars") if jars else ("pyFiles", "spark.submit.pyFiles")
    path = f"spec.{field}"
    if jars and python:
        draft.note("spec.pyFiles", "is not read there, because of spec.jars: remove it")
    file, *more_files = properties.words(jars or python or "") or [""]
    if more_files:
        conf.setdefault(key, ",".join(more_files))
    elif conf.get(key) == file:  # that operator names the program there
        del conf[key]
    main_class = spec.text("mainClass")
    if jars and main_class is None:
        raise Unconvertible("spec.mainClass", "is missing: name the class of the jar that has the main method")
    properties.program(draft, path, file if jars or file.endswith(".py") else f"{file}.py", main_class=main_class)
    if arguments := [str(argument) for argument in spec.items("driverArgs")]:
        draft.put("arguments", arguments)
    return path, file


def _tolerations(draft: Draft, given: Fields) -> None:
    _restarts(draft, given.inner("restartConfig"))
    timeouts = given.inner("applicationTimeoutConfig")
    for fields, theirs, ours in (
        (timeouts, "driverStartTimeoutMillis", "timeouts.driverStartSeconds"),
        (timeouts, "executorStartTimeoutMillis", "timeouts.executorStartSeconds"),
        (given, "ttlAfterStopMillis", "ttlSecondsAfterFinished"),
    ):
        if (time := _seconds(fields.take(theirs))) is not None:
            draft.put(ours, time)
    for key in ("forceTerminationGracePeriodMillis", "terminationRequeuePeriodMillis"):
        timeouts.take(key)  # of that operator's own work
    if given.take("resourceRetainPolicy") in {"Always", "OnFailure"}:
        draft.note(given.path("resourceRetainPolicy"), _KEPT)
    for fields in (timeouts, given):
        fields.note_left(draft, _ADVICE)


def _restarts(draft: Draft, given: Fields) -> None:
    kind = given.text("restartPolicy") or "Never"
    attempts = _number(given.take("maxRestartAttempts"), 3)
    attempts = min(attempts, _number(given.take("maxRestartOnFailure"), attempts))
    backoff_ms = _number(given.take("restartBackoffMillis"), _BACKOFF_MS)
    interval = max(1, _seconds(_number(given.take("restartBackoffMillisForFailure"), backoff_ms)) or 1)
    reset = _seconds(given.take("restartCounterResetMillis"))
    if kind == "Never":
        for key in ("maxRestartOnSchedulingFailure", "restartBackoffMillisForSchedulingFailure"):
            given.take(key)
        return
    draft.put(
        "restartPolicy",
        {
            "type": "Always" if kind == "Always" else "OnFailure",
            "onFailureRetries": 0 if kind == "OnInfrastructureFailure" else attempts,
            "onInfrastructureFailureRetries": attempts,
            "onFailureRetryInterval": interval,
            "maxRetryIntervalSeconds": interval,
        }
        | ({"resetAfterSeconds": max(1, reset)} if reset is not None else {}),
    )
    if kind == "Always":
        draft.note(
            given.path("restartPolicy"), "Always: restarts after a success are not counted: check that this may be"
        )
    given.note_left(draft, _ADVICE)


def _number(value: object, default: int) -> int:
    return min(value, 1000 * _BACKOFF_MS) if isinstance(value, int) and value >= 0 else default


def _seconds(milliseconds: object) -> int | None:
    """Return whole seconds, rounded up; None for what is not set, and for -1, which is that operator's for none."""
    return -(-milliseconds // 1000) if isinstance(milliseconds, int) and milliseconds >= 0 else None
