"""`boathouse submit`: run what a spark-submit command line says as a SparkApp."""

import sys
from typing import Annotated, Any

import typer
import yaml
from rich import console

from boathouse_cli import convert, kinds, options, watching
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.gateway import Gateway


def submit(  # noqa: PLR0917  each is an option of the command
    words: Annotated[
        list[str], typer.Argument(metavar="-- spark-submit ARGS...", help="A command line of spark-submit.")
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the SparkApp, which must be free; default: the line's, with a suffix of its own."),
    ] = None,
    dry_run: options.DryRun = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; the exit code is 1 if it failed, as with watch.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="As --wait, and print the driver's log.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Submit nothing if anything has no counterpart.")] = False,
) -> None:
    """Create a SparkApp that means what a spark-submit command line says, and print what to do next.

    What has no counterpart is listed on standard error. --master and --deploy-mode are not needed. Each submission gets
    a name of its own unless --name is given.
    """
    manifest = _converted(words, strict=strict)
    _set_name(manifest["metadata"], name)
    namespace = namespace or manifest["metadata"].pop("namespace", None)
    if dry_run:
        manifest["metadata"] |= {"namespace": namespace} if namespace else {}
        print(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True), end="")
        return
    gateway = Gateway.connect(kubeconfig=options.kubeconfig_path(kubeconfig), context=context, namespace=namespace)
    made = kinds.SPARKAPP.read(gateway.create_job(kinds.SPARKAPP.plural, manifest))
    _print_next(made.title, made.namespace, is_followed=wait or follow)
    if follow:
        watching.follow_driver(gateway, made.name)
    elif wait:
        watching.until_end(gateway, kinds.SPARKAPP, made.name, console.Console())


def _converted(words: list[str], *, strict: bool) -> dict[str, Any]:
    from boathouse_cli.conversion import command_lines

    found = command_lines.convert(words, source=command_lines.PROGRAM, read=convert.read_text)
    for note in found.notes:
        print(note.text, file=sys.stderr)
    if found.manifest is None or (strict and found.notes):
        raise CommandError("nothing was submitted: correct what is listed above", ExitCode.NOT_CONVERTED)
    return found.manifest


def _set_name(metadata: dict[str, Any], name: str | None) -> None:
    if name is None:
        metadata["generateName"] = f"{metadata.pop('name')}-"
    else:
        metadata["name"] = name


def _print_next(title: str, namespace: str, *, is_followed: bool) -> None:
    where = f"{title} -n {namespace}"
    print(f"{title} created in namespace {namespace}", file=sys.stderr if is_followed else sys.stdout)
    if not is_followed:
        print(
            f"  how far is it:      kubectl boathouse watch {where}\n"
            f"  why is it pending:  kubectl boathouse explain {where}\n"
            f"  the driver's log:   kubectl boathouse logs -f {where}\n"
            f"  Spark's UI:         kubectl boathouse ui {where}"
        )
