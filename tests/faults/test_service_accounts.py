"""A job that names a service account waits, says how to permit it, and goes on once an administrator did."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from typing_extensions import override

from boathouse_e2e import lab
from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": lab.NAMESPACE}}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Named(Shape):
    """A job whose pods run as `reader`."""

    @override
    def manifest(self, name: str, namespace: str = lab.NAMESPACE) -> dict[str, Any]:
        manifest = super(Named, self).manifest(name, namespace)
        manifest["spec"]["serviceAccountName"] = "reader"
        return manifest


async def test_a_job_waits_until_its_service_account_is_permitted_and_its_condition_says_how(trial):
    trial.lab.cluster.apply(ACCOUNT)
    await trial.submit(Named(maps=2, reduces=1))
    with trial.operator() as operator:
        operator.start()
        await trial.until(lambda: scheduled(trial), "the condition Scheduled says why")
        condition = await scheduled(trial)
        assert (condition["status"], condition["reason"]) == ("False", "PodRefused"), json.dumps(condition)
        assert "Boathouse may not run pods as the service account reader" in condition["message"]
        command = condition["message"].partition("kubectl ")[2].split(" --namespace=")[0].split()
        trial.lab.cluster.run(*command, "--namespace", lab.NAMESPACE)
        await trial.judge()


async def scheduled(trial: Any) -> dict[str, Any] | None:
    """The job's condition Scheduled, once a pod of it was refused."""
    conditions = (await trial.status()).get("conditions") or ()
    found = [one for one in conditions if one["type"] == "Scheduled" and one["reason"] == "PodRefused"]
    return found[0] if found else None
