"""`boathouse enable-spark`: let the drivers of SparkApps create executors in a namespace."""

import re
from typing import Annotated, Any, Final

import typer

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse_cli import options
from boathouse_cli.errors import AlreadyExistsError, CommandError, ExitCode

CLUSTER_ROLE: Final = "boathouse-spark-driver"
_RIGHTS: Final = "rbac.authorization.k8s.io"


def enable_spark(
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    name: Annotated[
        str, typer.Option(help=f"The account: {ACCOUNT}, or a name that begins with {ACCOUNT}-.")
    ] = ACCOUNT,
    dry_run: options.DryRun = False,
) -> None:
    """Create the service account of drivers in a namespace, and bind it to the ClusterRole boathouse-spark-driver.

    Needs the role admin in the namespace. What exists stays as it is.
    """
    if re.fullmatch(ACCOUNT_PATTERN, name) is None:
        raise CommandError(f'"{name}" is no account for drivers: use {ACCOUNT} or {ACCOUNT}-NAME', ExitCode.USAGE)
    import yaml

    if dry_run and namespace:  # needs no cluster
        print(yaml.safe_dump_all([_account(name, namespace), _binding(name, namespace)], sort_keys=False), end="")
        return
    gateway = options.gateway(kubeconfig, context, namespace)
    account, binding = _account(name, gateway.namespace), _binding(name, gateway.namespace)
    if dry_run:
        print(yaml.safe_dump_all([account, binding], sort_keys=False), end="")
        return
    if gateway.has_cluster_role(CLUSTER_ROLE) is False:
        raise CommandError(
            f"the cluster has no ClusterRole {CLUSTER_ROLE}: install or upgrade Boathouse there, with helm",
            ExitCode.NOT_FOUND,
        )
    print(f"serviceaccount/{name} {_created(gateway.create_account, account)}")
    result = _created(gateway.create_role_binding, binding)
    if result != "created":
        _check(gateway.role_binding(name), name, gateway.namespace)
    print(f"rolebinding/{name} {result}")
    field = "" if name == ACCOUNT else f", with spec.driver.serviceAccountName: {name}"
    print(
        f"SparkApps may run in namespace {gateway.namespace}{field}. Next: kubectl boathouse submit -- spark-submit ..."
    )


def _created(create: Any, manifest: dict[str, Any]) -> str:
    try:
        create(manifest)
    except AlreadyExistsError:
        return "unchanged"
    return "created"


def _check(binding: Any, name: str, namespace: str) -> None:
    """Check a binding that was there.

    Raises:
        CommandError: It gives other rights, or to others.
    """
    subjects = [
        subject
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount" and subject.get("name") == name
    ]
    is_ours = any(subject.get("namespace", namespace) == namespace for subject in subjects)
    role = binding["roleRef"]
    if not is_ours or (role["kind"], role["name"]) != ("ClusterRole", CLUSTER_ROLE):
        raise CommandError(
            f"rolebinding/{name} in namespace {namespace} binds {role['kind']} {role['name']}, or another account: "
            f"delete it, and run this command again"
        )


def _account(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(name, namespace),
        "automountServiceAccountToken": False,  # drivers' pods request the token themselves
    }


def _binding(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RIGHTS}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": _RIGHTS, "kind": "ClusterRole", "name": CLUSTER_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {names.APP_PART_OF: names.MANAGER}}
