"""Build the manifest of a task pod, which is Burstable and satisfies Pod Security `restricted`. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names, spec as mrjob_spec
from boathouse.resources.pod_environment import literal
from boathouse.services.frame import manifests
from boathouse.services.mrjob.model import MRJOBS, Job, Resources
from boathouse.services.mrjob.settle import Attempt
from boathouse_task import contract

_USER: Final = 10001
_FILES_MODE: Final = 0o555
TMP: Final = "/tmp"  # noqa: S108 - inside the pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of the operator for every pod."""

    progress_url: str
    scratch_bytes: int  # size limit of each folder if the job requests no ephemeral storage
    image_pull_secrets: Sequence[str] = ()
    not_ready_toleration_s: int = 60
    cluster: str = ""  # identity of the cluster, for ownership marks


def pod_name(job: Job, attempt: Attempt) -> str:
    """Return the name of an attempt's pod, `JOB-UID8-s0-m-00042-a1`."""
    suffix = f"s{attempt.step}-{contract.attempt_name(attempt.task_type, attempt.index, attempt.number)}"
    return manifests.derived_name(job.name, job.uid, suffix)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodBuilder:
    """Builds the pods of one job."""

    job: Job
    settings: PodSettings
    splits: Sequence[contract.Split] = ()  # of the current step's accepted plan, by map index
    hdfs: Mapping[str, contract.HdfsAddress] = dataclasses.field(default_factory=dict)
    sample: Sequence[tuple[int, int]] = ()  # of a probe, the splits that it reads, and how many bytes of each
    probe_s: float = contract.PROBE_S  # of a probe, the time after which it reads no further split
    _stages: dict[tuple[contract.TaskType, int, Resources], manifests.Manifest] = dataclasses.field(
        default_factory=dict, init=False
    )

    def build(self, attempt: Attempt, resources: Resources, node: str | None) -> manifests.Manifest:
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
        labels = {mrjob_names.LABEL_TASK_INDEX: str(attempt.index), mrjob_names.LABEL_ATTEMPT: str(attempt.number)}
        own = shared["metadata"] | {
            "name": pod_name(self.job, attempt),
            "labels": shared["metadata"]["labels"] | labels,
            "annotations": dict(shared["metadata"]["annotations"]),
        }
        if split := self._split(attempt):
            place = f"{split.url}:{split.offset_bytes}-{split.offset_bytes + split.length_bytes}"
            own["annotations"][mrjob_names.ANNOTATION_SPLIT] = place
        return {**shared, "metadata": own, "spec": spec}

    def stage(self, task_type: contract.TaskType, step: int, resources: Resources) -> manifests.Manifest:
        """Return the pod of a stage, without the parts that depend on the task or the node."""
        job, claim = self.job, {"claimName": self.job.volume.claim_name} if self.job.volume else {}
        probe = {names.LABEL_PROBE: "true"} if task_type is contract.TaskType.PROBE else {}
        return manifests.pod(
            metadata(job, task_type.value, {mrjob_names.LABEL_STEP: str(step), **probe}),
            job.spec,
            user_id=_USER,
            containers=[self._container(task_type, resources)],
            volumes=[
                *scratch_volumes(resources.scratch_bytes or self.settings.scratch_bytes),
                *manifests.endpoint_volumes(),
                *file_volumes(self._files(task_type)),
                *([{"name": "storage", "persistentVolumeClaim": claim}] if claim else ()),
            ],
            tolerations=job.spec.tolerations or (),
            patience_s=self.settings.not_ready_toleration_s,
            node_selector=job.spec.node_selector or {},
            image_pull_secrets=self.settings.image_pull_secrets,
            is_protected=True,
        )

    def _split(self, attempt: Attempt) -> contract.Split | None:
        return self.splits[attempt.index] if attempt.task_type is contract.TaskType.MAP else None

    def _files(self, task_type: contract.TaskType) -> Sequence[mrjob_spec.File]:
        """Return the job's files; none for cleanup, which runs no command and must not depend on ConfigMaps."""
        return () if task_type is contract.TaskType.CLEANUP else self.job.spec.files or ()

    def _container(self, task_type: contract.TaskType, resources: Resources) -> manifests.Manifest:
        job, volume = self.job, self.job.volume
        limit = {"containerName": names.CONTAINER, "resource": "limits.memory"}
        paths = {contract.POD_NAME_ENV: "metadata.name", contract.POD_UID_ENV: "metadata.uid"}
        return {
            "name": names.CONTAINER,
            "image": job.image,
            "imagePullPolicy": job.image_pull_policy,
            "command": ["boathouse-task"],
            "workingDir": contract.WORK_PATH,
            "env": [  # the user's come first, so that users can neither reference nor replace Boathouse's
                *map(manifests.as_json, job.spec.env or ()),
                *s3_keys(job),
                {"name": contract.TASK_ENV},
                {"name": contract.MEMORY_LIMIT_ENV, "valueFrom": {"resourceFieldRef": limit}},
                *manifests.field_variables(*paths.items(), (contract.NODE_NAME_ENV, "spec.nodeName")),
            ],
            "resources": _requirements(resources),
            "resizePolicy": [{"resourceName": name, "restartPolicy": "NotRequired"} for name in ("cpu", "memory")],
            "terminationMessagePath": contract.TERMINATION_LOG_PATH,
            "terminationMessagePolicy": "File",
            "securityContext": manifests.container_security(),
            "volumeMounts": [
                {"name": "work", "mountPath": contract.WORK_PATH},
                {"name": "tmp", "mountPath": TMP},
                *manifests.endpoint_mounts(),
                *file_mounts(self._files(task_type)),
                *([{"name": "storage", "mountPath": volume.mount_path}] if volume else ()),
            ],
        }

    def task_spec(self, attempt: Attempt) -> contract.TaskSpec:
        """Return the parameters that a task of this type needs."""
        job, step = self.job, self.job.steps[attempt.step]
        is_setup = attempt.task_type is contract.TaskType.SETUP
        splits = {
            contract.TaskType.UBER: self.splits,
            contract.TaskType.PROBE: [self.splits[index] for index, _ in self.sample],
        }
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
            input_format=job.input_format if not attempt.step else contract.BETWEEN_STEPS,
            combine_files=is_setup and job.spec.input_format == "CombineTextInputFormat",
            split=self._split(attempt),
            splits=list(splits.get(attempt.task_type, ())),
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
            keeps_returns=job.spec.record_delimiter == contract.LF_ONLY,
            is_exit_checked=job.spec.non_zero_exit_is_failure,
            is_given_up=attempt.is_given_up,
            conf=job.spec.conf or {},
            queue=job.queue,
            split_max_bytes=job.split_max_bytes,
            output_compression=job.spec.output_compression or "",
            max_record_bytes=job.max_record_bytes,
            files=[file_source(file) for file in self._files(attempt.task_type)],
            archives=[
                contract.ArchiveSource(name=archive.name, url=archive.url, max_bytes=quantity.units(archive.max_size))
                for archive in job.spec.archives or ()
            ],
            s3=s3_config(job),
            hdfs=dict(self.hdfs),
            cluster=self.settings.cluster,
            progress_url=None if attempt.task_type is contract.TaskType.PROBE else self.settings.progress_url,
            task_timeout_s=job.spec.task_timeout_seconds,
            secret_variables=job.secret_variables,
        )


def s3_config(job: Job) -> contract.S3Config | None:
    """Return the job's object storage without its keys."""
    return contract.S3Config(endpoint_url=job.s3.endpoint_url, region=job.s3.region) if job.s3 else None


def s3_keys(job: Job) -> list[manifests.Manifest]:
    """Return the variables with the keys of the job's object storage."""
    return job.s3.variables([variable.name for variable in job.spec.env or ()]) if job.s3 else []


def scratch_volumes(size_bytes: int) -> list[manifests.Manifest]:
    """Return the volumes that a pod writes to, each with this limit."""
    return [{"name": name, "emptyDir": {"sizeLimit": quantity.format_bytes(size_bytes)}} for name in ("work", "tmp")]


def file_volumes(files: Sequence[mrjob_spec.File]) -> list[manifests.Manifest]:
    """Return the volume with the files that come from ConfigMaps."""
    sources = [
        {"configMap": {"name": reference.name, "items": [{"key": reference.key, "path": file.name}]}}
        for file in files
        if (reference := file.config_map_key_ref)
    ]
    return [{"name": "files", "projected": {"defaultMode": _FILES_MODE, "sources": sources}}] if sources else []


def file_mounts(files: Sequence[mrjob_spec.File]) -> list[manifests.Manifest]:
    """Return the mount of `file_volumes`."""
    has_volume = any(file.config_map_key_ref for file in files)
    return [{"name": "files", "mountPath": contract.FILES_PATH, "readOnly": True}] if has_volume else []


def metadata(job: Job, task_type: str, labels: Mapping[str, str]) -> manifests.Manifest:
    """Return the metadata that all pods of a job's tasks of a type have, with the more special of their labels."""
    return {
        "namespace": job.namespace,
        "labels": {
            **manifests.labels("boathouse-task", job),
            names.APP_COMPONENT: task_type,
            names.LABEL_JOB_UID: job.uid,
            names.LABEL_KIND: mrjob_names.KIND,
            mrjob_names.LABEL_TASK_TYPE: task_type,
            names.LABEL_QUEUE: job.queue,
            **labels,
        },
        "annotations": {mrjob_names.ANNOTATION_JOB_NAME: job.name},
        "ownerReferences": [manifests.owner_reference(MRJOBS, job)],
    }


def _requirements(resources: Resources) -> manifests.Manifest:
    def amounts(cpu_milli: int, memory_bytes: int, storage_bytes: int) -> dict[str, str]:
        return {
            "cpu": quantity.format_milli(cpu_milli),
            "memory": quantity.format_bytes(memory_bytes),
            **({"ephemeral-storage": quantity.format_bytes(storage_bytes)} if storage_bytes else {}),
            **{name: str(count) for name, count in resources.extended},
        }

    requests = resources.cpu_milli, resources.memory_request_bytes, resources.ephemeral_storage_bytes
    limits = resources.cpu_limit_milli, resources.memory_bytes, resources.ephemeral_storage_limit_bytes
    return {"requests": amounts(*requests), "limits": amounts(*limits)}


def file_source(file: mrjob_spec.File) -> contract.FileSource:
    """Return a file of a job as tasks get it."""
    if file.url:
        return contract.FileSource(name=file.name, url=file.url)
    return contract.FileSource(name=file.name, path=f"{contract.FILES_PATH}/{file.name}")
