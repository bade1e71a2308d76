"""Commands that create and change objects, and `enable-spark`, which lets drivers create executors in a namespace.

`convert` prints what manifests of Spark operators or lines of spark-submit become; `submit` creates it, with the files
of this machine in a ConfigMap that the object owns, so they go with it. The conversion is imported where it is needed:
the models of the custom resource take longer to load than most commands to run.
"""

import contextlib
import copy
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse_cli import options
from boathouse_cli.errors import AlreadyExistsError, CommandError, ExitCode, UsageError

if TYPE_CHECKING:
    from boathouse_cli import kinds, model
    from boathouse_cli.conversion.draft import Carried
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
    from boathouse_cli import kinds, reading

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
        _share_files(gateway, raw, created)
    except CommandError as error:
        print(f"keep {failed.title} until {made.title} has ended, because it owns its files: {error}", file=sys.stderr)
    _print_next(made.title, made.namespace, is_followed=wait, has_ui=kind is kinds.SPARKAPP)
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


_KIND: Final = re.compile(r"""^\s*["']?(?:kind|apiVersion)["']?\s*:""", re.MULTILINE)


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="SparkApplications of a Spark operator (YAML), or command lines of spark-submit; - is standard input.",
        ),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="End with exit code 3 if anything has no counterpart in a SparkApp.")
    ] = False,
) -> None:
    """Print SparkApps made of manifests of Spark operators or of spark-submit lines; needs no cluster.

    The operators are Kubeflow's (sparkoperator.k8s.io) and Apache's (spark.apache.org).

    What has no counterpart is listed on standard error, with its path and what to do. The exit code is 3 if an
    application could not be converted.
    """
    from boathouse_cli.conversion import command_lines, manifests

    try:
        text = sys.stdin.read() if file == "-" else _read_text(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text in UTF-8") from error
    try:
        if command_lines.SPARK_LINE.search(text) and not _KIND.search(text):
            found = list(command_lines.convert_text(text, read=_read_text))
        else:
            found = list(manifests.convert_text(text))
    except ValueError as error:
        raise UsageError(f"{file} {error}") from error
    if not found:
        raise UsageError(f"{file} has no SparkApplication and no spark-submit line")
    for conversion in found:
        for note in conversion.notes:
            print(note.text, file=sys.stderr)
    if made := [conversion.manifest for conversion in found if conversion.manifest is not None]:
        options.print_manifests(*made)
    if any(conversion.has_failed or (strict and conversion.notes) for conversion in found):
        raise typer.Exit(ExitCode.NOT_CONVERTED)


def _read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _create_with_files(
    gateway: "Gateway", plural: str, manifest: dict[str, Any], carried: "Carried", name: str
) -> "model.Raw":
    """Create an object that begins when the ConfigMap of its files is there, which it owns.

    If this process ends halfway, a suspended object is left, and no ConfigMap that nobody owns. If the cluster
    refuses one of them, neither is left.
    """
    if not carried.files:
        return gateway.create(plural, manifest)
    made = gateway.create(plural, {**manifest, "spec": {**manifest["spec"], "suspend": True}})
    config_map = carried.manifest(name)
    config_map["metadata"]["ownerReferences"] = [_owner(made)]
    try:
        gateway.create("configmaps", config_map)
        gateway.patch(plural, made["metadata"]["name"], {"spec": {"suspend": False}})
    except CommandError:
        with contextlib.suppress(CommandError):
            gateway.delete(plural, made["metadata"]["name"])
        raise
    return made


def _share_files(gateway: "Gateway", former: "model.Raw", made: "model.Raw") -> None:
    """Let an object own the ConfigMaps of a former one, with whose files it runs, as well."""
    mounted = [volume.get("configMapName") for volume in former["spec"].get("volumes") or ()]
    fetched = [(file.get("configMapKeyRef") or {}).get("name") for file in former["spec"].get("files") or ()]
    for name in filter(None, dict.fromkeys(mounted + fetched)):
        owners = gateway.get("configmaps", name)["metadata"].get("ownerReferences") or []
        if any(owner["uid"] == former["metadata"]["uid"] for owner in owners):
            gateway.patch("configmaps", name, {"metadata": {"ownerReferences": [*owners, _owner(made)]}})


def _owner(raw: "model.Raw") -> dict[str, str]:
    metadata = raw["metadata"]
    return {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def submit(  # noqa: PLR0917  each is an option of the command
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- spark-submit ARGS...",
            help="A command line of spark-submit, or of Hadoop Streaming; with --cluster, hadoop jar URL ARGS.",
        ),
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the object, which must be free; default: the line's, with a suffix of its own."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="MRCluster of the namespace on which a line of Hadoop runs, as an MRJob.")
    ] = None,
    dry_run: options.DryRun = False,
    wait: options.Wait = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="As --wait, and print the driver's log.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Submit nothing if anything has no counterpart.")] = False,
) -> None:
    """Create a SparkApp that means what a spark-submit command line says, and print what to do next.

    An MRJob of a line of Hadoop Streaming (hadoop jar hadoop-streaming.jar ARGS); with --cluster, it runs there, as
    do other lines of `hadoop jar`.

    The program and other files of this machine (--py-files, --files, --jars; -file and -files of Hadoop Streaming) are
    taken along in a ConfigMap that the object owns, if they have at most 900 KiB.

    What has no counterpart is listed on standard error. --master and --deploy-mode are not needed. Each submission gets
    a name of its own unless --name is given.
    """
    from boathouse_cli import kinds, reading
    from boathouse_cli.conversion.draft import Carried

    carried = Carried(lambda path: Path(path).expanduser().read_bytes(), secrets.token_hex(4))
    kind, manifest = _converted(words, cluster, carried, strict=strict, follow=follow)
    metadata = manifest["metadata"]
    base = metadata.pop("name")
    metadata |= {"generateName": f"{base}-"} if name is None else {"name": name}
    namespace = namespace or metadata.pop("namespace", None)
    if dry_run:
        metadata |= {"namespace": namespace} if namespace else {}
        options.print_manifests(*([carried.manifest(base)] if carried.files else []), manifest)
        return
    gateway = options.gateway(kubeconfig, context, namespace)
    made = kind.read(_create_with_files(gateway, kind.plural, manifest, carried, base))
    _print_next(made.title, made.namespace, is_followed=wait or follow, has_ui=kind is kinds.SPARKAPP)
    if follow:
        reading.follow_driver(gateway, made.name)
    elif wait:
        reading.until_end(gateway, kind, made.name)


def _converted(
    words: list[str], cluster: str | None, carried: "Carried", *, strict: bool, follow: bool
) -> tuple["kinds.Kind", dict[str, Any]]:
    from boathouse_cli import kinds
    from boathouse_cli.conversion import command_lines, hadoop_lines

    is_hadoop = cluster is not None or hadoop_lines.is_line(words)
    if is_hadoop and follow:
        raise UsageError("--follow is for SparkApps: pass --wait, and use boathouse logs")
    if is_hadoop:
        found = hadoop_lines.convert(words, cluster, carried)
    else:
        found = command_lines.convert(words, source=command_lines.PROGRAM, read=_read_properties, carried=carried)
    for note in found.notes:
        print(note.text, file=sys.stderr)
    if found.manifest is None or found.would_fail or (strict and found.notes):
        raise CommandError("nothing was submitted: correct what is listed above", ExitCode.NOT_CONVERTED)
    return kinds.MRJOB if is_hadoop else kinds.SPARKAPP, found.manifest


def _read_properties(path: str) -> str:
    try:
        return _read_text(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): correct the path") from error


def _print_next(title: str, namespace: str, *, is_followed: bool, has_ui: bool) -> None:
    print(f"{title} created in namespace {namespace}", file=sys.stderr if is_followed else sys.stdout)
    commands = {"how far is it": "watch", "why is it pending": "explain"}
    commands |= {"the driver's log": "logs -f", "Spark's UI": "ui"} if has_ui else {"its logs": "logs"}
    if not is_followed:
        for question, command in commands.items():
            print(f"  {question + ':':<19} kubectl boathouse {command} {title} -n {namespace}")


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
