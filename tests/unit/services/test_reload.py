"""A changed configuration file ends the process, so that it starts with it."""

import asyncio

import pytest

from boathouse import options
from boathouse.resources import config

STARTED = config.OperatorConfig.model_validate({"queues": [{"name": "default"}]})


class Edits:
    """The wait between two reads, in which the file is changed; cancelled after the last change."""

    def __init__(self, path, *texts: str) -> None:
        self._path, self._texts = path, list(texts)

    async def __call__(self, _: float) -> None:
        if not self._texts:
            raise asyncio.CancelledError
        self._path.write_text(self._texts.pop(0))


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"queues": [{"name": "default"}]}')
    return file


async def test_another_queue_is_a_change(path):
    await options.file_changed(
        path, STARTED, sleep=Edits(path, '{"queues": [{"name": "default"}, {"name": "nightly"}]}')
    )


SAME = '{"queues": [ {"name": "default"} ]}'


@pytest.mark.parametrize("text", [SAME, '{"queues": []}', "not JSON", ""], ids=["same", "bad", "broken", "away"])
async def test_an_equal_or_invalid_file_is_no_change(path, text):
    with pytest.raises(asyncio.CancelledError):
        await options.file_changed(path, STARTED, sleep=Edits(path, text, text))


async def test_a_valid_change_after_one_that_was_not_valid_counts(path):
    await options.file_changed(path, STARTED, sleep=Edits(path, '{"profile": "none"}', '{"profile": "fifo"}'))


async def test_a_change_before_the_first_read_counts(path):
    path.write_text('{"profile": "fifo"}')  # the process has read the file before
    await options.file_changed(path, STARTED, sleep=Edits(path, '{"profile": "fifo"}'))


async def test_a_file_that_is_empty_at_the_first_read_is_read_again(path):
    path.write_text("")
    await options.file_changed(path, STARTED, sleep=Edits(path, "", '{"profile": "fifo"}'))
