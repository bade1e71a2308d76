import importlib.metadata
import os
import pathlib
import subprocess
import sys
import zipfile
from collections import Counter

import pytest
import yaml

from boathouse.resources.mrcluster import spec, status as mrcluster_status
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.mrcluster import sizes
from boathouse_task import local
from boathouse_task.contract import FileSource
from boathouse_task.environment import Environment
from tests.builders import mrclusters, tasks
from tests.builders.cli import all_keys

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
TEXT = b"The cat and the dog.\nTHE END\n"


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


MODELS = {"MRJob": mrjob_status.MRJob, "MRCluster": mrcluster_status.MRCluster}


def resources():
    """The MRJobs and MRClusters of the examples, by name."""
    found = [document for path in sorted(EXAMPLES.glob("*.yaml")) for document in documents(path.name)]
    return {document["metadata"]["name"]: document for document in found if document["kind"] in MODELS}


@pytest.mark.parametrize("resource", resources().values(), ids=resources())
def test_every_field_of_an_example_is_known(resource):
    spec = MODELS[resource["kind"]].model_validate(resource).spec
    assert all_keys(spec.model_dump(by_alias=True)) >= all_keys(resource["spec"])


@pytest.mark.parametrize(
    ("example", "cpu_milli", "transient_cpu_milli"),
    [("mrcluster.yaml", 6500, 20_000), ("first-mrcluster.yaml", 1500, 1000)],
)
def test_the_clusters_of_the_examples_have_room_for_their_daemons_and_jobs(example, cpu_milli, transient_cpu_milli):
    found = mrclusters.cluster(**documents(example)[0]["spec"])
    sizes.check(found)
    requests = [found.requests[Role.MASTER], *[found.requests[Role.CORE]] * found.spec.core.count]
    assert sum(request.cpu_milli for request in requests) == cpu_milli
    assert found.spec.transient.maximum * found.requests[Role.TRANSIENT].cpu_milli == transient_cpu_milli


@pytest.mark.parametrize(
    ("example", "cluster"), [("mrcluster-jobs.yaml", "mrcluster.yaml"), ("first-mrcluster.yaml",) * 2]
)
def test_jobs_of_the_examples_run_on_the_cluster_of_the_examples(example, cluster):
    jobs = [document for document in documents(example) if document["kind"] == "MRJob"]
    assert {job["spec"]["clusterRef"]["name"] for job in jobs} == {documents(cluster)[0]["metadata"]["name"]}
    jars = (EXAMPLES.parent / "images" / "hadoop" / "jars" / spec.VERSION / "jars.sha256").read_text()
    assert jobs[-1]["spec"]["jar"]["url"].rpartition("/")[2] in jars


def output_of(script, data, tmp_path):
    (path := tmp_path / "script").write_text(script)
    return subprocess.run([sys.executable, path], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("example", ["wordcount.yaml", "mrcluster-jobs.yaml", "first-mrjob.yaml"])
def test_the_word_counts_scripts_count_words(tmp_path, example):
    scripts = documents(example)[0]["data"]
    mapped = output_of(scripts["mapper.py"], TEXT * 3, tmp_path)
    reduced = output_of(scripts["reducer.py"], b"".join(sorted(mapped.splitlines(keepends=True))), tmp_path)
    expected = {word: count * 3 for word, count in Counter(b"the cat and the dog the end".split()).items()}
    assert {line.split(b"\t")[0]: int(line.split(b"\t")[1]) for line in reduced.splitlines()} == expected


def wheel(path):
    """mrjob as its wheel has it, made of what is installed here."""
    files = [file for file in importlib.metadata.files("mrjob") if file.parts[0] == "mrjob" and file.suffix == ".py"]
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file.locate(), str(file))
    return path


def test_the_mrjob_examples_steps_give_what_mrjob_itself_gives(tmp_path):
    config, job = documents("mrjob.yaml")
    (script := tmp_path / "words.py").write_text(config["data"]["words.py"])
    (text := tmp_path / "text").write_bytes(TEXT * 3 + b"cat dog dog\n")
    expected = subprocess.run(
        [sys.executable, script, "--no-conf", "--quiet", "--top=2", text], capture_output=True, check=True
    ).stdout
    steps = [
        {kind: step[kind]["command"] for kind in ("mapper", "combiner", "reducer") if kind in step}
        for step in job["spec"]["steps"]
    ]
    commands = [{kind: [*argv[:-1], "--top=2"] for kind, argv in step.items()} for step in steps]
    variables = {
        **os.environ,
        "PYTHONPATH": "mrjob.whl",
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    files = [
        FileSource(name="words.py", path=str(script)),
        FileSource(name="mrjob.whl", path=str(wheel(tmp_path / "w"))),
    ]
    (work := tmp_path / "work").mkdir()
    spec = local.job_spec(inputs=[f"file://{text}"], output=f"file://{tmp_path}/out", files=files, **commands[0])
    tasks.run_steps(spec, Environment(work_path=work, variables=variables), *commands[1:])
    assert (tmp_path / "out" / "part-00000").read_bytes() == expected
    assert expected.count(b"\n") == 2
