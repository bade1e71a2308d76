"""Build the manifest of a task pod, which is Burstable and satisfies Pod Security `restricted`. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pydantic

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import formats as mrjob_formats
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.mrjob import spec as mrjob_spec
from boathouse.resources.pods import template as pod_fields
from boathouse.resources.pods.environment import literal
from boathouse.services.frame import derived_name as names_of_pods
from boathouse.services.frame import disruption
from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.job.model import MIB, Job, Resources
from boathouse_task import contract, formats
from boathouse_task.contract import TaskType

_USER: Final = 10001
_TOKEN_SECONDS: Final = 3600
_FILES_MODE: Final = 0o555


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of the operator for every pod.

    Attributes:
        progress_url: URL of the progress endpoint for pods.
        scratch_bytes: size limit of each folder if the job requests no ephemeral storage.
        cluster: identity of the cluster, for ownership marks.
    """

    progress_url: str
    scratch_bytes: int
    image_pull_secrets: Sequence[str] = ()
    not_ready_toleration_s: int = 60
    cluster: str = ""


def pod_name(job: Job, attempt: Attempt) -> str:
    """Return the name of an attempt's pod, `JOB-UID8-s0-m-00042-a1`."""
    return derived_name(
        job, f"s{attempt.step}-{contract.attempt_name(attempt.task_type, attempt.index, attempt.number)}"
    )


def derived_name(job: Job, suffix: str) -> str:
    """Return `JOB-UID8-SUFFIX` (see `frame.derived_name`)."""
    return names_of_pods.derived_name(job.name, job.uid, suffix)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodBuilder:
    """Builds the pods of one job.

    Attributes:
        splits: splits of the current step's accepted plan, by map index; empty before its acceptance.
        hdfs: addresses of the clusters whose HDFS the job reads or writes, by name.
        sample: of a probe, the indices of the splits that it reads, and how many bytes of each.
        probe_s: of a probe, the time after which it reads no further split.
    """

    job: Job
    settings: PodSettings
    splits: Sequence[contract.Split] = ()
    hdfs: Mapping[str, contract.HdfsAddress] = dataclasses.field(default_factory=dict)
    sample: Sequence[tuple[int, int]] = ()
    probe_s: float = contract.PROBE_S
    _specs: dict[tuple[TaskType, int, Resources], dict[str, Any]] = dataclasses.field(default_factory=dict, init=False)

    def build(self, attempt: Attempt, resources: Resources, node: str | None) -> dict[str, Any]:
        """Return the manifest of an attempt's pod; without `node`, of a pending pod.

        Pods of a stage share the parts of their specs that do not depend on the task or the node: do not modify them.
        """
        key = attempt.task_type, attempt.step, resources
        shared = self._specs.get(key) or self._specs.setdefault(key, self._spec(attempt, resources))
        (container,) = shared["containers"]
        task = {"name": contract.TASK_ENV, "value": literal(msgspec.json.encode(self.task_spec(attempt)).decode())}
        env = [task if each["name"] == contract.TASK_ENV else each for each in container["env"]]
        spec = shared | {"containers": [container | {"env": env}]} | ({"nodeName": node} if node is not None else {})
        return disruption.protect(
            {"apiVersion": "v1", "kind": "Pod", "metadata": self._metadata(attempt), "spec": spec}
        )

    def _spec(self, attempt: Attempt, resources: Resources) -> dict[str, Any]:
        """Return the spec of a stage's pods, without the parts that depend on the task or the node."""
        job, template = self.job, self.job.template
        secrets = (*self.settings.image_pull_secrets, *(each.name for each in job.spec.image_pull_secrets or ()))
        spec = {
            "schedulerName": names.SCHEDULER_NAME,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
                **_manifest(template.security_context),
            },
            "containers": [self._container(attempt, resources)],
            "volumes": self._volumes(attempt, resources),
            "tolerations": [*map(_manifest, job.spec.tolerations or ()), *patience(self.settings)],
            "nodeSelector": dict(sorted((job.spec.node_selector or {}).items())),
            "imagePullSecrets": [{"name": name} for name in dict.fromkeys(secrets)],
            "serviceAccountName": job.spec.service_account_name,
            "affinity": _manifest(template.affinity),
            "priorityClassName": template.priority_class_name,
        }
        return {name: value for name, value in spec.items() if value not in (None, [], {})}

    def _metadata(self, attempt: Attempt) -> dict[str, Any]:
        job, asked = self.job, self.job.template.metadata or pod_fields.Metadata()
        metadata: dict[str, Any] = {
            "name": pod_name(job, attempt),
            "namespace": job.namespace,
            "labels": {
                **shared_labels(job, attempt.task_type, attempt.step),
                mrjob_names.LABEL_TASK_INDEX: str(attempt.index),
                mrjob_names.LABEL_ATTEMPT: str(attempt.number),
            },
            "annotations": {**(asked.annotations or {}), mrjob_names.ANNOTATION_JOB_NAME: job.name},
            "ownerReferences": [owner(job)],
        }
        split = self._split(attempt)
        if split is not None:
            start, end = split.offset_bytes, split.offset_bytes + split.length_bytes
            metadata["annotations"][mrjob_names.ANNOTATION_SPLIT] = f"{split.url}:{start}-{end}"
        return metadata

    def _split(self, attempt: Attempt) -> contract.Split | None:
        return self.splits[attempt.index] if attempt.task_type is TaskType.MAP else None

    def _splits(self, attempt: Attempt) -> list[contract.Split]:
        """Return the splits that a task for several maps reads."""
        match attempt.task_type:
            case TaskType.UBER:
                return list(self.splits)
            case TaskType.PROBE:
                return [self.splits[index] for index, _ in self.sample]
            case _:
                return []

    def _files(self, attempt: Attempt) -> Sequence[mrjob_spec.File]:
        """Return the job's files; none for cleanup, which runs no command and must not depend on ConfigMaps."""
        return () if attempt.task_type is TaskType.CLEANUP else self.job.spec.files or ()

    def _container(self, attempt: Attempt, resources: Resources) -> dict[str, Any]:
        job = self.job
        return {
            "name": names.CONTAINER,
            "image": job.image,
            "imagePullPolicy": job.image_pull_policy,
            "command": ["boathouse-task"],
            "workingDir": contract.WORK_PATH,
            "env": self._env(),
            **({"envFrom": [*map(_manifest, job.spec.env_from)]} if job.spec.env_from else {}),
            "resources": _requirements(resources),
            "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "memory", "restartPolicy": "NotRequired"},
            ],
            "terminationMessagePath": contract.TERMINATION_LOG_PATH,
            "terminationMessagePolicy": "File",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": self._mounts(attempt),
        }

    def _env(self) -> list[dict[str, Any]]:
        """Return the user's variables, then Boathouse's, so that users can neither reference nor replace these."""
        env: list[dict[str, Any]] = [*map(_manifest, self.job.spec.env or ()), *s3_keys(self.job)]
        limit = {"containerName": names.CONTAINER, "resource": "limits.memory"}
        fields = (
            (contract.POD_NAME_ENV, "metadata.name"),
            (contract.POD_UID_ENV, "metadata.uid"),
            (contract.NODE_NAME_ENV, "spec.nodeName"),
        )
        env.append({"name": contract.TASK_ENV})
        env.append({"name": contract.MEMORY_LIMIT_ENV, "valueFrom": {"resourceFieldRef": limit}})
        env += [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields]
        return env

    def task_spec(self, attempt: Attempt) -> contract.TaskSpec:
        """Return the parameters that a task of this type needs."""
        job, step = self.job, self.job.steps[attempt.step]
        is_setup = attempt.task_type is TaskType.SETUP
        return contract.TaskSpec(
            job_uid=job.uid,
            job_name=job.name,
            namespace=job.namespace,
            task_type=attempt.task_type,
            step=attempt.step,
            steps=len(job.steps),
            index=attempt.index,
            attempt=attempt.number,
            work_url=job.work_url,
            output_url=job.spec.output,
            input_urls=list(job.spec.input) if is_setup and not attempt.step else [],
            previous_reduces=job.steps[attempt.step - 1].reduces if is_setup and attempt.step else 0,
            input_format=job.input_format if not attempt.step else formats.BETWEEN_STEPS,
            combine_files=is_setup and job.spec.input_format == "CombineTextInputFormat",
            split=self._split(attempt),
            splits=self._splits(attempt),
            sample_bytes=[count for _, count in self.sample],
            probe_s=self.probe_s,
            maps=0 if is_setup else len(self.splits),
            reduces=step.reduces,
            mapper=list(step.mapper.command) or None,
            combiner=list(step.combiner) if step.combiner else None,
            reducer=list(step.reducer.command) if step.reducer else None,
            partitioner=step.partitioner,
            reduce_fields=step.reduce_fields,
            output_format=job.output_format,
            keeps_returns=job.spec.record_delimiter == formats.LF_ONLY,
            is_exit_checked=job.spec.non_zero_exit_is_failure,
            is_given_up=attempt.is_given_up,
            conf=job.spec.conf or {},
            queue=job.queue,
            split_max_bytes=job.split_max_bytes,
            output_compression=job.spec.output_compression or "",
            max_record_bytes=job.max_record_bytes,
            files=[file_source(each) for each in self._files(attempt)],
            archives=[_archive(each) for each in job.spec.archives or ()],
            s3=contract.S3Config(endpoint_url=job.s3.endpoint_url, region=job.s3.region) if job.s3 else None,
            hdfs=dict(self.hdfs),
            cluster=self.settings.cluster,
            progress_url=None if attempt.task_type is TaskType.PROBE else self.settings.progress_url,
            task_timeout_s=job.spec.task_timeout_seconds,
            secret_variables=[
                each.name for each in job.spec.env or () if each.value_from and each.value_from.secret_key_ref
            ],
        )

    def _mounts(self, attempt: Attempt) -> list[dict[str, Any]]:
        mounts: list[dict[str, Any]] = [
            {"name": "work", "mountPath": contract.WORK_PATH},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the pod
            *endpoint_mounts(),
        ]
        if any(each.config_map_key_ref for each in self._files(attempt)):
            mounts.append({"name": "files", "mountPath": contract.FILES_PATH, "readOnly": True})
        if self.job.volume:
            mounts.append({"name": "storage", "mountPath": self.job.volume.mount_path})
        return mounts

    def _volumes(self, attempt: Attempt, resources: Resources) -> list[dict[str, Any]]:
        scratch = quantity.format_bytes(resources.scratch_bytes or self.settings.scratch_bytes)
        volumes: list[dict[str, Any]] = [
            {"name": "work", "emptyDir": {"sizeLimit": scratch}},
            {"name": "tmp", "emptyDir": {"sizeLimit": scratch}},
            *endpoint_volumes(),
            *file_volumes(self._files(attempt)),
        ]
        if self.job.volume:
            claim = {"claimName": self.job.volume.claim_name}
            volumes.append({"name": "storage", "persistentVolumeClaim": claim})
        return volumes


def patience(settings: PodSettings) -> list[dict[str, Any]]:
    """Return tolerations that evict a pod from an unreachable node earlier than after Kubernetes' 300 s."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": settings.not_ready_toleration_s,
        }
        for taint in ("not-ready", "unreachable")
    ]


def s3_keys(job: Job) -> list[dict[str, Any]]:
    """Return the variables with the keys of the job's object storage."""
    return job.s3.variables([each.name for each in job.spec.env or ()]) if job.s3 else []


def endpoint_mounts() -> list[dict[str, Any]]:
    """Return the mounts with which a container sends requests to the progress endpoint."""
    return [
        {"name": "token", "mountPath": contract.TOKEN_PATH.rpartition("/")[0], "readOnly": True},
        {"name": "ca", "mountPath": contract.CA_PATH.rpartition("/")[0], "readOnly": True},
    ]


def endpoint_volumes() -> list[dict[str, Any]]:
    """Return the volumes of `endpoint_mounts`."""
    token = {"audience": names.TOKEN_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    return [
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        {"name": "ca", "configMap": {"name": names.PROGRESS_CA_CONFIG_MAP, "optional": True}},
    ]


def file_volumes(files: Sequence[mrjob_spec.File]) -> list[dict[str, Any]]:
    """Return the volume with the files that come from ConfigMaps."""
    sources = [_config_map(each) for each in files if each.config_map_key_ref]
    return [{"name": "files", "projected": {"defaultMode": _FILES_MODE, "sources": sources}}] if sources else []


def shared_labels(job: Job, task_type: TaskType, step: int) -> dict[str, str]:
    """Return the labels that the pods of a stage share."""
    asked = job.template.metadata or pod_fields.Metadata()
    labels = {
        **(asked.labels or {}),
        names.APP_NAME: "boathouse-task",
        names.APP_INSTANCE: job.name if len(job.name) <= names_of_pods.MAX_NAME else job.uid,
        names.APP_COMPONENT: task_type.value,
        names.APP_PART_OF: "boathouse",
        names.APP_MANAGED_BY: names.MANAGER,
        names.LABEL_JOB_UID: job.uid,
        names.LABEL_KIND: mrjob_names.KIND,
        mrjob_names.LABEL_STEP: str(step),
        mrjob_names.LABEL_TASK_TYPE: task_type.value,
        names.LABEL_QUEUE: job.queue,
    }
    return labels | {names.LABEL_PROBE: "true"} if task_type is TaskType.PROBE else labels


def owner(job: Job) -> dict[str, Any]:
    """Return the ownerReference to the job, so that Kubernetes deletes the object with the job."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": mrjob_names.KIND,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _requirements(resources: Resources) -> dict[str, Any]:
    extended = {name: str(count) for name, count in resources.extended}
    return {
        "requests": {
            "cpu": quantity.format_milli(resources.cpu_milli),
            "memory": quantity.format_bytes(resources.memory_request_bytes),
            **_storage(resources.ephemeral_storage_bytes),
            **extended,
        },
        "limits": {
            "cpu": quantity.format_milli(resources.cpu_limit_milli),
            "memory": quantity.format_bytes(resources.memory_bytes),
            **_storage(resources.ephemeral_storage_limit_bytes),
            **extended,
        },
    }


def _storage(size_bytes: int) -> dict[str, str]:
    return {"ephemeral-storage": quantity.format_bytes(size_bytes)} if size_bytes else {}


def _manifest(part: pydantic.BaseModel | None) -> dict[str, Any]:
    """Return a part of the spec as JSON; empty if it is absent."""
    return part.model_dump(by_alias=True, exclude_none=True) if part is not None else {}


def file_source(file: mrjob_spec.File) -> contract.FileSource:
    """Return a file of a job as tasks get it."""
    if file.url:
        return contract.FileSource(name=file.name, url=file.url)
    return contract.FileSource(name=file.name, path=f"{contract.FILES_PATH}/{file.name}")


def _archive(archive: mrjob_formats.Archive) -> contract.ArchiveSource:
    return contract.ArchiveSource(name=archive.name, url=archive.url, max_bytes=quantity.units(archive.max_size))


def _config_map(file: mrjob_spec.File) -> dict[str, Any]:
    reference = file.config_map_key_ref
    assert reference is not None
    return {"configMap": {"name": reference.name, "items": [{"key": reference.key, "path": file.name}]}}


def resized(resources: Resources, *, cpu_milli: int, memory_request_bytes: int) -> Resources:
    """Return the stage's resources with the size that the scheduler decided."""
    return dataclasses.replace(
        resources,
        cpu_milli=cpu_milli,
        cpu_limit_milli=max(resources.cpu_limit_milli, cpu_milli + 1),
        memory_bytes=memory_request_bytes + MIB,
    )
