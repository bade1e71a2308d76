"""The limits of the progress endpoint: how it receives the body of a request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boathouse.listening import connections
from boathouse.services.progress import limits
from boathouse.services.progress.limits import Reason, Rejected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Body:
    """A body with one piece, after which it ends, waits or raises an error."""

    def __init__(self, piece: bytes, then: BaseException | float | None = None) -> None:
        self._piece, self._then = piece, then

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the piece."""
        yield self._piece
        if isinstance(self._then, BaseException):
            raise self._then
        await asyncio.sleep(self._then or 0)


async def test_a_whole_body_is_returned() -> None:
    assert await limits.receive(Body(b"{}"), most_bytes=2, within_s=1) == b"{}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (Body(b"long"), Reason.TOO_LARGE),
        (Body(b"{", then=9.0), Reason.TOO_SLOW),
        (Body(b"{", then=ConnectionResetError("Connection lost")), Reason.TOO_SLOW),
    ],
    ids=["too large", "too slow", "of a sender that has disconnected"],
)
async def test_a_body_that_does_not_arrive_is_rejected(body: Body, reason: Reason) -> None:
    with pytest.raises(Rejected) as error:
        await limits.receive(body, most_bytes=2, within_s=0.01)
    assert error.value.reason is reason


def test_each_reason_for_which_a_connection_is_refused_is_one_of_the_metrics():
    assert {str(refusal) for refusal in connections.Refusal} <= {str(reason) for reason in Reason}


def test_the_page_of_troubleshooting_explains_each_reason():
    page = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text()
    assert [reason for reason in Reason if f"`{reason}`" not in page] == []
