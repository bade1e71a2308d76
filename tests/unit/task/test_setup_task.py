import pytest

from boathouse_task import contract, setup_task
from boathouse_task.contract import FileSource, Partitioner, Plan, Reason, S3Config
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage


def plan_of(workshop, **fields) -> Plan:
    return setup_task.make_plan(workshop.task(workshop.spec(**fields)))


def names(workshop, plan: Plan) -> list[str]:
    prefix = f"file://{workshop.input}/"
    return [split.url.removeprefix(prefix) for split in plan.splits]


def test_a_folder_is_listed_at_any_depth_without_hidden_names(workshop):
    for name in ("b", "a", "sub/deep/c", "_logs", ".crc", "sub/_tmp/x", "sub/.git/y"):
        workshop.given(name, b"x")
    assert names(workshop, plan_of(workshop)) == ["a", "b", "sub/deep/c"]


def test_inputs_keep_their_order_and_a_file_given_twice_is_read_twice(workshop):
    second, first = workshop.given("b", b"x"), workshop.given("a", b"x")
    assert names(workshop, plan_of(workshop, inputs=[second, first, second])) == ["b", "a", "b"]


def test_a_glob_matches_files_and_what_is_below_folders(workshop):
    for name in ("x1.txt", "x2.gz", "y1/in", "y1/_no", "z"):
        workshop.given(name, b"x")
    plan = plan_of(workshop, inputs=[f"file://{workshop.input}/{{x*.txt,y[0-9],x1*}}"])
    assert names(workshop, plan) == ["x1.txt", "y1/in"]


@pytest.mark.parametrize("name", ["a b.txt", "50%.txt", "ünï.txt", "a+b&c=d.txt"])
def test_odd_names_are_read(workshop, name):
    workshop.given(name, b"hello\n")
    workshop.run_job()
    assert workshop.parts() == [b"hello\t\n"]


@pytest.mark.parametrize("path", ["nothing", "nothing/*", "*.txt", "empty"])
def test_an_input_that_is_not_there_is_named(workshop, path):
    (workshop.input / "empty").mkdir()
    result = workshop.failure(inputs=[f"file://{workshop.input}/{path}"])
    assert (result.reason, result.user_error) == (Reason.INPUT_NOT_FOUND, True)
    assert f"file://{workshop.input}/{path}" in result.message


def test_an_output_that_exists_is_refused(workshop):
    workshop.given("a", b"x")
    workshop.run_job()
    result = workshop.failure()
    assert (result.reason, result.user_error) == (Reason.OUTPUT_EXISTS, True)
    assert f"file://{workshop.output}/_SUCCESS" in result.message


def test_what_a_failed_job_left_behind_is_no_output(workshop):
    workshop.given("a", b"x\n")
    workshop.failure(["false"])
    workshop.run_job()
    assert workshop.parts() == [b"x\t\n"]


@pytest.mark.parametrize("kind", ["mapper", "combiner", "reducer"])
def test_a_command_that_is_nowhere_is_found_out_before_a_map_runs(workshop, kind):
    workshop.given("a", b"x")
    commands = {"mapper": ["cat"], "combiner": ["cat"], "reducer": ["cat"]} | {kind: ["no-such-command"]}
    result = workshop.failure(**commands)
    assert (result.reason, result.user_error) == (Reason.COMMAND_NOT_FOUND, True)
    assert "no-such-command is neither in the working folder (spec.files) nor" in result.message


def test_a_file_that_is_not_there_is_named(workshop):
    workshop.given("a", b"x")
    result = workshop.failure(files=[FileSource(name="m.py", url=f"file://{workshop.folder}/m.py")])
    assert (result.reason, result.user_error) == (Reason.FILE_NOT_FOUND, True)
    assert "m.py" in result.message


def test_a_partitioner_that_hadoop_does_not_have_is_refused(workshop):
    workshop.given("a", b"x")
    result = workshop.failure(reducer=["cat"], partitioner=Partitioner(type="Mine"))
    assert (result.reason, result.user_error) == (Reason.INVALID_SPEC, True)


def test_the_result_tells_the_plans_digest_and_size(workshop):
    workshop.given("a", b"x" * 250)
    spec = workshop.spec(split_max_bytes=100)
    result = workshop.run(spec)
    assert (result.splits, result.bytes_total) == (3, 250)
    assert result.digest == contract.plan_digest(plan_of(workshop, split_max_bytes=100))
    assert [timing.phase for timing in result.timings] == ["list", "race", "post"]


class CarelessStorage(Storage):
    """A store on which every exclusive create seems to win."""

    def create(self, location, content):
        self.write(location, content)
        return True


def test_a_store_that_lets_several_creators_win_is_refused(workshop):
    task = workshop.task(workshop.spec())
    task.storage = CarelessStorage(None, {}, part_bytes=1 << 20)
    with pytest.raises(TaskError, match=r"StoreNotExclusive: .*If-None-Match"):
        setup_task.race(task)


def test_the_race_leaves_nothing_behind(workshop):
    setup_task.race(workshop.task(workshop.spec()))
    assert workshop.listing() == []


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
def test_an_endpoint_that_is_no_url_is_refused_without_its_password(workshop, url):
    result = workshop.run(workshop.spec(inputs=["s3://bucket/x"], s3=S3Config(endpoint_url=url)))
    assert (result.reason, result.user_error) == (Reason.INVALID_SPEC, True)
    assert "geheim" not in result.message


def test_a_race_whose_winners_answer_was_lost_is_run_again(workshop):
    task = workshop.task(workshop.spec())
    create, races = task.storage.create, set()

    def losing_answers_of_the_first_race(location, content):
        races.add(location)
        return create(location, content) and len(races) > 1

    task.storage.create = losing_answers_of_the_first_race
    setup_task.race(task)
    assert len(races) == 2


def test_races_that_nobody_ever_wins_are_the_infrastructures_fault(workshop):
    task = workshop.task(workshop.spec())
    create = task.storage.create
    task.storage.create = lambda location, content: create(location, content) and False
    with pytest.raises(TaskError, match="loses responses") as failed:
        setup_task.race(task)
    assert (failed.value.reason, failed.value.user_error) == (Reason.STORAGE_ERROR, False)
