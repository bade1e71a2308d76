"""A process with a CPU quota, and the load that is run under it."""

import asyncio
import itertools
import os
import ssl
import sys

import pytest

from boathouse_e2e import endpoint_load, quota
from boathouse_e2e.local import cgroups

SPIN = "import time\nwhile time.process_time() < 0.3: pass\nprint(time.monotonic())"
_NUMBERS = itertools.count(1)


def raise_permission_error(*_):
    raise PermissionError


def test_without_cgroups_a_process_is_stopped_now_and_then_and_ends_nevertheless(monkeypatch):
    monkeypatch.setattr(cgroups, "create", raise_permission_error)
    stopped = []
    whole = quota._send
    monkeypatch.setattr(quota, "_send", lambda running, number: (stopped.append(number), whole(running, number)))
    with quota.process([sys.executable, "-c", SPIN], cores=0.5, name="none") as running:
        output, _ = running.communicate(timeout=60)
    assert (running.returncode, float(output) > 0) == (0, True)
    assert stopped


def test_in_a_cgroup_a_process_has_its_quota(tmp_path, monkeypatch):
    folders = []

    def create(name):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (folders[-1] / "cpu.max").write_text("max")

    monkeypatch.setattr(cgroups, "create", create)
    monkeypatch.setattr(cgroups, "find", lambda _: folders)
    monkeypatch.setattr(cgroups, "remove", lambda _: None)
    with quota.process(["sh", "-c", "echo $$"], cores=0.5, name="load") as running:
        output, _ = running.communicate(timeout=60)
    assert (folders[0] / "cpu.max").read_text() == "50000 100000"
    assert (folders[0] / "cgroup.procs").read_text() == output  # joined before it became the command


def test_a_process_that_does_not_end_is_ended():
    with quota.process(["sleep", "600"], cores=1.0, name=f"boathouse-quota-{os.getpid()}-{next(_NUMBERS)}") as running:
        assert running.poll() is None
    assert running.returncode is not None


# The load


@pytest.fixture
def load():
    return endpoint_load.Load(
        port=1, target="/t", token="head.payload.signature", body=None, body_bytes=2**20, addresses=3
    )


def test_every_wrong_token_is_another_one_that_claims_the_same(load):
    tokens = [load._wrong_token() for _ in range(100)]
    assert len(set(tokens)) == 100
    assert {token.rpartition(".")[0] for token in tokens} == {"head.payload"}


def test_a_post_without_a_body_sends_as_many_zeros_as_its_head_says(load):
    head, _, body = b"".join(load._pieces()).partition(b"\r\n\r\n")
    assert f"Content-Length: {2**20}".encode() in head.split(b"\r\n")
    assert body == bytes(2**20)


async def test_a_load_ends_by_itself_and_counts_what_was_refused(load, monkeypatch):
    def refuse_connection(*_args, **_options):
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio, "open_connection", refuse_connection)
    await load.run("idle", 2, 0.05)
    assert load.seen.refused >= 2
    assert load._context.verify_mode is ssl.CERT_NONE
