"""Closed set of the reasons for which the progress endpoint refuses a request, with their responses."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Final

from aiohttp import web


class Reason(enum.StrEnum):
    """Reason why a request or a connection was refused; the values of the metric's label `reason`."""

    NO_TOKEN = "NoToken"  # noqa: S105 - a reason, not a secret
    INVALID_TOKEN = "InvalidToken"  # noqa: S105
    ANOTHER_POD = "AnotherPod"
    UNKNOWN_POD = "UnknownPod"
    NOT_SETUP = "NotSetup"
    NO_PLAN_WANTED = "NoPlanWanted"
    NO_LEAVE = "NoLeave"
    MALFORMED = "Malformed"
    TOO_LARGE = "TooLarge"
    TOO_SLOW = "TooSlow"
    TOO_OFTEN = "TooOften"
    OUT_OF_ORDER = "OutOfOrder"
    TOO_MANY_POSTS = "TooManyPosts"
    TOO_MANY_PLANS = "TooManyPlans"
    TOO_MANY_POLLS = "TooManyPolls"
    TOO_MANY_REVIEWS = "TooManyReviews"
    REVIEW_FAILED = "ReviewFailed"
    UNKNOWN_PATH = "UnknownPath"
    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"
    TOO_LARGE_HEAD = "TooLargeHead"


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status, a message, and Retry-After in seconds (0: absent)."""

    status: int
    text: str
    retry_after_s: int = 0


ANSWERS: Final[Mapping[Reason, Answer]] = {
    Reason.NO_TOKEN: Answer(401, "send the projected token: Authorization: Bearer TOKEN"),
    Reason.INVALID_TOKEN: Answer(
        401, "the token is not a pod's, has expired, or has another audience: send the projected token"
    ),
    Reason.ANOTHER_POD: Answer(403, "a token is valid for its own pod only"),
    Reason.UNKNOWN_POD: Answer(404, "the job has no such running pod, or this replica has not observed it yet", 2),
    Reason.NOT_SETUP: Answer(403, "only the setup task may post the plan and request an output's owner"),
    Reason.NO_PLAN_WANTED: Answer(409, "the job has its plan, or was deleted"),
    Reason.NO_LEAVE: Answer(409, "only the client of the job's current attempt may submit"),
    Reason.MALFORMED: Answer(400, "the request is malformed"),
    Reason.TOO_LARGE: Answer(413, "the body is too large"),
    Reason.TOO_SLOW: Answer(408, "the body did not arrive in time"),
    Reason.TOO_OFTEN: Answer(429, "report every 5 s", 5),
    Reason.OUT_OF_ORDER: Answer(409, "a later report of this object has arrived"),
    Reason.TOO_MANY_POSTS: Answer(503, "too many plans are being posted: retry", 2),
    Reason.TOO_MANY_PLANS: Answer(
        503, "the plans of the namespace's unfinished jobs have reached their limit: retry", 15
    ),
    Reason.TOO_MANY_POLLS: Answer(503, "too many polls are open: retry", 45),
    Reason.TOO_MANY_REVIEWS: Answer(503, "too many tokens are being reviewed: retry", 5),
    Reason.REVIEW_FAILED: Answer(503, "the API server cannot review tokens: retry", 2),
    Reason.UNKNOWN_PATH: Answer(404, "the path does not exist"),
}
"""Response by reason; a refused connection is closed without a response."""


class Rejected(Exception):  # noqa: N818 - a response, not an error of the operator
    """Raised by a handler that refuses its request.

    Attributes:
        reason: The reason.
        detail: What is wrong with this request, in addition to the reason's message.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail

    def response(self) -> web.Response:
        """Return the HTTP response."""
        answer = ANSWERS[self.reason]
        headers = {"Retry-After": str(answer.retry_after_s)} if answer.retry_after_s else None
        text = f"{answer.text}: {self.detail}" if self.detail else answer.text
        return web.Response(status=answer.status, text=text, headers=headers)
