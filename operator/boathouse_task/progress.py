"""Client of the operator's progress endpoint: reports, orders, the plan.

It uses HTTPS with the pod's projected token. Token and certificate authority are read for each request, because both
are replaced while a task runs. An unavailable endpoint does not fail a task at once: reports are dropped, plan and
orders are retried.
"""

import contextlib
import gzip
import http.client
import math
import random
import ssl
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from boathouse_task.contract import (
    ACKNOWLEDGES_WITHIN_S,
    PLAN_MAX_BYTES,
    PLAN_POST_MAX_BYTES,
    REPORT_MAX_BYTES,
    Acknowledgement,
    Orders,
    Owner,
    OwnerState,
    Plan,
    Reason,
    ReportTaken,
    TaskReport,
    TaskSpec,
    decoded,
)
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError

POLL_S = 30
"""Maximum duration of a poll for orders."""
PLAN_PATIENCE_S = 600
"""How long the setup task retries to post its plan before it fails and another attempt starts."""
OWNER_PATIENCE_S = 120
"""How long the setup task waits for the state of an output's owner before it fails and another attempt starts."""
_TIMEOUT_S = 10
_ACKNOWLEDGE_AGAIN_S = 1.0
"""The endpoint accepts one acknowledgement of a pod in a second."""
_FIRST_DELAY_S = 0.5
_LONGEST_DELAY_S = 15.0
_JITTER = random.SystemRandom()  # has no state: a thread that retries changes nothing for others
_LONGEST_RETRY_AFTER_S = 60.0
T = TypeVar("T")


class Unavailable(Exception):  # noqa: N818 - a state, not an error of ours
    """The endpoint did not respond (`status` 0), or not with status 200 or 204, or not as expected."""

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class Endpoint:
    """Sends requests of a pod about the object `uid`. Raises TaskError: InternalError if the URL is not https."""

    def __init__(self, url: str, namespace: str, uid: str, environment: Environment) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise TaskError(Reason.INTERNAL_ERROR, f"the progress URL {url!r} is not https://HOST[:PORT]")
        self._host, self._port = parts.hostname, parts.port or 443
        self._object = f"/v1/jobs/{quote(namespace)}/{quote(uid)}"
        self._token_path, self._ca_path = environment.token_path, environment.ca_path

    def request(self, method: str, path: str, body: bytes | None, timeout_s: float, *, gzipped: bool = False) -> bytes:
        """Return the response's body. The time limits each operation of the connection. Raises Unavailable."""
        try:
            context = ssl.create_default_context(cafile=str(self._ca_path))
            token = self._token_path.read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            if gzipped:
                headers["Content-Encoding"] = "gzip"
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
            with contextlib.closing(connection):
                connection.request(method, f"{self._object}/{path}", body, headers)
                with connection.getresponse() as response:  # its socket outlives the connection
                    content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(0, f"{type(error).__name__}: {error}") from None
        if response.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            after_s = _seconds(response.headers.get("Retry-After", ""))
            shown = content[:200].decode("utf-8", "replace")
            raise Unavailable(response.status, f"status {response.status}: {shown}", after_s)
        return content

    def ask(
        self,
        expected: type[T],
        method: str,
        path: str,
        body: bytes | None = None,
        timeout_s: float = _TIMEOUT_S,
        *,
        gzipped: bool = False,
    ) -> T:
        """Return the JSON of the response to a `request`. Raises Unavailable if it failed or is another one."""
        content = self.request(method, path, body, timeout_s, gzipped=gzipped)
        try:
            return msgspec.json.decode(content, type=expected)
        except msgspec.DecodeError as error:
            raise Unavailable(HTTPStatus.OK, f"unexpected response: {error}") from None


def delays() -> Iterator[float]:
    """Yield seconds of exponential backoff with jitter, so that the tasks of a job do not retry simultaneously."""
    delay_s = _FIRST_DELAY_S
    while True:
        delay_s = min(delay_s * 2, _LONGEST_DELAY_S)
        yield delay_s * _JITTER.uniform(0.5, 1.0)


def retried(
    request: Callable[[], T],
    *,
    sleep: Callable[[float], object],
    monotonic: Callable[[], float],
    patience_s: float = math.inf,
    final: Collection[int] = (),
) -> T:
    """Return the result of a request, repeated for `patience_s` while it is `Unavailable` and not `final`."""
    give_up_s, backoff = monotonic() + patience_s, delays()
    while True:
        try:
            return request()
        except Unavailable as error:
            if error.status in final or monotonic() > give_up_s:
                raise
            sleep(max(next(backoff), error.retry_after_s))


class Client:
    """Sends requests of a task, whose spec has a `progress_url`."""

    def __init__(
        self,
        spec: TaskSpec,
        environment: Environment,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = Endpoint(spec.progress_url or "", spec.namespace, spec.job_uid, environment)
        self._pod = f"tasks/{quote(environment.pod_name)}"
        self._sleep, self._monotonic = sleep, monotonic
        self._retried = partial(retried, sleep=sleep, monotonic=monotonic)

    def report(self, report: TaskReport) -> float:
        """Send a report; return the seconds until the next, 0: as the task likes. Raises Unavailable."""
        body = msgspec.json.encode(report)
        if len(body) > REPORT_MAX_BYTES:
            body = msgspec.json.encode(msgspec.structs.replace(report, counters={}))
        answer = self._endpoint.request("POST", f"{self._pod}/report", body, _TIMEOUT_S)
        return min(_LONGEST_RETRY_AFTER_S, (decoded(answer, ReportTaken) or ReportTaken()).next_s)

    def post_plan(self, plan: Plan, digest: str) -> None:
        """Send the plan, for `PLAN_PATIENCE_S`. Raises TaskError: ProgressUnavailable or PlanTooLarge."""
        json = msgspec.json.encode(plan)
        body = gzip.compress(json, 6)
        if len(json) > PLAN_MAX_BYTES or len(body) > PLAN_POST_MAX_BYTES:
            raise _plan_too_large(plan)  # the endpoint would close the connection before its response is read
        post = partial(self._endpoint.ask, dict[str, Any], "POST", "plan", body, _TIMEOUT_S * 3, gzipped=True)
        try:
            accepted = self._retried(post, patience_s=PLAN_PATIENCE_S, final=[HTTPStatus.REQUEST_ENTITY_TOO_LARGE]).get(
                "digest", digest
            )
        except Unavailable as error:
            if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise _plan_too_large(plan) from None
            problem = f"the progress endpoint did not accept the plan within {PLAN_PATIENCE_S} s: {error}"
            raise TaskError(Reason.PROGRESS_UNAVAILABLE, problem) from None
        if accepted != digest:
            problem = f"the progress endpoint got another plan: digest {accepted}, expected {digest}"
            raise TaskError(Reason.PROGRESS_UNAVAILABLE, problem)

    def orders(self, since: int, order: str = "") -> Orders:
        """Return the orders after version `since`, with retries until the endpoint responds (within `POLL_S`).

        `order` is the id of the last order to pause, which the endpoint does not repeat; "" asks for the first.
        """
        path = f"{self._pod}/orders?{urlencode({'since': since, 'order': order, 'wait_s': POLL_S})}"
        return self._retried(partial(self._endpoint.ask, Orders, "GET", path, timeout_s=POLL_S + _TIMEOUT_S))

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Send the acknowledgement of an order, with retries for `ACKNOWLEDGES_WITHIN_S`."""
        body = msgspec.json.encode(acknowledgement)
        give_up = self._monotonic() + ACKNOWLEDGES_WITHIN_S
        while (left_s := give_up - self._monotonic()) > 0:
            try:
                self._endpoint.request("POST", f"{self._pod}/acknowledge", body, left_s)
            except Unavailable as error:
                self._sleep(max(_ACKNOWLEDGE_AGAIN_S, error.retry_after_s))
            else:
                return

    def owner(self, *, job_uid: str, namespace: str, cluster: str) -> OwnerState:
        """Return the state of a mark's job as soon as it is known. Raises TaskError: ProgressUnavailable."""
        query = urlencode({"uid": job_uid, "namespace": namespace, "cluster": cluster})

        def ask() -> OwnerState:
            owner = self._endpoint.ask(Owner, "GET", f"{self._pod}/owner?{query}")
            if owner.state is OwnerState.UNKNOWN:
                raise Unavailable(HTTPStatus.OK, owner.detail)
            return owner.state

        try:
            return self._retried(ask, patience_s=OWNER_PATIENCE_S)
        except Unavailable as error:
            problem = f"the state of job {job_uid}, the output's owner, is unknown: {error}"
            raise TaskError(Reason.PROGRESS_UNAVAILABLE, problem) from None


def _seconds(retry_after: str) -> float:
    """Return a header's seconds; 0 if it has a date or is absent."""
    return min(float(retry_after), _LONGEST_RETRY_AFTER_S) if retry_after.isdecimal() else 0.0


def _plan_too_large(plan: Plan) -> TaskError:
    return TaskError(
        Reason.PLAN_TOO_LARGE,
        f"the plan of {len(plan.splits)} splits is too large: raise spec.splitMaxSize or join small input files",
    )
