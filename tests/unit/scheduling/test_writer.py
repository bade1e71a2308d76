"""What comes of a write whose answer is not clear."""

import pytest

from boathouse.cluster import errors
from boathouse.scheduling import outcomes, writer
from boathouse.telemetry import metrics
from tests.builders.operators.desks import operation, task_pod

POD = task_pod("demo/t", node="n1", revision=1)


class PodServer:
    """Takes a pod and says so badly; then answers as it is told. Holds the Lease as well."""

    epoch: int | None = 1

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.created = 0
        self.refusal: errors.ApiError = errors.AlreadyExists(409, "AlreadyExists", "")
        self.holder: str | None = None
        self.in_doubt = False
        self.confirmed = 0
        self.writer = writer.Writer(self, self, metrics.Metrics().scheduler, sleep=self.sleep)

    def valid(self) -> bool:
        return True

    async def sleep(self, _delay_s: float) -> None:
        pass

    async def confirm(self) -> str | None:
        self.confirmed += 1
        return self.holder

    async def create_pod(self, _namespace, _manifest):
        self.created += 1
        raise self.refusal

    async def get(self, _resource, _name, _namespace):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def create(self) -> outcomes.Outcome:
        manifest = {"metadata": {"ownerReferences": [{"uid": "j", "controller": True}]}}
        return await self.writer.create(operation("demo/t"), manifest)


async def test_the_truth_is_asked_for_again_when_the_token_was_refused():
    server = PodServer(errors.Unauthorized(401, "Unauthorized", ""), errors.ServerError(503, "", ""), POD)
    assert await server.create() == outcomes.Done(pod=POD)


FORBIDDEN = errors.Forbidden(403, "Forbidden", "denied")
NAMED_FENCE = errors.Forbidden(403, "Forbidden", 'pods "boathouse-fence-m-00000-1" is forbidden: no PriorityClass nope')


@pytest.mark.parametrize("refusal", [FORBIDDEN, NAMED_FENCE, errors.Invalid(422, "Invalid", "boathouse-fence")])
async def test_a_refusal_ends_the_leader_only_if_the_lease_is_anothers(refusal):
    server = PodServer()
    server.refusal = refusal
    assert (await server.create()).reason == "PodRefused"
    server.holder = "another holds the lease with 2"
    outcome = await server.create()
    assert isinstance(outcome, outcomes.Fenced)
    assert outcome.message.startswith(server.holder)


async def test_what_cannot_be_the_fence_does_not_read_the_lease():
    server = PodServer()
    server.refusal = errors.TooManyRequests(429, "TooManyRequests", "")
    await server.create()
    assert server.confirmed == 0


async def test_while_it_is_in_doubt_who_leads_nothing_is_written():
    server = PodServer()
    server.in_doubt, server.holder = True, "another holds the lease with 2"
    assert isinstance(await server.create(), outcomes.Fenced)
    assert server.created == 0
