"""What comes of a write whose answer is not clear."""

from boathouse.cluster import errors
from boathouse.scheduling import outcomes, writer
from boathouse.telemetry import metrics
from tests.unit.scheduling.deciding import made

POD = made("demo/t", node="n1", revision=1)


class Server:
    """Takes a pod and says so badly; then answers as it is told."""

    epoch: int | None = 1

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.writer = writer.Writer(self, self, metrics.Metrics().scheduler, sleep=self.sleep)

    def valid(self) -> bool:
        return True

    async def sleep(self, _delay_s: float) -> None:
        pass

    async def create_pod(self, _namespace, _manifest):
        raise errors.AlreadyExists(409, "AlreadyExists", "")

    async def get(self, _resource, _name, _namespace):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def create(self) -> outcomes.Outcome:
        manifest = {"metadata": {"ownerReferences": [{"uid": "j", "controller": True}]}}
        return await self.writer.create(writer.Target(task="demo/t", node="n1"), manifest)


async def test_the_truth_is_asked_for_again_when_the_token_was_refused():
    server = Server(errors.Unauthorized(401, "Unauthorized", ""), errors.ServerError(503, "", ""), POD)
    assert await server.create() == outcomes.Done(pod=POD)
