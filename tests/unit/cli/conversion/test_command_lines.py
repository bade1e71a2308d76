import pytest

from boathouse_cli.conversion import command_lines
from tests.builders.conversions import PYTHON, converted_line, missing_file, notes_of_line, spec_of_line


def converted_text(text):
    return list(command_lines.convert_text(text, read=missing_file))


def test_options_win_over_conf_and_both_over_the_properties_file():
    def read(path):
        assert path == "app.conf"
        return "spark.executor.memory 1g\nspark.executor.cores: 2\nspark.driver.cores=3\n"

    words = ("--properties-file", "app.conf", "--executor-memory", "4g", "--conf", "spark.executor.memory=2g")
    assert spec_of_line(*words, "-c", "spark.driver.cores=4", PYTHON, read=read) == {
        "type": "Python",
        "mainApplicationFile": PYTHON,
        "driver": {"cores": 4},
        "executor": {"memory": "4g", "cores": 2},
    }


def test_an_option_may_have_its_value_behind_an_equals_sign():
    assert spec_of_line("--executor-memory=4g", "--conf=spark.a=b=c", PYTHON)["sparkConf"] == {"spark.a": "b=c"}


def test_lines_are_continued_and_comments_left_out():
    text = f"""#!/bin/sh
# spark-submit old.py
set -e
SPARK_HOME=/opt/spark /opt/spark/bin/spark-submit \\
    --num-executors 3 \\
  {PYTHON} --date '2026-11-01 "noon"'
"""
    (found,) = converted_text(text)
    assert found.notes == ()
    assert found.manifest["spec"]["executor"] == {"instances": 3}
    assert found.manifest["spec"]["arguments"] == ["--date", '2026-11-01 "noon"']


def test_each_line_becomes_an_application():
    found = converted_text("spark-submit s3a://b/one.py\nspark-submit --class org.example.Two s3a://b/two-1.0.jar\n")
    assert [application.manifest["metadata"]["name"] for application in found] == ["one", "two-1-0"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spark-submit a.py > log 2>&1", ">"),
        ("cd /x && spark-submit a.py", "&"),
        ("spark-submit 'a.py", "quotes"),
        ("spark-submit", "spark-submit"),
        ("spark-submit --conf novalue s3a://b/a.py", "--conf"),
        ("spark-submit --name", "--name"),
        ("spark-submit --status spark-1", "--status"),
        ("spark-submit --no-such-option x a.py", "--no-such-option"),
        ("spark-submit s3a://b/a.jar", "--class"),
        ("spark-submit s3a://b/a.R", "application"),
        ("spark-submit ftp://b/a.py", "application"),
        ("spark-submit 'a b.py'", "application"),
        ("spark-submit --properties-file absent s3a://b/a.py", "--properties-file"),
        ("spark-submit --driver-cores 5000 s3a://b/a.py", "spec.driver.cores"),
    ],
)
def test_a_line_that_is_no_application_is_refused_with_what_is_wrong(text, path):
    (found,) = converted_text(text)
    assert found.has_failed
    assert found.manifest is None
    assert found.notes[-1].path == path


def test_a_value_that_only_a_shell_knows_is_noted():
    (found,) = converted_text("spark-submit --conf spark.kubernetes.container.image=$IMAGE s3a://b/a.py '$HOME'")
    assert [note.path for note in found.notes] == ["$IMAGE"]


@pytest.mark.parametrize(
    "words",
    [
        ("--proxy-user", "alice"),
        ("--keytab", "k"),
        ("--supervise",),
        ("--deploy-mode", "client"),
        ("--master", "yarn"),
        ("--queue", "root.users.alice"),
        ("--total-executor-cores", "8"),
    ],
)
def test_an_option_without_counterpart_is_noted(words):
    assert notes_of_line(*words, PYTHON).keys() == {words[0]}
    assert spec_of_line(*words, PYTHON) == {"type": "Python", "mainApplicationFile": PYTHON}


@pytest.mark.parametrize(
    "conf",
    [
        "my.key=1",
        "spark.kubernetes.driver.podTemplateFile=template.yaml",
        "spark.kubernetes.scheduler.name=volcano",
        "spark.kerberos.principal=p",
        "spark.hadoop.fs.s3a.access.key=AK",
        "spark.kubernetes.driver.label.boathouse.dev/queue=x",
        "spark.kubernetes.driverEnv.SPARK_USER=x",
        "spark.kubernetes.driver.volumes.hostPath.v.mount.path=/v",
        "spark.authenticate=false",
        "spark.shuffle.service.enabled=true",
        "spark.yarn.archive=x",
        "spark.some.text=a\nb",
    ],
)
def test_a_property_without_counterpart_is_noted(conf):
    words = ("--conf", conf, PYTHON)
    assert notes_of_line(*words).keys() == {f"--conf {conf.split('=')[0]}"}
    assert spec_of_line(*words) == {"type": "Python", "mainApplicationFile": PYTHON}


def test_another_account_of_the_driver_is_noted_with_the_command_that_allows_drivers():
    words = ("--conf", "spark.kubernetes.authenticate.driver.serviceAccountName=spark", PYTHON)
    (advice,) = notes_of_line(*words).values()
    assert "boathouse enable-spark" in advice
    assert "driver" not in spec_of_line(*words)


def test_files_of_the_submitting_machine_are_noted_and_expected_in_the_image():
    words = ("--py-files", "lib/a.zip,/home/me/b.py", "--jars", "s3a://b/c.jar", "main.py")
    assert spec_of_line(*words)["mainApplicationFile"] == "local:///opt/spark/work-dir/main.py"
    assert spec_of_line(*words)["deps"] == {
        "jars": ["s3a://b/c.jar"],
        "pyFiles": ["local:///opt/spark/work-dir/lib/a.zip", "local:///home/me/b.py"],
    }
    assert notes_of_line(*words).keys() == {"--py-files", "application"}


def test_files_on_a_mounted_claim_stay_where_they_are():
    prefix = "spark.kubernetes.{}.volumes.persistentVolumeClaim.shared.{}"
    options = {"options.claimName": "books", "mount.path": "/books"}
    conf = [f"{prefix.format(role, key)}={value}" for role in ("driver", "executor") for key, value in options.items()]
    found = converted_line(*(word for setting in conf for word in ("--conf", setting)), "file:///books/main.py")
    assert found.notes == ()
    assert found.manifest["spec"]["storage"] == {"volume": {"claimName": "books", "mountPath": "/books"}}
    assert found.manifest["spec"]["mainApplicationFile"] == "file:///books/main.py"


def test_libraries_in_a_store_that_the_field_does_not_take_stay_a_property():
    assert spec_of_line("--jars", "ftp://b/c.jar", PYTHON)["sparkConf"] == {"spark.jars": "ftp://b/c.jar"}


def test_a_fixed_number_with_dynamic_allocation_is_the_number_to_begin_with():
    words = ("--num-executors", "4", "--conf", "spark.dynamicAllocation.enabled=true")
    more = ("--conf", "spark.dynamicAllocation.minExecutors=6")
    found = spec_of_line(*words, *more, PYTHON)
    assert found["dynamicAllocation"] == {"enabled": True, "minExecutors": 6, "initialExecutors": 6}
    assert "executor" not in found


def test_a_heap_among_java_options_is_noted():
    assert notes_of_line("--driver-java-options", "-Xmx4g -Da=b", PYTHON) == {
        "--driver-java-options": "Spark refuses -Xmx: remove it, and set memory"
    }


def test_event_logs_are_a_field():
    words = ("--conf", "spark.eventLog.enabled=true", "--conf", "spark.eventLog.dir=s3a://logs/spark", PYTHON)
    assert spec_of_line(*words)["monitoring"] == {"eventLogDir": "s3a://logs/spark"}


def test_secrets_become_volumes_and_variables():
    words = (
        *("--conf", "spark.kubernetes.driver.secrets.keys=/mnt/keys"),
        *("--conf", "spark.kubernetes.executor.secrets.keys=/mnt/keys"),
        *("--conf", "spark.kubernetes.executor.secretKeyRef.PASSWORD=database:password"),
    )
    found = spec_of_line(*words, PYTHON)
    assert found["volumes"] == [{"name": "keys", "mountPath": "/mnt/keys", "secretName": "keys"}]
    reference = {"secretKeyRef": {"name": "database", "key": "password"}}
    assert found["executor"]["env"] == [{"name": "PASSWORD", "valueFrom": reference}]


def test_a_volume_of_the_driver_alone_is_noted():
    prefix = "spark.kubernetes.driver.volumes.emptyDir.scratch"
    words = ("--conf", f"{prefix}.mount.path=/scratch", "--conf", f"{prefix}.options.sizeLimit=1Gi", PYTHON)
    assert spec_of_line(*words)["volumes"] == [{"name": "scratch", "mountPath": "/scratch", "emptyDirSize": "1Gi"}]
    assert notes_of_line(*words).keys() == {"volume scratch"}


def test_two_images_are_one_and_noted():
    conf = [f"spark.kubernetes.{role}.container.image={role}:1" for role in ("driver", "executor")]
    words = (*(word for setting in conf for word in ("--conf", setting)), PYTHON)
    assert spec_of_line(*words)["image"] == "executor:1"
    assert notes_of_line(*words).keys() == {"spark.kubernetes.container.image"}


def test_a_name_with_capitals_and_spaces_becomes_one_that_objects_may_have():
    assert converted_line("--name", "Word Count (daily)!", PYTHON).manifest["metadata"]["name"] == "word-count-daily"


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ("kubernetes.executor.limit.cores=1 kubernetes.executor.request.cores=1500m", "executor.coreLimit"),
        ("kubernetes.executor.limit.cores=1 executor.cores=4", "executor.coreLimit"),
        ("kubernetes.driver.limit.cores=500m", "driver.coreLimit"),
        ("dynamicAllocation.minExecutors=3 dynamicAllocation.maxExecutors=2", "dynamicAllocation.minExecutors"),
        ("dynamicAllocation.minExecutors=3 dynamicAllocation.initialExecutors=2", "dynamicAllocation.initialExecutors"),
        ("dynamicAllocation.initialExecutors=3 dynamicAllocation.maxExecutors=2", "dynamicAllocation.initialExecutors"),
    ],
)
def test_fields_that_contradict_each_other_are_refused_as_the_api_server_would(properties, path):
    words = [word for setting in properties.split() for word in ("--conf", f"spark.{setting}")]
    found = converted_line(*words, PYTHON)
    assert found.has_failed
    assert found.notes[-1].path == path


def test_fields_at_the_edge_of_a_contradiction_are_converted():
    limits = ("--conf", "spark.kubernetes.driver.limit.cores=1000m", "--conf", "spark.executor.cores=2")
    numbers = [
        word
        for bound in ("min", "initial", "max")
        for word in ("--conf", f"spark.dynamicAllocation.{bound}Executors=2")
    ]
    found = spec_of_line(*limits, "--conf", "spark.kubernetes.executor.limit.cores=2", *numbers, PYTHON)
    assert found["executor"] == {"cores": 2, "coreLimit": "2"}
    assert found["dynamicAllocation"] == {"minExecutors": 2, "maxExecutors": 2, "initialExecutors": 2}


@pytest.mark.parametrize("store", ["gs://bucket", "abfss://container@account.dfs.core.windows.net"])
def test_programs_and_libraries_of_google_and_azure_are_resolved_by_spark(store):
    found = converted_line("--py-files", f"{store}/lib.zip", f"{store}/main.py")
    assert found.notes == ()
    assert found.manifest["spec"]["mainApplicationFile"] == f"{store}/main.py"
    assert found.manifest["spec"]["deps"] == {"pyFiles": [f"{store}/lib.zip"]}
    assert not found.would_fail
