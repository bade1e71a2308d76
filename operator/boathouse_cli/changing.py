"""Commands that change objects, and `enable-spark`, which lets drivers create executors in a namespace."""

import copy
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse_cli import options
from boathouse_cli.errors import AlreadyExistsError, CommandError, ExitCode, UsageError

if TYPE_CHECKING:
    from boathouse_cli import kinds, model
    from boathouse_cli.gateway import Gateway

Jobs = Annotated[
    list[str],
    typer.Argument(metavar="KIND/NAME...", help=f"The jobs: {options.JOB_SYNTAX}.", autocompletion=options.jobs),
]


def suspend(
    jobs: Jobs,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Suspend jobs: their pods are deleted, and results of finished tasks are kept."""
    _set_suspended(jobs, True, namespace, context, kubeconfig)


def resume(
    jobs: Jobs,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Resume suspended jobs."""
    _set_suspended(jobs, False, namespace, context, kubeconfig)


def _set_suspended(
    jobs: list[str], is_suspended: bool, namespace: str | None, context: str | None, kubeconfig: str | None
) -> None:
    from boathouse_cli import kinds

    targets = list(map(kinds.job_target, jobs))
    gateway = options.gateway(kubeconfig, context, namespace)
    for kind, name in targets:
        job = kinds.job(gateway, kind, name)
        if job.finished:
            raise UsageError(f"{job.title} has ended ({job.phase}): use `boathouse retry`")
        gateway.patch(kind.plural, name, {"spec": {"suspend": is_suspended}})
        print(f"{job.title} {'suspended' if is_suspended else 'resumed'}")


def delete(
    objects: Annotated[
        list[str],
        typer.Argument(metavar="KIND/NAME...", help=f"The objects: {options.SYNTAX}.", autocompletion=options.objects),
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Delete Hadoop clusters too, whose HDFS may go with them.")
    ] = False,
) -> None:
    """Delete jobs and Hadoop clusters with their pods. The output of a finished job stays."""
    from boathouse_cli import kinds

    targets = list(map(kinds.object_target, objects))
    for kind, name in targets:
        if kind is kinds.MRCLUSTER and not yes:
            raise UsageError(f"mrcluster/{name} may have files in its HDFS: pass --yes")
    gateway = options.gateway(kubeconfig, context, namespace)
    for kind, name in targets:
        gateway.delete(kind.plural, name)
        print(f"{kind.name}/{name} deleted")


def retry(
    job: options.JobArgument,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new object; default: the old name with a suffix.")
    ] = None,
    dry_run: options.DryRun = False,
    wait: options.Wait = False,
) -> None:
    """Run a failed job again, as a new object with its spec. The failed one stays."""
    from boathouse_cli import kinds, reading, submit

    kind, failed_name = kinds.job_target(job)
    gateway = options.gateway(kubeconfig, context, namespace)
    raw = gateway.get(kind.plural, failed_name)
    failed = kind.read(raw)
    if not failed.finished or failed.phase == "Succeeded":
        raise UsageError(f"{failed.title} has not failed (phase {failed.phase or 'Pending'})")
    manifest = again(raw, kind, name)
    if dry_run:
        options.print_manifests(manifest)
        return
    created = gateway.create(kind.plural, manifest)
    made = kind.read(created)
    try:
        submit.share_files(gateway, raw, created)
    except CommandError as error:
        print(f"keep {failed.title} until {made.title} has ended, because it owns its files: {error}", file=sys.stderr)
    submit.print_next(made.title, made.namespace, is_followed=wait, has_ui=kind is kinds.SPARKAPP)
    if wait:
        reading.until_end(gateway, kind, made.name)


def again(raw: "model.Raw", kind: "kinds.Kind", name: str | None) -> dict[str, Any]:
    """Return a new object with the spec, labels and annotations of another, by default with its name and a suffix."""
    metadata = raw["metadata"]
    made: dict[str, Any] = (
        {"generateName": metadata.get("generateName") or f"{metadata['name']}-"} if name is None else {"name": name}
    )
    ours = (f"{names.GROUP}/", "kubectl.kubernetes.io/")
    for field in ("labels", "annotations"):
        if kept := {key: text for key, text in (metadata.get(field) or {}).items() if not key.startswith(ours)}:
            made[field] = kept
    spec = {field: value for field, value in raw["spec"].items() if field != "suspend"}
    return {"apiVersion": raw["apiVersion"], "kind": kind.title, "metadata": made, "spec": spec}


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
        raise UsageError(f'"{name}" is no account for drivers: use {ACCOUNT} or {ACCOUNT}-NAME')
    # Without a request to the cluster, its kubeconfig need not be there.
    gateway = None if dry_run and namespace else options.gateway(kubeconfig, context, namespace)
    account, binding = _objects(name, gateway.namespace if gateway else namespace or "")
    if dry_run or gateway is None:
        options.print_manifests(account, binding)
        return
    try:
        gateway.get("clusterroles", CLUSTER_ROLE)
    except CommandError as error:  # users need not have the right to read it
        if error.code is ExitCode.NOT_FOUND:
            raise CommandError(
                f"the cluster has no ClusterRole {CLUSTER_ROLE}: install or upgrade Boathouse there, with helm",
                ExitCode.NOT_FOUND,
            ) from error
    print(f"serviceaccount/{name} {_created(gateway, 'serviceaccounts', account)}")
    result = _created(gateway, "rolebindings", binding)
    if result != "created":
        _check(gateway.get("rolebindings", name), name, gateway.namespace)
    print(f"rolebinding/{name} {result}")
    field = "" if name == ACCOUNT else f", with spec.driver.serviceAccountName: {name}"
    print(
        f"SparkApps may run in namespace {gateway.namespace}{field}. Next: kubectl boathouse submit -- spark-submit ..."
    )


def _created(gateway: "Gateway", plural: str, manifest: dict[str, Any]) -> str:
    try:
        gateway.create(plural, manifest)
    except AlreadyExistsError:
        return "unchanged"
    return "created"


def _check(binding: Any, name: str, namespace: str) -> None:
    subjects = binding.get("subjects") or ()
    accounts = [(of.get("kind"), of.get("name"), of.get("namespace", namespace)) for of in subjects]
    is_ours = ("ServiceAccount", name, namespace) in accounts
    role = binding["roleRef"]
    if not is_ours or (role["kind"], role["name"]) != ("ClusterRole", CLUSTER_ROLE):
        raise CommandError(
            f"rolebinding/{name} in namespace {namespace} binds {role['kind']} {role['name']}, or another account: "
            f"delete it, and run this command again"
        )


def _objects(name: str, namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    metadata = {"name": name, "namespace": namespace, "labels": {names.APP_PART_OF: names.MANAGER}}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,  # drivers' pods request the token themselves
    }
    binding = {
        "apiVersion": f"{_RIGHTS}/v1",
        "kind": "RoleBinding",
        "metadata": copy.deepcopy(metadata),  # else YAML has an anchor
        "roleRef": {"apiGroup": _RIGHTS, "kind": "ClusterRole", "name": CLUSTER_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    return account, binding
