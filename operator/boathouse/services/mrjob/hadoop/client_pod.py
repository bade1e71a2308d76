"""Build the pod of a client, which submits a job to a Hadoop cluster. Pure.

The container `task` has the cluster's image and becomes the JVM that submits. The task image runs beside it, prepares
the job and gets leave to submit (`boathouse_task.hadoop_client`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from boathouse.cluster import catalogue, wire
from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.pod_environment import literal
from boathouse.scheduling import jobs
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.mrjob import job_state, pod_builder
from boathouse.services.mrjob.hadoop import options
from boathouse.services.mrjob.hadoop.observation import RUNTIME, TASK_TYPE
from boathouse.services.mrjob.model import MIB, MRJOBS, Job
from boathouse_policies import model
from boathouse_task import cluster_contract, contract

_SUBMITTER: Final = model.Resources(cpu_milli=500, memory_bytes=512 * MIB)
_HEAP_MIB: Final = 256
_RUNTIME: Final = model.Resources(cpu_milli=50, memory_bytes=128 * MIB)
_CPU_LIMIT: Final = "2"
_CONF: Final = "conf"
RESOURCES: Final = model.Resources(cpu_milli=550, memory_bytes=640 * MIB)
"""What a client requests: both containers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClientBuilder:
    """Builds the client of an attempt, for the scheduler, with all clusters that its URLs name."""

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = MRJOBS
    control: ClassVar[jobs.TaskControl | None] = None
    job: Job
    attempt: int
    cluster: hadoop.ClusterFacts
    clusters: Sequence[hadoop.ClusterFacts]
    settings: pod_builder.PodSettings
    image: str
    image_pull_policy: str
    hdfs: Mapping[str, contract.HdfsAddress]

    @property
    def name(self) -> str:
        """Return the name of the pod, `JOB-UID8-client-a1`."""
        return manifests.derived_name(self.job.name, self.job.uid, f"{TASK_TYPE}-a{self.attempt}")

    @property
    def task_id(self) -> model.TaskId:
        """Return the ID of the task, `NAMESPACE/PODNAME`."""
        return model.TaskId(f"{self.job.namespace}/{self.name}")

    def submission(self, pod_uid: str | None) -> tuple[model.TaskClass, model.Task]:
        """Return the class of the task, and the task; `pod_uid` is set if its pod exists without a node."""
        own_labels = {mrjob_names.LABEL_TASK_INDEX, mrjob_names.LABEL_ATTEMPT}
        shape = manifests.pod_class(self.build(self.task_id, RESOURCES, None), own_labels=own_labels)
        class_id, job_id = model.ClassId(f"{self.job.uid}/{TASK_TYPE}"), model.JobId(self.job.uid)
        task_class = model.TaskClass(id=class_id, job=job_id, stage=model.Stage.OTHER, **shape)
        uid = model.PodUid(pod_uid) if pod_uid else None
        return task_class, model.Task(id=self.task_id, task_class=class_id, index=0, pod_uid=uid)

    def build(
        self,
        _task: model.TaskId,
        _resources: model.Resources,
        node: model.NodeName | None,
        _expected: model.Resources | None = None,
    ) -> manifests.Manifest:
        """Return the pod's manifest, without the leader's epoch."""
        job = self.job
        labels = {mrjob_names.LABEL_TASK_INDEX: "0", mrjob_names.LABEL_ATTEMPT: str(self.attempt)}
        metadata = pod_builder.metadata(job, TASK_TYPE, labels) | {"name": self.name}
        metadata["annotations"][mrjob_names.ANNOTATION_SETTINGS] = self.cluster.settings
        return manifests.pod(
            metadata,
            job.spec,
            user_id=self.cluster.user_id,
            containers=[self._submitter()],
            volumes=[
                *pod_builder.scratch_volumes(self.settings.scratch_bytes),
                {"name": _CONF, "configMap": {"name": self.cluster.settings}},
                *manifests.endpoint_volumes(),
                *pod_builder.file_volumes(job.spec.files or ()),
            ],
            tolerations=job.spec.tolerations or (),
            patience_s=self.settings.not_ready_toleration_s,
            node_selector=job.spec.node_selector or {},
            image_pull_secrets=(*self.settings.image_pull_secrets, *self.cluster.image_pull_secrets),
            node=node,
            more={"initContainers": [self._runtime()]},
            is_protected=True,
        )

    def _submitter(self) -> manifests.Manifest:
        """Return the container that submits. Its variables are a default, the user's, then ours, so that ours win."""
        heap = [f"-Xmx{_HEAP_MIB}m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData"]
        ours = {
            "JAVA_HOME": self.cluster.java_home,
            "HADOOP_CONF_DIR": f"{contract.WORK_PATH}/{cluster_contract.CONF_FOLDER}",
            hadoop.USER_ENV: hadoop.USER,
            "BOATHOUSE_CLASSPATH": self.cluster.classpath,
            "BOATHOUSE_JAVA_OPTS": " ".join([*heap, "--add-opens=java.base/java.lang=ALL-UNNAMED"]),
        }
        # A program with secrets could print them, and the pod's status has the last lines.
        job, has_jar = self.job, self.job.spec.jar is not None
        has_secrets = bool((job.s3 and job.s3.secret_ref) or job.secret_variables)
        has_secrets = has_secrets or any(source.secret_ref for source in job.spec.env_from or ())
        words = ["sh", f"{cluster_contract.CONF_PATH}/client.sh", *options.command(job)]
        return {
            "name": names.CONTAINER,
            "image": self.cluster.image,
            "imagePullPolicy": self.cluster.image_pull_policy,
            "command": [literal(word) for word in words],
            "workingDir": contract.WORK_PATH,
            "env": [
                *manifests.variables([hadoop.ARENAS]),
                *map(manifests.as_json, job.spec.env or ()),
                *manifests.variables(ours.items()),
            ],
            "resources": _requirements(_SUBMITTER),
            "terminationMessagePath": contract.TERMINATION_LOG_PATH,
            "terminationMessagePolicy": "File" if has_jar and has_secrets else "FallbackToLogsOnError",
            "securityContext": manifests.container_security(),
            "volumeMounts": [
                {"name": "work", "mountPath": contract.WORK_PATH},
                {"name": "tmp", "mountPath": pod_builder.TMP, "subPath": names.CONTAINER},
                {"name": _CONF, "mountPath": cluster_contract.CONF_PATH, "readOnly": True},
                {"name": _CONF, "mountPath": "/etc/passwd", "subPath": "passwd", "readOnly": True},
                {"name": _CONF, "mountPath": "/etc/group", "subPath": "group", "readOnly": True},
            ],
        }

    def _runtime(self) -> manifests.Manifest:
        order = literal(msgspec.json.encode(self.client_spec()).decode())
        ids = {contract.POD_NAME_ENV: "metadata.name", contract.POD_UID_ENV: "metadata.uid"}
        return {
            "name": RUNTIME,
            "image": self.image,
            "imagePullPolicy": self.image_pull_policy,
            "restartPolicy": "Always",
            "command": ["boathouse-task", TASK_TYPE],
            "workingDir": contract.WORK_PATH,
            "env": [
                *map(manifests.as_json, self.job.spec.env or ()),
                *pod_builder.s3_keys(self.job),
                {"name": hadoop.USER_ENV, "value": hadoop.USER},
                {"name": cluster_contract.CLIENT_ENV, "value": order},
                *manifests.field_variables(*ids.items()),
            ],
            "resources": _requirements(_RUNTIME),
            "securityContext": manifests.container_security(),
            "volumeMounts": [
                {"name": "work", "mountPath": contract.WORK_PATH},
                {"name": "tmp", "mountPath": pod_builder.TMP, "subPath": RUNTIME},
                {"name": _CONF, "mountPath": cluster_contract.CONF_PATH, "readOnly": True},
                *manifests.endpoint_mounts(),
                *pod_builder.file_mounts(self.job.spec.files or ()),
            ],
        }

    def client_spec(self) -> cluster_contract.ClientSpec:
        """Return the parameters of the container that prepares the job."""
        job, tag = self.job, job_state.hadoop_tag(self.job.uid, self.attempt)
        is_streaming = self.job.spec.jar is None
        return cluster_contract.ClientSpec(
            job_uid=job.uid,
            job_name=job.name,
            namespace=job.namespace,
            attempt=self.attempt,
            progress_url=self.settings.progress_url,
            settings=options.hadoop_settings(job, tag, self.clusters),
            secret_settings=hadoop.s3_secret_settings(job.s3) if job.s3 else {},
            scripts=options.scripts(job) if is_streaming else {},
            exported=[variable.name for variable in job.spec.env or ()] if is_streaming else [],
            files=[*map(pod_builder.file_source, job.spec.files or ()), *options.jar_file(job)],
            s3=pod_builder.s3_config(job),
            hdfs=dict(self.hdfs),
            secret_variables=job.secret_variables,
        )


def _requirements(resources: model.Resources) -> manifests.Manifest:
    memory = quantity.format_bytes(resources.memory_bytes)
    requests = {"cpu": quantity.format_milli(resources.cpu_milli), "memory": memory}
    return {"requests": requests, "limits": {"cpu": _CPU_LIMIT, "memory": memory}}
