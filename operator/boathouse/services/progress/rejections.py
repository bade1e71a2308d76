"""Why the progress endpoint refuses a request, as a closed set that can be counted, and what the task is answered."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Final

from aiohttp import web


class Reason(enum.StrEnum):
    """Why a request or a connection was refused: values of the label `reason`."""

    NO_TOKEN = "NoToken"  # noqa: S105 - a reason, not a secret
    INVALID_TOKEN = "InvalidToken"  # noqa: S105
    ANOTHER_POD = "AnotherPod"
    UNKNOWN_POD = "UnknownPod"
    NOT_SETUP = "NotSetup"
    NO_PLAN_WANTED = "NoPlanWanted"
    MALFORMED = "Malformed"
    TOO_LARGE = "TooLarge"
    TOO_SLOW = "TooSlow"
    TOO_OFTEN = "TooOften"
    TOO_MANY_POSTS = "TooManyPosts"
    TOO_MANY_PLANS = "TooManyPlans"
    TOO_MANY_POLLS = "TooManyPolls"
    TOO_MANY_REVIEWS = "TooManyReviews"
    REVIEW_FAILED = "ReviewFailed"
    UNKNOWN_PATH = "UnknownPath"
    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status, a text for people, and when to retry (seconds; 0: no hint)."""

    status: int
    text: str
    retry_after_s: int = 0


ANSWERS: Final[Mapping[Reason, Answer]] = {
    Reason.NO_TOKEN: Answer(401, "send the projected token: Authorization: Bearer TOKEN"),
    Reason.INVALID_TOKEN: Answer(401, "the token is no pod's, expired, or meant for another audience"),
    Reason.ANOTHER_POD: Answer(403, "a token is valid for its own pod only"),
    Reason.UNKNOWN_POD: Answer(404, "the job has no such running pod, or this replica has not observed it yet", 2),
    Reason.NOT_SETUP: Answer(403, "only the setup task posts the plan and asks for an output's owner"),
    Reason.NO_PLAN_WANTED: Answer(409, "the job has its plan, or is gone"),
    Reason.MALFORMED: Answer(400, "the request cannot be read"),
    Reason.TOO_LARGE: Answer(413, "the body is too large"),
    Reason.TOO_SLOW: Answer(408, "the body did not arrive in time"),
    Reason.TOO_OFTEN: Answer(429, "report every 5 s", 5),
    Reason.TOO_MANY_POSTS: Answer(503, "too many plans are posted now: retry", 2),
    Reason.TOO_MANY_PLANS: Answer(503, "the plans of the namespace's unfinished jobs take up all room: retry", 15),
    Reason.TOO_MANY_POLLS: Answer(503, "too many polls are held now: retry", 45),
    Reason.TOO_MANY_REVIEWS: Answer(503, "too many tokens are reviewed now: retry", 5),
    Reason.REVIEW_FAILED: Answer(503, "tokens cannot be reviewed now: retry", 2),
    Reason.UNKNOWN_PATH: Answer(404, "there is no such path"),
}
"""What a task is answered; a refused connection is closed without an answer."""


class Rejected(Exception):  # noqa: N818 - an answer, not an error of ours
    """A handler refuses its request.

    Attributes:
        reason: Why.
        detail: What is wrong with this very request, in addition.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail

    def response(self) -> web.Response:
        """Return the answer."""
        answer = ANSWERS[self.reason]
        headers = {"Retry-After": str(answer.retry_after_s)} if answer.retry_after_s else None
        text = f"{answer.text}: {self.detail}" if self.detail else answer.text
        return web.Response(status=answer.status, text=text, headers=headers)
