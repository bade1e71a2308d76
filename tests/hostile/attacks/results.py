"""Termination messages of the attacker's own image: numbers, reasons and digests are what it wants them to be."""

import json

from boathouse_e2e import hostile, kubelets
from boathouse_task.contract import TaskType
from tests.hostile.form import Attack

MAX_BYTES = 4096
SHAPE = kubelets.Shape(maps=3, reduces=0, cpu="50m")
JOB = "lies"


async def starts_a_job(siege):
    await siege.submit(hostile.job(JOB, maps=SHAPE.maps), SHAPE)
    await siege.until(lambda: siege.pods(labels="boathouse.dev/task-type=setup"), "the job has begun")


async def ends_the_job(siege):
    await siege.until(lambda: siege.has_ended(JOB), "the attacker's own job ends")


async def keeps_its_metrics_small(siege):
    """What a task says becomes no label of a metric."""
    await ends_the_job(siege)
    page = await siege.metrics()
    assert "Junk" not in page
    assert len(page) < 200_000


def message_of(text, *, exit_code=0, of=TaskType.MAP):
    """The message of tasks of one kind; the others are honest."""
    text = text if isinstance(text, str) else json.dumps(text)
    return lambda order: (text[:MAX_BYTES], exit_code) if order.task_type is of else None


def counts(amount):
    """A JSON number as it stands, however long."""
    return f'{{"outcome":"succeeded","winner_attempt":1,"counters":{{"a":{{"b":{amount}}}}}}}'


def of_a_task(**fields):
    return {"outcome": "succeeded", "winner_attempt": 1, **fields}


def fails_with_junk(order):
    if order.task_type is not TaskType.MAP:
        return None
    result = {
        "outcome": "failed",
        "user_error": True,
        "reason": f"Junk{order.index}{'x' * 500}",
        "message": "\x00\u202e" * 200,
    }
    return json.dumps(result), 10


def attack(name, message, **more):
    return Attack(name=name, act=starts_a_job, message=message, holds=more.pop("holds", ends_the_job), **more)


ATTACKS = (
    attack("a counter beyond int64", message_of(counts("99999999999999999999"))),
    attack("a counter of a thousand digits", message_of(counts("9" * 1000)), long=True),
    attack("counters whose sum is beyond int64", message_of(counts("9223372036854775807")), long=True),
    attack("negative counters", message_of(counts("-9223372036854775808")), long=True),
    attack(
        "a result with negative and huge numbers",
        message_of(
            of_a_task(
                winner_attempt=-(2**63),
                splits=-1,
                bytes_total=-(2**63),
                timings=[["read", -1, -(10**18)], ["x" * 1000, 10**18, -(10**18)]],
            )
        ),
    ),
    attack("a winner of another attempt", message_of(of_a_task(winner_attempt=2**62)), long=True),
    attack(
        "a setup of minus one splits",
        message_of(of_a_task(winner_attempt=0, splits=-1), of=TaskType.SETUP),
        holds=None,
        long=True,
    ),
    attack(
        "a setup with the digest of no plan",
        message_of(of_a_task(winner_attempt=0, digest="f" * 64, splits=2**62, bytes_total=2**62), of=TaskType.SETUP),
        holds=None,
    ),
    attack("a digest of three kilobytes", message_of(of_a_task(digest="d" * 3000)), long=True),
    attack("reasons that no runtime has", fails_with_junk, holds=keeps_its_metrics_small),
    attack("four kilobytes of junk", message_of("\ufffd\x01{]" * 1024, exit_code=1)),
    attack("a message that nests deeply", message_of('{"counters":' + "[" * 4000), long=True),
)
