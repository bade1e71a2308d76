import pytest

from boathouse_task import contract, setup_task, splits
from boathouse_task.contract import FileSource, Partitioner, Plan, Reason, S3Config
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage


def plan_of(job_folder, **fields) -> Plan:
    return setup_task.make_plan(job_folder.task(job_folder.setup_spec(**fields)))


def names(job_folder, plan: Plan) -> list[str]:
    prefix = f"file://{job_folder.input}/"
    return [split.url.removeprefix(prefix) for split in plan.splits]


def test_a_folder_is_listed_at_any_depth_without_hidden_names(job_folder):
    for name in ("b", "a", "sub/deep/c", "_logs", ".crc", "sub/_tmp/x", "sub/.git/y"):
        job_folder.write_input(name, b"x")
    assert names(job_folder, plan_of(job_folder)) == ["a", "b", "sub/deep/c"]


def test_inputs_keep_their_order_and_a_file_given_twice_is_read_twice(job_folder):
    second, first = job_folder.write_input("b", b"x"), job_folder.write_input("a", b"x")
    assert names(job_folder, plan_of(job_folder, inputs=[second, first, second])) == ["b", "a", "b"]


def test_a_glob_matches_files_and_what_is_below_folders(job_folder):
    for name in ("x1.txt", "x2.gz", "y1/in", "y1/_no", "z"):
        job_folder.write_input(name, b"x")
    plan = plan_of(job_folder, inputs=[f"file://{job_folder.input}/{{x*.txt,y[0-9],x1*}}"])
    assert names(job_folder, plan) == ["x1.txt", "y1/in"]


@pytest.mark.parametrize("name", ["a b.txt", "50%.txt", "ünï.txt", "a+b&c=d.txt"])
def test_odd_names_are_read(job_folder, name):
    job_folder.write_input(name, b"hello\n")
    job_folder.run_job()
    assert job_folder.parts() == [b"hello\t\n"]


def test_a_key_of_a_config_map_is_read_as_the_kubelet_mounts_it(job_folder):
    job_folder.write_input("..2026/text.txt", b"hello\n")
    (job_folder.input / "..data").symlink_to("..2026")
    (job_folder.input / "text.txt").symlink_to("..data/text.txt")
    job_folder.run_job(inputs=[f"file://{job_folder.input}/text.txt"])
    assert job_folder.parts() == [b"hello\t\n"]


@pytest.mark.parametrize("path", ["nothing", "nothing/*", "*.txt", "empty"])
def test_an_input_that_is_not_there_is_named(job_folder, path):
    (job_folder.input / "empty").mkdir()
    result = job_folder.fail_job(inputs=[f"file://{job_folder.input}/{path}"])
    assert (result.reason, result.user_error) == (Reason.INPUT_NOT_FOUND, True)
    assert f"file://{job_folder.input}/{path}" in result.message


def test_an_output_that_exists_is_refused(job_folder):
    job_folder.write_input("a", b"x")
    job_folder.run_job()
    result = job_folder.fail_job()
    assert (result.reason, result.user_error) == (Reason.OUTPUT_EXISTS, True)
    assert f"file://{job_folder.output}/_SUCCESS" in result.message


def test_what_a_failed_job_left_behind_is_no_output(job_folder):
    job_folder.write_input("a", b"x\n")
    job_folder.fail_job(["false"])
    job_folder.run_job()
    assert job_folder.parts() == [b"x\t\n"]


@pytest.mark.parametrize("kind", ["mapper", "combiner", "reducer"])
def test_a_command_that_is_nowhere_is_found_out_before_a_map_runs(job_folder, kind):
    job_folder.write_input("a", b"x")
    commands = {"mapper": ["cat"], "combiner": ["cat"], "reducer": ["cat"]} | {kind: ["no-such-command"]}
    result = job_folder.fail_job(**commands)
    assert (result.reason, result.user_error) == (Reason.COMMAND_NOT_FOUND, True)
    assert "no-such-command is neither in the working folder (spec.files) nor" in result.message


def test_a_file_that_is_not_there_is_named(job_folder):
    job_folder.write_input("a", b"x")
    result = job_folder.fail_job(files=[FileSource(name="m.py", url=f"file://{job_folder.folder}/m.py")])
    assert (result.reason, result.user_error) == (Reason.FILE_NOT_FOUND, True)
    assert "m.py" in result.message


def test_a_partitioner_that_hadoop_does_not_have_is_refused(job_folder):
    job_folder.write_input("a", b"x")
    result = job_folder.fail_job(reducer=["cat"], partitioner=Partitioner(type="Mine"))
    assert (result.reason, result.user_error) == (Reason.INVALID_SPEC, True)


def test_the_result_tells_the_plans_digest_and_size(job_folder):
    job_folder.write_input("a", b"x" * 250)
    spec = job_folder.setup_spec(split_max_bytes=100)
    result = job_folder.run_task(spec)
    assert (result.splits, result.bytes_total) == (3, 250)
    assert result.digest == contract.plan_digest(plan_of(job_folder, split_max_bytes=100))
    assert [timing.phase for timing in result.timings] == ["list", "race", "post"]


class CarelessStorage(Storage):
    """A store on which every exclusive create seems to win."""

    def create(self, location, content):
        self.write(location, content)
        return True


def test_a_store_that_lets_several_creators_win_is_refused(job_folder):
    task = job_folder.task(job_folder.setup_spec())
    task.storage = CarelessStorage(None, {}, part_bytes=1 << 20)
    with pytest.raises(TaskError, match=r"StoreNotExclusive: .*If-None-Match"):
        setup_task.race(task)


def test_the_race_leaves_nothing_behind(job_folder):
    setup_task.race(job_folder.task(job_folder.setup_spec()))
    assert job_folder.output_names() == []


def test_an_endpoint_where_nothing_listens_is_named_and_no_secret_is_shown():
    storage = Storage(
        S3Config(endpoint_url="http://127.0.0.1:9"),
        {"AWS_ACCESS_KEY_ID": "key-canary", "AWS_SECRET_ACCESS_KEY": "secret-canary"},
        part_bytes=1 << 20,
        retry_s=0,
    )
    with pytest.raises(TaskError) as failed:
        next(setup_task.list_input(storage, setup_task.locations.parse("s3://bucket/books")))
    assert failed.value.reason is Reason.STORAGE_ERROR
    assert "s3://bucket/books" in failed.value.message
    assert "spec.storage.s3.endpointURL" in failed.value.message
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize("url", ["nonsense", "ftp://host", "http://user:geheim@host", "http://"])
def test_an_endpoint_that_is_no_url_is_refused_without_its_password(job_folder, url):
    result = job_folder.run_task(job_folder.setup_spec(inputs=["s3://bucket/x"], s3=S3Config(endpoint_url=url)))
    assert (result.reason, result.user_error) == (Reason.INVALID_SPEC, True)
    assert "geheim" not in result.message


def test_a_race_whose_winners_answer_was_lost_is_run_again(job_folder):
    task = job_folder.task(job_folder.setup_spec())
    create, races = task.storage.create, set()

    def losing_answers_of_the_first_race(location, content):
        races.add(location)
        return create(location, content) and len(races) > 1

    task.storage.create = losing_answers_of_the_first_race
    setup_task.race(task)
    assert len(races) == 2


def test_races_that_nobody_ever_wins_are_the_infrastructures_fault(job_folder):
    task = job_folder.task(job_folder.setup_spec())
    create = task.storage.create
    task.storage.create = lambda location, content: create(location, content) and False
    with pytest.raises(TaskError, match="loses responses") as failed:
        setup_task.race(task)
    assert (failed.value.reason, failed.value.user_error) == (Reason.STORAGE_ERROR, False)


@pytest.mark.parametrize(("most_bytes", "groups"), [(10, [2]), (9, [1, 1])])
def test_files_share_a_split_as_long_as_they_are_no_larger_together(most_bytes, groups):
    files = [contract.InputFile(url=f"s3://b/{name}", size_bytes=5) for name in "ab"]
    assert [len(group) for group in splits.combine(files, split_max_bytes=most_bytes)] == groups
