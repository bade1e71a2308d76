"""The scripts of the containers, with a Java and a DNS of the test."""

import os
import re
import signal
import subprocess

import pytest

from boathouse.services.mrcluster.files import SCRIPTS
from boathouse_e2e import waiting

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ID = "CID-0a1b2c3d"
JAVA = """\
#!/bin/sh
echo "$@" >>"$CALLS"
echo "$BOATHOUSE_FQDN" >"$CALLS.fqdn"
for each; do
  [ "$last" != -clusterid ] || id=$each
  case $each in dfs.namenode.name.dir=*) folder=${each#*file://} ;; esac
  last=$each
done
[ -z "$FAILS" ] || exit 1
[ -z "$folder" ] || { mkdir -p "$folder/current" && echo "clusterID=$id" >"$folder/current/VERSION"; }
"""
GETENT = """\
#!/bin/sh
[ "$1 $2" = "-s dns" ] || exit 2 # names in /etc/hosts are of no use to Hadoop
grep -s "^$4 " "$NAMES" | sed 's/^[^ ]* //'
"""


class Pod:
    """The file system of a container, below a temporary folder."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = self.file("calls")
        self.name_folder = folder / "data" / "name" / "dfs"
        (folder / "data" / "name").mkdir(parents=True)
        (folder / "tmp").mkdir()
        self.program("java/bin/java", JAVA)
        self.program("bin/getent", GETENT)
        for name, text in SCRIPTS.items():
            self.file(name, text)
        self.env = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "NAMES": str(self.file("names", "own 10.0.0.7 STREAM own\nmaster 10.0.0.1 STREAM master\n")),
            "JAVA_HOME": str(folder / "java"),
            "HADOOP_CONF_DIR": "/etc/hadoop",
            "BOATHOUSE_CLASSPATH": "/opt/hadoop/lib/*",
            "BOATHOUSE_JAVA_OPTS": "-Xmx9m -Dx=y",
            "BOATHOUSE_FQDN": "own",
            "BOATHOUSE_MASTER": "master",
            "BOATHOUSE_POD_IP": "10.0.0.7",
            "BOATHOUSE_CLUSTER_ID": ID,
            "BOATHOUSE_NAME_FOLDER": str(self.name_folder),
            "BOATHOUSE_RESOLVE_SECONDS": "0",
            "BOATHOUSE_HOSTS_FILE": str(self.file("hosts", "127.0.0.1\tlocalhost\n")),
            "BOATHOUSE_TMP": str(folder / "tmp"),
            "BOATHOUSE_TERMINATION_LOG": str(folder / "termination-log"),
        }

    def file(self, name, text=""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name, text):
        self.file(name, text).chmod(0o755)

    def run(self, script, *arguments, **env):
        command = ["sh", str(self.folder / script), *arguments]
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, timeout=60, check=False)

    def start(self, daemon=NAME_NODE, **env):
        """Exit status and termination message."""
        status = self.run("start.sh", daemon, **env).returncode
        log = self.folder / "termination-log"
        return status, log.read_text() if log.exists() else ""

    @property
    def commands(self):
        return self.calls.read_text().splitlines()

    def formatted(self, cluster_id=ID):
        self.file("data/name/dfs/current/VERSION", f"namespaceID=1\nclusterID={cluster_id}\nlayout=1\n")


@pytest.fixture
def pod(tmp_path):
    return Pod(tmp_path)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_shell_scripts(pod, name):
    subprocess.run(["sh", "-n", str(pod.folder / name)], check=True)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_need_nothing_of_bash(name):
    assert not re.search(r"\[\[|\bfunction\b|\blocal\b|<<<|\$'|&>|pipefail", SCRIPTS[name])


# start.sh


def test_a_daemon_gets_its_options_and_a_classpath_that_only_java_expands(pod):
    assert pod.start(DATA_NODE) == (0, "")
    assert pod.commands == [f"-Xmx9m -Dx=y -cp /etc/hadoop:/opt/hadoop/lib/* {DATA_NODE}"]


def test_a_data_node_has_the_name_with_domain_that_its_node_manager_finds_in_the_hosts_file(pod):
    pod.file("hosts", "127.0.0.1\tlocalhost\n10.0.0.7\town.cluster.local\town\n")
    pod.file("names", "own.cluster.local 10.0.0.7 STREAM own\nmaster 10.0.0.1 STREAM master\n")
    assert pod.start(DATA_NODE) == (0, "")
    assert (pod.folder / "calls.fqdn").read_text() == "own.cluster.local\n"


def test_without_a_name_in_the_hosts_file_the_name_without_domain_is_used(pod):
    pod.start(DATA_NODE)
    assert (pod.folder / "calls.fqdn").read_text() == "own\n"


def test_a_daemon_starts_below_an_init_that_reaps_processes_if_the_image_has_one(pod):
    pod.program("bin/tini", '#!/bin/sh\necho tini "$1" >>"$CALLS"\nshift\nexec "$@"\n')
    assert pod.start(DATA_NODE) == (0, "")
    assert pod.commands[0] == "tini --"


def test_a_daemon_waits_until_its_own_name_is_its_own_address(pod):
    pod.file("names", "own 10.0.0.99 STREAM own\nmaster 10.0.0.1 STREAM master\n")
    status, message = pod.start(DATA_NODE)
    assert (status, pod.commands) == (1, [])
    assert message.startswith("NameNotResolved: DNS has no address 10.0.0.7 of own")


def test_a_daemon_waits_for_the_name_of_the_master(pod):
    pod.file("names", "own 10.0.0.7 STREAM own\n")
    assert "of master" in pod.start(DATA_NODE)[1]


def test_one_of_several_addresses_may_be_the_pods(pod):
    pod.file("names", "own fd00::7 STREAM own\nown 10.0.0.7 DGRAM\nmaster 10.0.0.1 STREAM master\n")
    assert pod.start(DATA_NODE) == (0, "")


def test_a_name_that_resolves_late_is_enough(pod):
    pod.program("bin/getent", '#!/bin/sh\n[ -e "$CALLS.later" ] && echo "10.0.0.7 STREAM x"; : >"$CALLS.later"\n')
    assert pod.start(DATA_NODE, BOATHOUSE_RESOLVE_SECONDS="2") == (0, "")


def test_a_daemon_that_waits_for_a_name_ends_when_it_is_terminated(pod):
    requested = pod.folder / "requested"
    pod.program("bin/getent", f'#!/bin/sh\n: >"{requested}"\nexit 2\n')
    command = ["sh", str(pod.folder / "start.sh"), DATA_NODE]
    process = subprocess.Popen(command, env=pod.env | {"BOATHOUSE_RESOLVE_SECONDS": "60"})
    waiting.until(requested.exists, "it resolves its name", within_s=60)
    process.terminate()
    assert process.wait(60) == 143


def test_an_empty_volume_is_formatted_if_the_cluster_never_had_an_id(pod):
    assert pod.start(BOATHOUSE_FORMAT="1") == (0, "")
    form, run = pod.commands
    assert form.endswith(
        f"-D dfs.namenode.name.dir=file://{pod.name_folder}.new -format -nonInteractive -clusterid {ID}"
    )
    assert run.endswith(NAME_NODE)
    assert f"clusterID={ID}" in (pod.name_folder / "current" / "VERSION").read_text()


def test_an_empty_volume_is_not_formatted_after_that(pod):
    status, message = pod.start()
    assert (status, pod.commands) == (78, [])
    assert message.startswith("NameVolumeEmpty: ")


def test_a_pod_formats_once_even_if_its_volume_is_emptied_while_it_runs(pod):
    pod.start(BOATHOUSE_FORMAT="1")
    (pod.name_folder / "current" / "VERSION").unlink()
    assert pod.start(BOATHOUSE_FORMAT="1")[0] == 78


def test_an_interrupted_format_starts_again(pod):
    assert pod.start(BOATHOUSE_FORMAT="1", FAILS="1")[0] == 1
    pod.file("data/name/dfs.new/current/half", "x")
    assert pod.start(BOATHOUSE_FORMAT="1") == (0, "")
    assert not (pod.name_folder / "current" / "half").exists()


def test_a_format_never_deletes_a_folder_that_has_something_in_it(pod):
    kept = pod.file("data/name/dfs/current/fsimage_1", "blocks")
    assert pod.start(BOATHOUSE_FORMAT="1")[0] != 0
    assert kept.read_text() == "blocks"


def test_a_formatted_volume_is_used_as_it_is(pod):
    pod.formatted()
    assert pod.start(BOATHOUSE_FORMAT="1") == (0, "")
    assert len(pod.commands) == 1


@pytest.mark.parametrize("other", [f"{ID}9", "CID-other", f"x{ID}"])
def test_the_volume_of_another_cluster_is_refused(pod, other):
    pod.formatted(other)
    status, message = pod.start(BOATHOUSE_FORMAT="1")
    assert (status, pod.commands) == (78, [])
    assert message.startswith("ForeignCluster: ")
    assert other in message


@pytest.mark.parametrize(
    ("name", "text"), [("dfs.exclude", "\n"), ("yarn.exclude.xml", '<?xml version="1.0"?><hosts></hosts>\n')]
)
def test_exclude_files_exist_before_the_daemon_that_reads_them(pod, name, text):
    path = pod.folder / name
    pod.start(DATA_NODE, BOATHOUSE_EXCLUDE_FILE=str(path))
    assert path.read_text() == text
    path.write_text("c1\n")
    pod.start(DATA_NODE, BOATHOUSE_EXCLUDE_FILE=str(path))
    assert path.read_text() == "c1\n"


# refresh.sh


class Refresh:
    """The script, running until the test ends."""

    def __init__(self, pod):
        self.folder = pod.folder / "refresh"
        self.folder.mkdir()
        command = ["sh", str(pod.folder / "refresh.sh"), str(self.folder), "transient"]
        self.process = subprocess.Popen(command, env=pod.env)

    def request(self, name, number):
        (self.folder / f"{name}.want").write_text(f"{number}\n")
        done = self.folder / f"{name}.done"
        waiting.until(lambda: done.exists() and done.read_text().split()[0] == str(number), done.name, within_s=60)
        return done.read_text()


@pytest.fixture
def refresh(pod):
    running = Refresh(pod)
    yield running
    running.process.terminate()
    assert running.process.wait(60) in (0, -signal.SIGTERM)


def test_a_request_of_hdfs_is_carried_out_and_answered(pod, refresh):
    assert refresh.request("hdfs", 7) == "7 0\n"
    assert pod.commands == [
        "-Xmx9m -Dx=y -cp /etc/hadoop:/opt/hadoop/lib/* org.apache.hadoop.hdfs.tools.DFSAdmin -refreshNodes"
    ]


def test_the_label_is_declared_once_before_yarn_reads_its_nodes(pod, refresh):
    refresh.request("yarn", 1)
    refresh.request("yarn", 2)
    label, *reads = [call.partition("RMAdminCLI ")[2] for call in pod.commands]
    assert label == "-addToClusterNodeLabels transient(exclusive=false)"
    assert reads == ["-refreshNodes -g -server"] * 2


def test_a_failed_command_is_answered_with_its_status(pod, refresh):
    pod.program("java/bin/java", "#!/bin/sh\nexit 255\n")
    assert refresh.request("hdfs", 1) == "1 255\n"
    assert refresh.request("yarn", 1) == "1 255\n"


def test_a_request_that_was_carried_out_is_not_repeated(pod, refresh):
    refresh.request("hdfs", 1)
    refresh.request("yarn", 1)
    refresh.request("yarn", 2)
    assert sum("DFSAdmin" in call for call in pod.commands) == 1


# client.sh


def test_a_client_submits_with_the_prepared_settings(pod):
    pod.file("work/go")
    work = pod.folder / "work"
    assert pod.run("client.sh", "Main", "-D", "a=b c", "*", BOATHOUSE_WORK=str(work)).returncode == 0
    assert pod.commands == [f"-Xmx9m -Dx=y -cp {work}/conf:/opt/hadoop/lib/* Main -D a=b c *"]


def test_a_client_without_leave_submits_nothing_and_ends_when_it_is_terminated(pod):
    slept = pod.folder / "slept"
    pod.program("bin/sleep", f'#!/bin/sh\n: >"{slept}"\nexec /bin/sleep "$@"\n')
    command = ["sh", str(pod.folder / "client.sh"), "Main"]
    process = subprocess.Popen(command, env=pod.env | {"BOATHOUSE_WORK": str(pod.folder / "work")})
    waiting.until(slept.exists, "it waits for leave", within_s=60)
    process.terminate()
    assert process.wait(60) in (143, -signal.SIGTERM)
    assert pod.commands == []
