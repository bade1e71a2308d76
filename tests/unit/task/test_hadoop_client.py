"""What a client prepares, and when it has leave."""

import contextlib
import subprocess
from xml.etree import ElementTree as ET

import msgspec
import pytest

from boathouse_task import contract, hadoop_client
from boathouse_task.cluster_contract import ClientSpec
from boathouse_task.contract import FileSource, TaskResult
from boathouse_task.hadoop_client import Client
from tests.builders.task_servers import Endpoint, credentials

LEAVE = (200, b'{"attempt":1}')
SITE = "<configuration><property><name>a</name><value>1</value></property></configuration>"


@pytest.fixture
def prepare(job_folder, clock):
    """Prepares a submission with these responses of the endpoint; returns the endpoint and the work folder."""
    with contextlib.ExitStack() as stack:

        def run(*responses, times=1, is_stopped=False, variables=None, mapred=None, **more):
            endpoint = Endpoint(*(responses or (LEAVE,)))
            conf = job_folder.folder / "conf"
            conf.mkdir(exist_ok=True)
            (conf / "core-site.xml").write_text(SITE)
            (conf / "log4j.properties").write_text("x=y")
            if mapred is not None:
                (conf / "mapred-site.xml").write_text(mapred)
            url = stack.enter_context(endpoint.serving(job_folder.folder))
            spec = ClientSpec(
                **({"job_uid": "u", "job_name": "words", "namespace": "demo", "attempt": 1, "progress_url": url} | more)
            )
            environment = job_folder.environment(
                **credentials(job_folder.folder), pod_name="words-client-a1", variables=variables or {}
            )
            client = Client(
                spec,
                environment,
                conf_path=conf,
                sleep=lambda delay_s: clock.sleep(delay_s) or is_stopped,
                monotonic=clock.monotonic,
            )
            for _ in range(times):
                client.run()
            return endpoint, environment.work_path

        yield run


def settings(path):
    return {setting.findtext("name"): setting.findtext("value") for setting in ET.parse(path).getroot()}  # noqa: S314 - ours


def test_it_may_go_when_all_is_prepared_and_the_operator_gives_leave(prepare):
    endpoint, work = prepare()
    assert (work / "go").exists()
    ((method, path, _, _),) = endpoint.requests
    assert (method, path) == ("POST", "/v1/jobs/demo/u/tasks/words-client-a1/leave")


def test_the_jobs_settings_are_in_every_file_of_the_cluster_and_win(prepare):
    _, work = prepare(settings={"a": "2", "b": "<&"})
    assert settings(work / "conf/core-site.xml") == {"a": "2", "b": "<&"}
    assert settings(work / "conf/mapred-site.xml") == {"a": "2", "b": "<&"}
    assert (work / "conf/log4j.properties").read_text() == "x=y"


KEYS = {"fs.s3a.access.key": "AWS_ACCESS_KEY_ID", "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY"}
VALUES = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "<&"}
REDACTED = "mapreduce.job.redacted-properties"


def test_secrets_are_settings_in_files_that_only_the_client_reads(prepare):
    _, work = prepare(secret_settings=KEYS, variables=VALUES)
    for path in (work / "conf").glob("*-site.xml"):
        found = settings(path)
        assert [found[key] for key in KEYS] == ["me", "<&"]
        assert path.stat().st_mode & 0o777 == 0o600


def test_hadoop_redacts_secrets_and_what_the_cluster_and_the_job_redact(prepare):
    ours = ",".join(KEYS)
    _, work = prepare(secret_settings=KEYS, variables=VALUES)
    assert settings(work / "conf/core-site.xml")[REDACTED] == ours
    site = f"<configuration><property><name>{REDACTED}</name><value>a</value></property></configuration>"
    _, work = prepare(secret_settings=KEYS, variables=VALUES, settings={REDACTED: "b"}, mapred=site)
    assert settings(work / "conf/yarn-site.xml")[REDACTED] == f"a,b,{ours}"


def test_a_job_without_secrets_redacts_nothing_by_itself(prepare):
    _, work = prepare()
    assert settings(work / "conf/mapred-site.xml") == {}


def test_the_users_settings_win_over_secrets(prepare):
    _, work = prepare(secret_settings=KEYS, variables=VALUES, settings={"fs.s3a.access.key": "mine"})
    assert settings(work / "conf/core-site.xml")["fs.s3a.access.key"] == "mine"


def test_files_are_executable(prepare, job_folder):
    (job_folder.folder / "m.py").write_text("#!/bin/sh\n")
    _, work = prepare(files=[FileSource(name="m.py", path=str(job_folder.folder / "m.py"))])
    assert (work / "run/m.py").stat().st_mode & 0o111


def test_a_script_becomes_the_command_with_exactly_its_arguments(prepare):
    argv = ["printf", "%s|", "a b", "it's", '"q"', "$HOME", "", "*", "back\\slash", "two\nlines"]
    _, work = prepare(scripts={"boathouse-mapper": argv})
    done = subprocess.run([work / "run/boathouse-mapper"], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(f"{word}|" for word in argv[2:])


def test_a_script_finds_files_of_the_working_folder_first(tmp_path):
    for name, content in (("cat", "#!/bin/sh\necho ours\n"), ("script", hadoop_client.script(["cat"], {}))):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([tmp_path / "script"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "ours\n"


def test_a_script_sets_the_jobs_variables():
    assert "export A='it'\"'\"'s'\n" in hadoop_client.script(["cat"], {"A": "it's"})


@pytest.mark.parametrize(
    "response", [(409, b"no"), (403, b"no"), (200, b'{"attempt":2}'), (200, b"[]")], ids=["409", "403", "other", "odd"]
)
def test_without_leave_it_stops_the_client_and_says_why(prepare, response):
    _, work = prepare(response)
    assert not (work / "go").exists()
    result = msgspec.json.decode((work / "stop").read_bytes(), type=TaskResult)
    assert (result.reason, result.user_error) == (contract.Reason.PROGRESS_UNAVAILABLE, False)


def test_it_repeats_the_request_while_the_operator_does_not_respond(prepare):
    endpoint, work = prepare((503, b""), (404, b""), LEAVE)
    assert len(endpoint.requests) == 3
    assert (work / "go").exists()


def test_it_gives_up_after_a_while(prepare):
    _, work = prepare((503, b""))
    assert (work / "stop").exists()


def test_it_does_not_repeat_the_request_once_its_pod_is_to_end(prepare):
    endpoint, work = prepare((503, b""), is_stopped=True)
    assert len(endpoint.requests) == 1
    result = msgspec.json.decode((work / "stop").read_bytes(), type=TaskResult)
    assert (result.reason, result.user_error) == (contract.Reason.TERMINATED, False)


def test_a_file_that_is_missing_is_the_users_error(prepare):
    _, work = prepare(files=[FileSource(name="m.py", path="/absent")])
    result = msgspec.json.decode((work / "stop").read_bytes(), type=TaskResult)
    assert (result.reason, result.user_error) == (contract.Reason.FILE_NOT_FOUND, True)


def test_a_restarted_container_does_not_prepare_again(prepare):
    endpoint, _ = prepare(times=2)
    assert len(endpoint.requests) == 1
