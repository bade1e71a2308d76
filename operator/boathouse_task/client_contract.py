"""Messages between the operator and the client of a job on a Hadoop cluster, which submits the job's application.

The pod of a client has two containers. One has the cluster's image and becomes the JVM that submits. Beside it runs
the task image, which prepares the job and asks the operator for leave to submit.

Both sides import this module, which only has values: no I/O and nothing of the operator.
"""

from typing import Final

import msgspec

from boathouse_task.contract import FileSource, HdfsAddress, S3Config

CLIENT_ENV: Final = "BOATHOUSE_CLIENT"
"""Variable with the JSON of `ClientSpec`."""
CONF_PATH: Final = "/etc/hadoop"
"""Mount path of the cluster's settings."""
CONF_FOLDER: Final = "conf"
"""Folder in the work folder with the cluster's settings and those of the job."""
FILES_FOLDER: Final = "run"
"""Folder in the work folder with the job's files and the scripts of its commands."""
GO_FILE: Final = "go"
"""File in the work folder: the client has leave to submit."""
STOP_FILE: Final = "stop"
"""File in the work folder with a `TaskResult`: the client must end without a submission."""
SITES: Final = ("core-site.xml", "hdfs-site.xml", "mapred-site.xml", "yarn-site.xml")
"""Files of the cluster's settings. Hadoop reads them in an order of its own, and the last value wins."""


class ClientSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of a client (environment variable `CLIENT_ENV`).

    Attributes:
        attempt: number of the job's attempt, from 1.
        settings: settings of the job, which win over the cluster's.
        secret_settings: variables of this container by the settings that get their values. `settings` win.
        scripts: commands by the name of the script that runs them, in `FILES_FOLDER`.
        exported: variables of this container that the scripts set.
        files: files for `FILES_FOLDER`.
        s3: endpoint of s3:// URLs.
        hdfs: addresses of the clusters that hdfs:// URLs name.
        secret_variables: environment variables whose values must be masked.
    """

    job_uid: str
    job_name: str
    namespace: str
    attempt: int
    progress_url: str
    settings: dict[str, str] = {}
    secret_settings: dict[str, str] = {}
    scripts: dict[str, list[str]] = {}
    exported: list[str] = []
    files: list[FileSource] = []
    s3: S3Config | None = None
    hdfs: dict[str, HdfsAddress] = {}
    secret_variables: list[str] = []


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Response of the endpoint to a client that may submit.

    Attributes:
        attempt: number of the attempt.
    """

    attempt: int
