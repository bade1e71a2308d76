"""The command line on the real API server, by people with the built-in roles."""

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from tests.contract.chart.builders import RBAC, binding, object_

pytestmark = pytest.mark.apiserver

NAMESPACE = "unguarded"
ACCOUNT = "boathouse-spark-etl"
LINE = ("--", "spark-submit", "--num-executors", "3", "--conf", "spark.executorEnv.A=b", "local:///opt/pi.py", "10")


@pytest.fixture(scope="module")
def as_role(installed):
    """Run commands as a service account with a built-in role in the namespace."""
    applied = []

    def acting(role):
        name = f"cli-{role}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        manifests = [
            object_("ServiceAccount", name, NAMESPACE),
            binding(name, NAMESPACE, "ClusterRole", role, subject),
        ]
        installed.apply(*manifests)
        applied.extend(manifests)
        token = installed.kubectl("create", "token", name, f"--namespace={NAMESPACE}").stdout.strip()
        user = installed.with_token(token)
        # Roles are aggregated by a controller.
        user.until(lambda: user.may("get", "sparkapps.boathouse.dev", NAMESPACE), "yes")

        def run(*words):
            shared = ["--kubeconfig", str(user._kubeconfig), "--namespace", NAMESPACE]
            return CliRunner().invoke(commands.app, [*shared, *words])

        return run

    yield acting
    installed.delete(*applied)


def output(result):
    return f"{result.stdout}{result.stderr}{result.exception or ''}"


def test_an_administrator_of_a_namespace_lets_drivers_run_there(installed, as_role):
    admin = as_role("admin")
    # The right to bind the role joins admin when a controller has aggregated it.
    installed.until(lambda: output(admin("enable-spark", "--name", ACCOUNT)), f"rolebinding/{ACCOUNT} created")
    again = admin("enable-spark", "--name", ACCOUNT)
    assert (again.exit_code, again.stdout.count("unchanged")) == (0, 2), output(again)
    driver = installed.acting_as(f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
    for verb, resource in (("create", "pods"), ("deletecollection", "configmaps")):
        driver.until(lambda verb=verb, resource=resource: driver.may(verb, resource, NAMESPACE), "yes")
    assert driver.may("create", "services", NAMESPACE) == "no"
    installed.delete(
        object_("ServiceAccount", ACCOUNT, NAMESPACE), object_("RoleBinding", ACCOUNT, NAMESPACE, api=f"{RBAC}/v1")
    )


def test_an_editor_may_not_create_the_role_binding(as_role):
    result = as_role("edit")("enable-spark", "--name", ACCOUNT)
    assert f"the cluster does not create rolebinding/{ACCOUNT} in namespace {NAMESPACE}: " in output(result)
    assert "forbidden" in output(result)


def test_an_editor_submits_and_sees_the_application(installed, as_role):
    editor = as_role("edit")
    result = editor("submit", "--name", "from-a-line", *LINE)
    assert result.exit_code == 0, output(result)
    assert "kubectl boathouse watch sparkapp/from-a-line -n unguarded" in result.stdout
    assert "sparkapp/from-a-line" in editor("list").stdout
    assert "exists already" in output(editor("submit", "--name", "from-a-line", *LINE))
    installed.delete(object_("SparkApp", "from-a-line", NAMESPACE, api="boathouse.dev/v1alpha1"))


def test_an_editor_submits_a_local_program_and_suspends_resumes_and_deletes_it(installed, as_role, tmp_path):
    editor = as_role("edit")
    (program := tmp_path / "main.py").write_text("print(1)")
    result = editor("submit", "--name", "local", "--", "spark-submit", str(program))
    assert result.exit_code == 0, output(result)
    assert "sparkapp/local suspended" in output(editor("suspend", "sparkapp/local"))
    assert "sparkapp/local resumed" in output(editor("resume", "sparkapp/local"))
    assert "sparkapp/local" in editor("list", "-k", "sparkapp", "-s", "pending", "-o", "wide").stdout
    owners = "jsonpath={.items[*].metadata.ownerReferences[*].name}"
    owned = installed.kubectl("get", "configmaps", f"--namespace={NAMESPACE}", "-o", owners)
    assert "local" in owned.stdout.split()
    assert "sparkapp/local deleted" in output(editor("delete", "sparkapp/local"))
