"""Client of the operator's progress endpoint for agents."""

from urllib.parse import quote

import msgspec

from boathouse_task.cluster_contract import AgentOrders, AgentReport, encode_report
from boathouse_task.environment import Environment
from boathouse_task.progress import Endpoint, Unavailable

_TIMEOUT_S = 10


class AgentClient:
    """Sends the reports of one agent.

    Args:
        endpoint: the endpoint, for the MRCluster.
        environment: the pod's name.
    """

    def __init__(self, endpoint: Endpoint, environment: Environment) -> None:
        self._endpoint = endpoint
        self._path = f"cluster/{quote(environment.pod_name)}/report"

    def report(self, report: AgentReport) -> AgentOrders:
        """Send a report and return the orders.

        Raises:
            Unavailable: the request failed.
        """
        answer = self._endpoint.request("POST", self._path, encode_report(report), _TIMEOUT_S)
        try:
            return msgspec.json.decode(answer, type=AgentOrders)
        except msgspec.DecodeError as error:
            raise Unavailable(0, f"unexpected response: {error}") from None
