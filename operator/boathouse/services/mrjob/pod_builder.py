"""Build the manifest of a task pod, which is Burstable and satisfies Pod Security `restricted`. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import formats as mrjob_formats
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.mrjob import spec as mrjob_spec
from boathouse.resources.pod_environment import literal
from boathouse.services.frame import manifests
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrjob.model import MIB, MRJOBS, Job, Resources
from boathouse.services.mrjob.settle import Attempt
from boathouse_task import contract, formats
from boathouse_task.contract import TaskType

_USER: Final = 10001
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
    suffix = f"s{attempt.step}-{contract.attempt_name(attempt.task_type, attempt.index, attempt.number)}"
    return manifests.derived_name(job.name, job.uid, suffix)


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
    _stages: dict[tuple[TaskType, int, Resources], Manifest] = dataclasses.field(default_factory=dict, init=False)

    def build(self, attempt: Attempt, resources: Resources, node: str | None) -> Manifest:
        """Return the manifest of an attempt's pod; without `node`, of a pending pod.

        Pods of a stage share the parts of their specs that do not depend on the task or the node: do not modify them.
        """
        key = attempt.task_type, attempt.step, resources
        shared = self._stages.get(key) or self._stages.setdefault(key, self.stage(*key))
        (container,) = shared["spec"]["containers"]
        task = {"name": contract.TASK_ENV, "value": literal(msgspec.json.encode(self.task_spec(attempt)).decode())}
        env = [task if variable["name"] == contract.TASK_ENV else variable for variable in container["env"]]
        spec = shared["spec"] | {"containers": [container | {"env": env}]}
        if node is not None:
            spec["nodeName"] = node
        return {**shared, "metadata": self._metadata(attempt, shared["metadata"]), "spec": spec}

    def stage(self, task_type: TaskType, step: int, resources: Resources) -> Manifest:
        """Return the pod of a stage, without the parts that depend on the task or the node."""
        job = self.job
        metadata = {
            "namespace": job.namespace,
            "labels": stage_labels(job, task_type, step),
            "annotations": {mrjob_names.ANNOTATION_JOB_NAME: job.name},
            "ownerReferences": [manifests.owner_reference(MRJOBS, job)],
        }
        return manifests.pod(
            metadata,
            manifests.template(job.spec),
            user_id=_USER,
            containers=[self._container(task_type, resources)],
            volumes=self._volumes(task_type, resources),
            tolerations=job.spec.tolerations or (),
            patience_s=self.settings.not_ready_toleration_s,
            node_selector=job.spec.node_selector or {},
            image_pull_secrets=self.settings.image_pull_secrets,
            is_protected=True,
        )

    def _metadata(self, attempt: Attempt, shared: Manifest) -> Manifest:
        own = {mrjob_names.LABEL_TASK_INDEX: str(attempt.index), mrjob_names.LABEL_ATTEMPT: str(attempt.number)}
        annotations = dict(shared["annotations"])
        split = self._split(attempt)
        if split is not None:
            start, end = split.offset_bytes, split.offset_bytes + split.length_bytes
            annotations[mrjob_names.ANNOTATION_SPLIT] = f"{split.url}:{start}-{end}"
        return {
            **shared,
            "name": pod_name(self.job, attempt),
            "labels": shared["labels"] | own,
            "annotations": annotations,
        }

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

    def _files(self, task_type: TaskType) -> Sequence[mrjob_spec.File]:
        """Return the job's files; none for cleanup, which runs no command and must not depend on ConfigMaps."""
        return () if task_type is TaskType.CLEANUP else self.job.spec.files or ()

    def _container(self, task_type: TaskType, resources: Resources) -> Manifest:
        job = self.job
        return {
            "name": names.CONTAINER,
            "image": job.image,
            "imagePullPolicy": job.image_pull_policy,
            "command": ["boathouse-task"],
            "workingDir": contract.WORK_PATH,
            "env": self._env(),
            "resources": _requirements(resources),
            "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "memory", "restartPolicy": "NotRequired"},
            ],
            "terminationMessagePath": contract.TERMINATION_LOG_PATH,
            "terminationMessagePolicy": "File",
            "securityContext": manifests.container_security(),
            "volumeMounts": self._mounts(task_type),
        }

    def _env(self) -> list[Manifest]:
        """Return the user's variables, then Boathouse's, so that users can neither reference nor replace these."""
        env: list[Manifest] = [*map(manifests.as_json, self.job.spec.env or ()), *s3_keys(self.job)]
        limit = {"containerName": names.CONTAINER, "resource": "limits.memory"}
        env.append({"name": contract.TASK_ENV})
        env.append({"name": contract.MEMORY_LIMIT_ENV, "valueFrom": {"resourceFieldRef": limit}})
        env += manifests.field_variables(
            (contract.POD_NAME_ENV, "metadata.name"),
            (contract.POD_UID_ENV, "metadata.uid"),
            (contract.NODE_NAME_ENV, "spec.nodeName"),
        )
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
            files=[file_source(file) for file in self._files(attempt.task_type)],
            archives=[_archive(archive) for archive in job.spec.archives or ()],
            s3=contract.S3Config(endpoint_url=job.s3.endpoint_url, region=job.s3.region) if job.s3 else None,
            hdfs=dict(self.hdfs),
            cluster=self.settings.cluster,
            progress_url=None if attempt.task_type is TaskType.PROBE else self.settings.progress_url,
            task_timeout_s=job.spec.task_timeout_seconds,
            secret_variables=[
                variable.name
                for variable in job.spec.env or ()
                if variable.value_from and variable.value_from.secret_key_ref
            ],
        )

    def _mounts(self, task_type: TaskType) -> list[Manifest]:
        mounts: list[Manifest] = [
            {"name": "work", "mountPath": contract.WORK_PATH},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the pod
            *manifests.endpoint_mounts(),
        ]
        if any(file.config_map_key_ref for file in self._files(task_type)):
            mounts.append({"name": "files", "mountPath": contract.FILES_PATH, "readOnly": True})
        if self.job.volume:
            mounts.append({"name": "storage", "mountPath": self.job.volume.mount_path})
        return mounts

    def _volumes(self, task_type: TaskType, resources: Resources) -> list[Manifest]:
        scratch = quantity.format_bytes(resources.scratch_bytes or self.settings.scratch_bytes)
        volumes: list[Manifest] = [
            {"name": "work", "emptyDir": {"sizeLimit": scratch}},
            {"name": "tmp", "emptyDir": {"sizeLimit": scratch}},
            *manifests.endpoint_volumes(),
            *file_volumes(self._files(task_type)),
        ]
        if self.job.volume:
            claim = {"claimName": self.job.volume.claim_name}
            volumes.append({"name": "storage", "persistentVolumeClaim": claim})
        return volumes


def s3_keys(job: Job) -> list[Manifest]:
    """Return the variables with the keys of the job's object storage."""
    return job.s3.variables([variable.name for variable in job.spec.env or ()]) if job.s3 else []


def file_volumes(files: Sequence[mrjob_spec.File]) -> list[Manifest]:
    """Return the volume with the files that come from ConfigMaps."""
    sources = [_config_map(file) for file in files if file.config_map_key_ref]
    return [{"name": "files", "projected": {"defaultMode": _FILES_MODE, "sources": sources}}] if sources else []


def labels(job: Job, task_type: str) -> dict[str, str]:
    """Return the labels that all pods of a job's tasks of a type have."""
    return {
        **manifests.labels("boathouse-task", job),
        names.APP_COMPONENT: task_type,
        names.LABEL_JOB_UID: job.uid,
        names.LABEL_KIND: mrjob_names.KIND,
        mrjob_names.LABEL_TASK_TYPE: task_type,
        names.LABEL_QUEUE: job.queue,
    }


def stage_labels(job: Job, task_type: TaskType, step: int) -> dict[str, str]:
    """Return the labels that the pods of a stage share."""
    probe = {names.LABEL_PROBE: "true"} if task_type is TaskType.PROBE else {}
    own = (job.template.metadata.labels if job.template.metadata else None) or {}
    return {**own, **labels(job, task_type.value), mrjob_names.LABEL_STEP: str(step), **probe}


def _requirements(resources: Resources) -> Manifest:
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


def file_source(file: mrjob_spec.File) -> contract.FileSource:
    """Return a file of a job as tasks get it."""
    if file.url:
        return contract.FileSource(name=file.name, url=file.url)
    return contract.FileSource(name=file.name, path=f"{contract.FILES_PATH}/{file.name}")


def _archive(archive: mrjob_formats.Archive) -> contract.ArchiveSource:
    return contract.ArchiveSource(name=archive.name, url=archive.url, max_bytes=quantity.units(archive.max_size))


def _config_map(file: mrjob_spec.File) -> Manifest:
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
