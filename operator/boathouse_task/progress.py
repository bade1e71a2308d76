"""The client of the operator's progress endpoint: reports, orders, the plan.

HTTPS with the pod's projected token; token and authority are read anew for each request, because both are replaced
while a task runs. That the endpoint is away never fails a task: reports are dropped, plan and orders are tried again.
"""

import gzip
import http.client
import random
import ssl
import time
from collections.abc import Callable
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from boathouse_task.contract import (
    PLAN_MAX_BYTES,
    PLAN_POST_MAX_BYTES,
    REPORT_MAX_BYTES,
    Orders,
    Owner,
    OwnerState,
    Plan,
    Reason,
    ReportTaken,
    TaskReport,
    TaskSpec,
)
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError

POLL_S = 30
"""How long the endpoint may hold a poll for orders."""
PLAN_PATIENCE_S = 600
"""How long the setup task tries to post its plan; then another attempt may."""
OWNER_PATIENCE_S = 120
"""How long the setup task waits until the leader knows what became of an output's owner; then another attempt may."""
_TIMEOUT_S = 10
_FIRST_DELAY_S = 0.5
_LONGEST_DELAY_S = 15.0
_LONGEST_RETRY_AFTER_S = 60.0
_OK = 200
_TOO_LARGE = 413


class Unavailable(Exception):  # noqa: N818 - a state, not an error of ours
    """The endpoint did not answer, or not with 200.

    Attributes:
        status: the HTTP status; 0 when there was no answer.
        retry_after_s: how long the endpoint wants to be left alone; 0 when it does not say.
    """

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class Client:
    """Talks to the endpoint for one pod.

    Args:
        spec: names the job; its `progress_url` must be set.
        environment: the pod's name, and where token and authority are.
        sleep: waits between tries.
        monotonic: the clock of patience.
    """

    def __init__(
        self,
        spec: TaskSpec,
        environment: Environment,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(spec.progress_url or "")
        if parts.scheme != "https" or not parts.hostname:
            message = f"the progress URL {spec.progress_url!r} is not https://HOST[:PORT]"
            raise TaskError(Reason.INTERNAL_ERROR, message, user_error=False)
        self._host, self._port = parts.hostname, parts.port or 443
        self._job = f"/v1/jobs/{quote(spec.namespace)}/{quote(spec.job_uid)}"
        self._pod = f"{self._job}/tasks/{quote(environment.pod_name)}"
        self._token_path = environment.token_path
        self._ca_path = environment.ca_path
        self._sleep = sleep
        self._monotonic = monotonic

    def report(self, report: TaskReport) -> float:
        """Sends a report once; returns after how many seconds the endpoint wants the next, 0 if it does not say.

        Raises:
            Unavailable: it did not arrive.
        """
        body = msgspec.json.encode(report)
        if len(body) > REPORT_MAX_BYTES:
            body = msgspec.json.encode(msgspec.structs.replace(report, counters={}))
        answer = self._request("POST", f"{self._pod}/report", body, _TIMEOUT_S)
        try:
            return min(_LONGEST_RETRY_AFTER_S, msgspec.json.decode(answer, type=ReportTaken).next_s)
        except msgspec.DecodeError:
            return 0.0

    def post_plan(self, plan: Plan, digest: str) -> None:
        """Sends the plan, again and again for `PLAN_PATIENCE_S`.

        Raises:
            TaskError: ProgressUnavailable (infrastructure) or PlanTooLarge (the user's).
        """
        json = msgspec.json.encode(plan)
        body = gzip.compress(json, 6)
        if len(json) > PLAN_MAX_BYTES or len(body) > PLAN_POST_MAX_BYTES:
            raise _plan_too_large(plan)  # the endpoint would close the connection and not be heard
        give_up = self._monotonic() + PLAN_PATIENCE_S
        delays = Delays()
        while True:
            try:
                answer = msgspec.json.decode(
                    self._request("POST", f"{self._job}/plan", body, _TIMEOUT_S * 3, gzipped=True)
                )
            except Unavailable as error:
                if error.status == _TOO_LARGE:
                    raise _plan_too_large(plan) from None
                if self._monotonic() > give_up:
                    message = f"the progress endpoint did not take the plan for {PLAN_PATIENCE_S} s: {error}"
                    raise TaskError(Reason.PROGRESS_UNAVAILABLE, message, user_error=False) from None
                self._sleep(max(delays.next(), error.retry_after_s))
                continue
            if answer.get("digest") not in (None, digest):
                message = f"the progress endpoint got another plan: digest {answer.get('digest')}, expected {digest}"
                raise TaskError(Reason.PROGRESS_UNAVAILABLE, message, user_error=False)
            return

    def orders(self, since: int) -> Orders:
        """The orders after version `since`, asked for until the endpoint answers (it may hold a poll for `POLL_S`)."""
        delays = Delays()
        while True:
            try:
                body = self._request(
                    "GET", f"{self._pod}/orders?since={since}&wait_s={POLL_S}", None, POLL_S + _TIMEOUT_S
                )
                return msgspec.json.decode(body, type=Orders)
            except Unavailable as error:
                self._sleep(max(delays.next(), error.retry_after_s))
            except msgspec.DecodeError:
                self._sleep(delays.next())

    def owner(self, *, job_uid: str, namespace: str, cluster: str) -> OwnerState:
        """What became of the job that an ownership mark names; asks for `OWNER_PATIENCE_S` until the leader knows.

        Raises:
            TaskError: ProgressUnavailable (infrastructure).
        """
        query = urlencode({"uid": job_uid, "namespace": namespace, "cluster": cluster})
        give_up = self._monotonic() + OWNER_PATIENCE_S
        delays = Delays()
        while True:
            try:
                answer = msgspec.json.decode(
                    self._request("GET", f"{self._pod}/owner?{query}", None, _TIMEOUT_S), type=Owner
                )
                if answer.state is not OwnerState.UNKNOWN:
                    return answer.state
                problem, at_least_s = answer.detail, 0.0
            except Unavailable as error:
                problem, at_least_s = str(error), error.retry_after_s
            except msgspec.DecodeError as error:
                problem, at_least_s = str(error), 0.0
            if self._monotonic() > give_up:
                message = f"whether job {job_uid}, the output's owner, has ended is not known: {problem}"
                raise TaskError(Reason.PROGRESS_UNAVAILABLE, message, user_error=False)
            self._sleep(max(delays.next(), at_least_s))

    def _request(self, method: str, path: str, body: bytes | None, timeout_s: float, *, gzipped: bool = False) -> bytes:
        try:
            context = ssl.create_default_context(cafile=str(self._ca_path))
            headers = {
                "Authorization": f"Bearer {self._token_path.read_text().strip()}",
                "Content-Type": "application/json",
            }
            if gzipped:
                headers["Content-Encoding"] = "gzip"
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                content = response.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(0, f"{type(error).__name__}: {error}") from None
        if response.status != _OK:
            message = f"status {response.status}: {content[:200].decode('utf-8', 'replace')}"
            raise Unavailable(response.status, message, _seconds(response.headers.get("Retry-After", "")))
        return content


def _seconds(retry_after: str) -> float:
    """A header's seconds; 0 where it holds a date, or nothing."""
    return min(float(retry_after), _LONGEST_RETRY_AFTER_S) if retry_after.isdecimal() else 0.0


class Delays:
    """Exponential backoff with jitter, so that the tasks of a job do not come back all at once."""

    def __init__(self) -> None:
        self._delay_s = _FIRST_DELAY_S

    def next(self) -> float:
        """The next delay in seconds."""
        self._delay_s = min(self._delay_s * 2, _LONGEST_DELAY_S)
        return self._delay_s * random.uniform(0.5, 1.0)  # noqa: S311 - spread, not secrecy


def _plan_too_large(plan: Plan) -> TaskError:
    message = f"the plan of {len(plan.splits)} splits is too large: raise spec.splitMaxSize or join small input files"
    return TaskError(Reason.PLAN_TOO_LARGE, message, user_error=True)
