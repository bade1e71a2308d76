"""Words of Hadoop Streaming's lines as Hadoop reads them, and what of them is not dropped silently."""

import pytest

from boathouse_cli.conversion import hadoop_lines

URLS = ("-input", "s3a://b/in", "-output", "s3a://b/out")
FIELDS = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"


def convert(*words, cluster=None):
    return hadoop_lines.convert(["hadoop", "jar", "hadoop-streaming.jar", *words], cluster)


def spec(*words, cluster=None):
    found = convert(*words, cluster=cluster)
    assert found.manifest is not None, found.notes
    return found.manifest["spec"]


def paths(*words):
    return {note.path for note in convert(*words).notes} - {"s3://"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (r"sed s/\s/_/g", ["sed", r"s/\s/_/g"]),
        (r"grep 'a\.b c' --x=\"", None),
        ("awk '{ print $2 \"\\t\" $1 }'", ["awk", '{ print $2 "\\t" $1 }']),
        ("a'b c'd", ["a", "b c", "d"]),
        ("a '' b  c", ["a", "b", "c"]),
        ("a\tb", ["a\tb"]),
        ('"cat"', ["cat"]),
    ],
)
def test_a_command_is_split_as_hadoop_splits_it(command, words):
    found = convert("-mapper", command, *URLS)
    assert (found.manifest and found.manifest["spec"]["mapper"]["command"]) == words


@pytest.mark.parametrize("path", ["/home/me/x.py", "./x.py", "jobs/x.py"])
def test_a_shipped_program_is_named_without_its_path(path):
    found = spec("-file", path, "-mapper", f"{path} 1", *URLS)
    assert found["mapper"] == {"command": ["x.py", "1"]}
    assert found["files"] == [{"name": "x.py", "configMapKeyRef": {"name": "streaming-files", "key": "x.py"}}]


@pytest.mark.parametrize(
    "words", [("-file", "/home/me/x.py", "-mapper", "python3 /home/me/x.py"), ("-files", "d/x.py", "-mapper", "d/x.py")]
)
def test_a_path_of_a_shipped_file_that_hadoop_keeps_is_noted(words):
    assert paths(*words, *URLS) == {"-files", "-mapper"}
    assert spec(*words, *URLS)["mapper"]["command"][-1].endswith("/x.py")


def test_an_option_takes_all_values_up_to_the_next_option():
    found = spec(
        "-input", "s3a://b/1", "s3a://b/2,s3a://b/3", "-file", "a.py", "b.py", "-output", "s3a://b/o", "-mapper", "a.py"
    )
    assert found["input"] == ["s3://b/1", "s3://b/2", "s3://b/3"]
    assert [file["name"] for file in found["files"]] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--mapper", "cat", *URLS), {}),
        (("-Dmapreduce.job.reduces=2", *URLS, "-mapper", "cat"), {"numReduceTasks": 2}),
        (("-files=s3a://b/x.py", *URLS, "-mapper", "cat"), {"files": [{"name": "x.py", "url": "s3://b/x.py"}]}),
        (("streamjob", *URLS, "-mapper", "cat"), {}),
        (("-D", "my.n=1", "-jobconf", "my.n=2", *URLS, "-mapper", "cat"), {"conf": {"my.n": "2"}}),
    ],
)  # fmt: skip
def test_an_option_has_the_spellings_that_hadoop_takes(words, expected):
    found = spec(*words)
    assert found["mapper"] == {"command": ["cat"]}
    assert expected.items() <= found.items()


def test_an_option_that_is_given_again_is_noted_and_the_first_one_counts():
    assert paths("-mapper", "cat", "-mapper", "tac", *URLS) == {"-mapper"}
    assert spec("-mapper", "cat", "-mapper", "tac", *URLS)["mapper"] == {"command": ["cat"]}


def test_a_number_of_fields_chooses_the_reduce_of_a_record():
    fields = ("-D", "num.key.fields.for.partition=2", "-partitioner", FIELDS)
    assert spec(*fields, "-mapper", "cat", *URLS)["partitioner"] == {
        "type": "KeyFieldBasedPartitioner",
        "options": "-k1,2",
    }


@pytest.mark.parametrize(
    "key", ["job.end.notification.url", "min.num.spills.for.combine", "sequencefile.filter.regex", "ipc.client.x"]
)
def test_a_property_of_hadoop_with_an_odd_name_is_noted(key):
    assert paths("-D", f"{key}=1", "-mapper", "cat", *URLS) == {f"-D {key}"}


def test_a_queue_below_root_that_cannot_be_one_is_noted():
    words = ("-D", "mapreduce.job.queuename=root.users.alice", "-mapper", "cat", *URLS)
    assert paths(*words) == {"-D mapreduce.job.queuename"}
    assert "queue" not in spec(*words)
    assert spec("-D", "mapred.job.queue.name=root.night", "-mapper", "cat", *URLS)["queue"] == "night"


@pytest.mark.parametrize(
    ("given", "expected"),
    [(r"in/a\*b", "in/a[*]b"), (r"in/\[x\]?", "in/[[]x]?"), (r"in\-1/*", "in-1/*"), ("in/{a,b}*", "in/{a,b}*")],
)
def test_an_escape_in_a_glob_is_said_otherwise(given, expected):
    assert spec("-mapper", "cat", "-input", f"s3a://b/{given}", "-output", "s3a://b/o")["input"] == [
        f"s3://b/{expected}"
    ]


@pytest.mark.parametrize("given", [r"in/\{a", r"in/[a\-z]", r"in/a\\", "in/a\\"])
def test_an_escape_that_cannot_be_said_otherwise_is_refused(given):
    assert convert("-mapper", "cat", "-input", f"s3a://b/{given}", "-output", "s3a://b/o").has_failed


def test_a_cluster_reads_the_escapes_itself():
    assert spec("-mapper", "cat", "-input", r"/in/a\*b", "-output", "/o", cluster="etl")["input"] == [r"/in/a\*b"]


def test_a_variable_with_a_space_is_cut_as_in_hadoop_and_noted():
    words = ("-cmdenv", "A=b c", "-cmdenv", "A=d", "-mapper", "cat", *URLS)
    assert spec(*words)["env"] == [{"name": "A", "value": "d"}]
    assert paths(*words) == {"-cmdenv"}


def test_two_files_of_one_name_are_noted_and_a_folder_is_refused():
    assert "-files" in paths("-files", "s3a://b/x,s3a://c/x", "-mapper", "cat", *URLS)
    assert convert("-files", "lib/", "-mapper", "cat", *URLS).has_failed


@pytest.mark.parametrize(
    "jar",
    [
        *(
            "hadoop-streaming.jar",
            "/opt/hadoop/share/hadoop/tools/lib/hadoop-streaming-3.3.6.jar",
            "hadoop-2.6.0-streaming.jar",
        ),
        *(
            "contrib/streaming/hadoop-*streaming*.jar",
            "hadoop-streaming-mr1.jar",
            "tools/lib/hadoop-str*.jar",
            "hadoop-streaming-[0-9]*.jar",
        ),
    ],
)
@pytest.mark.parametrize("before", [(), ("sudo", "-u", "hdfs")])
def test_the_jar_has_a_version_or_is_a_glob(jar, before):
    found = hadoop_lines.convert([*before, "hadoop", "jar", jar, "-mapper", "cat", *URLS], None)
    assert found.manifest["spec"]["mapper"] == {"command": ["cat"]}
    assert {note.path for note in found.notes} == {"s3://", *before}


@pytest.mark.parametrize("jar", ["spark-streaming_2.13.jar", "app-*.jar", "my-streaming.jar"])
def test_another_jar_needs_a_cluster(jar):
    assert "a jar needs a Hadoop cluster" in hadoop_lines.convert(["hadoop", "jar", jar], None).notes[-1].advice


def test_options_of_the_program_itself_are_read():
    found = hadoop_lines.convert(
        ["hadoop", "--config", "/etc/c", "--loglevel", "INFO", "jar", "hadoop-streaming.jar", "-mapper", "cat", *URLS],
        None,
    )
    assert {note.path for note in found.notes} == {"s3://", "--config"}
