"""`boathouse convert` and `submit`: Spark applications of others as SparkApps, command lines of Hadoop as MRJobs.

`convert` prints what manifests of Spark operators or lines of spark-submit become; `submit` creates it, with the files
of this machine in a ConfigMap that the object owns, so they go with it. The conversion is imported where it is needed:
the models of the custom resource take longer to load than most commands to run.
"""

import contextlib
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from boathouse_cli import options
from boathouse_cli.errors import CommandError, ExitCode, UsageError

if TYPE_CHECKING:
    from boathouse_cli import kinds, model
    from boathouse_cli.conversion.draft import Carried
    from boathouse_cli.gateway import Gateway

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
        text = sys.stdin.read() if file == "-" else read_text(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text in UTF-8") from error
    try:
        if command_lines.SPARK_LINE.search(text) and not _KIND.search(text):
            found = list(command_lines.convert_text(text, read=read_text))
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


def read_text(path: str) -> str:
    """Return the text of a file that the user named."""
    return Path(path).read_text(encoding="utf-8")


def create_with_files(
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


def share_files(gateway: "Gateway", former: "model.Raw", made: "model.Raw") -> None:
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
    made = kind.read(create_with_files(gateway, kind.plural, manifest, carried, base))
    print_next(made.title, made.namespace, is_followed=wait or follow, has_ui=kind is kinds.SPARKAPP)
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
        return read_text(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): correct the path") from error


def print_next(title: str, namespace: str, *, is_followed: bool, has_ui: bool) -> None:
    """Print that an object was created, and the commands that people use next."""
    print(f"{title} created in namespace {namespace}", file=sys.stderr if is_followed else sys.stdout)
    commands = {"how far is it": "watch", "why is it pending": "explain"}
    commands |= {"the driver's log": "logs -f", "Spark's UI": "ui"} if has_ui else {"its logs": "logs"}
    if not is_followed:
        for question, command in commands.items():
            print(f"  {question + ':':<19} kubectl boathouse {command} {title} -n {namespace}")
