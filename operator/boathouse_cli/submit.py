"""`boathouse submit`: run a command line of spark-submit as a SparkApp, or one of Hadoop as an MRJob."""

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boathouse_cli import convert, options
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from boathouse_cli import kinds
    from boathouse_cli.conversion.carried import Carried


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
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; the exit code is 1 if it failed, as with watch.")
    ] = False,
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
    import yaml
    from rich import console

    from boathouse_cli import kinds, submitted_files, watching
    from boathouse_cli.conversion.carried import Carried

    kind = _kind(words, cluster, follow=follow)
    carried = Carried(_read_bytes, secrets.token_hex(4))
    manifest = _converted(words, kind, cluster, carried, strict=strict)
    base = manifest["metadata"]["name"]
    _set_name(manifest["metadata"], name)
    namespace = namespace or manifest["metadata"].pop("namespace", None)
    if dry_run:
        manifest["metadata"] |= {"namespace": namespace} if namespace else {}
        files = [carried.manifest(base)] if carried.files else []
        print(yaml.safe_dump_all([*files, manifest], sort_keys=False, allow_unicode=True), end="")
        return
    gateway = options.gateway(kubeconfig, context, namespace)
    made = kind.read(submitted_files.create_with_files(gateway, kind.plural, manifest, carried, base))
    print_next(made.title, made.namespace, is_followed=wait or follow, has_ui=kind is kinds.SPARKAPP)
    if follow:
        watching.follow_driver(gateway, made.name)
    elif wait:
        watching.until_end(gateway, kind, made.name, console.Console())


def _kind(words: list[str], cluster: str | None, *, follow: bool) -> "kinds.Kind":
    from boathouse_cli import kinds
    from boathouse_cli.conversion import hadoop_lines

    if cluster is None and not hadoop_lines.is_line(words):
        return kinds.SPARKAPP
    if follow:
        raise CommandError("--follow is for SparkApps: pass --wait, and use boathouse logs", ExitCode.USAGE)
    return kinds.MRJOB


def _converted(
    words: list[str], kind: "kinds.Kind", cluster: str | None, carried: "Carried", *, strict: bool
) -> dict[str, Any]:
    from boathouse_cli import kinds
    from boathouse_cli.conversion import command_lines, hadoop_lines

    if kind is kinds.MRJOB:
        found = hadoop_lines.convert(words, cluster, carried)
    else:
        found = command_lines.convert(words, source=command_lines.PROGRAM, read=_read_properties, carried=carried)
    for note in found.notes:
        print(note.text, file=sys.stderr)
    if found.manifest is None or found.would_fail or (strict and found.notes):
        raise CommandError("nothing was submitted: correct what is listed above", ExitCode.NOT_CONVERTED)
    return found.manifest


def _read_bytes(path: str) -> bytes:
    return Path(path).expanduser().read_bytes()


def _read_properties(path: str) -> str:
    try:
        return convert.read_text(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({error.strerror}): correct the path", ExitCode.USAGE) from error


def _set_name(metadata: dict[str, Any], name: str | None) -> None:
    if name is None:
        metadata["generateName"] = f"{metadata.pop('name')}-"
    else:
        metadata["name"] = name


def print_next(title: str, namespace: str, *, is_followed: bool, has_ui: bool) -> None:
    """Print that an object was created, and the commands that people use next."""
    where = f"{title} -n {namespace}"
    print(f"{title} created in namespace {namespace}", file=sys.stderr if is_followed else sys.stdout)
    if not is_followed:
        print(
            f"  how far is it:      kubectl boathouse watch {where}\n"
            f"  why is it pending:  kubectl boathouse explain {where}\n"
            + (
                f"  the driver's log:   kubectl boathouse logs -f {where}\n"
                f"  Spark's UI:         kubectl boathouse ui {where}"
                if has_ui
                else f"  its logs:           kubectl boathouse logs {where}"
            )
        )
