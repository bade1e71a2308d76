"""`make demo`: a word count over a real text by MapReduce and by Spark, side by side on a real cluster.

Does what a user would do, in the same order: cluster, images, `helm install`, storage, data, `kubectl apply`, and then
looks at both with the project's own command line. The results are compared with `tr | grep | sort | uniq -c`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import filecmp
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import obstore
from rich import box, console, table

from boathouse_cli import changing, errors as cli_errors, explain, gateway, kinds, model, picture, reading, tables
from boathouse_e2e import catalogue, corpus, errors, images, install, paths, providers, storage, tools
from boathouse_e2e.spec import Cluster, ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from obstore.store import S3Store


LOG_LINES: Final = "500"
LAST_EVENTS: Final = 40
HADOOP: Final = ("-l", "app.kubernetes.io/name=boathouse-hadoop", "--all-containers", "--max-log-requests=100")


def save(cluster: Cluster, namespace: str, folder: Path) -> None:
    """Save jobs, pods, events, nodes and the operator's logs; what cannot be read says why in its file."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = ("logs", "-n", install.NAMESPACE, "-l", "app.kubernetes.io/name=boathouse", "--prefix", "--tail", LOG_LINES)
    for name, arguments in {
        "jobs.yaml": ("get", "boathouse", "-A", "-o", "yaml"),
        "jobs.txt": ("describe", "boathouse", "-n", namespace),
        "pods.txt": ("get", "pods", "-A", "-o", "wide"),
        "pods.yaml": ("get", "pods", "-n", namespace, "-o", "yaml"),
        "events.txt": ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"),
        "nodes.txt": ("describe", "nodes"),
        "operator-pods.yaml": ("get", "pods", "-n", install.NAMESPACE, "-o", "yaml"),
        "hadoop.log": ("logs", "-n", namespace, *HADOOP, "--prefix", "--tail", LOG_LINES),
        "operator.log": logs,
        "operator-previous.log": (*logs, "--previous"),
    }.items():
        (folder / name).write_text(_said(cluster, arguments))


def _said(cluster: Cluster, arguments: tuple[str, ...]) -> str:
    try:
        return cluster.run(*arguments)
    except errors.ClusterError as error:
        return f"{error}\n"


def glance(cluster: Cluster, namespace: str) -> str:
    """Return a namespace's pods with the reasons why they are pending, and its last events, for a failed test."""
    why = '.status.conditions[?(@.type=="PodScheduled")].message'
    columns = f"POD:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase,WAITS:{why}"
    pods = _said(cluster, ("get", "pods", "-n", namespace, "-o", f"custom-columns={columns}"))
    events = _said(cluster, ("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp"))
    return f"{pods}\n" + "\n".join(events.splitlines()[-LAST_EVENTS:])


@dataclasses.dataclass(slots=True)
class Stages:
    """Prints `==> stage` when one begins and keeps its seconds."""

    screen: console.Console
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage; it is kept also when it fails."""
        self.screen.print(f"[bold]==> {name}[/bold]", highlight=False)
        started_s = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started_s

    def summary(self) -> table.Table:
        """Return the seconds of each stage and their sum."""
        drawn = table.Table("STAGE", "SECONDS", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        drawn.columns[1].justify = "right"
        for name, seconds in self.seconds.items():
            drawn.add_row(name, f"{seconds:.1f}")
        drawn.add_row("together", f"{sum(self.seconds.values()):.1f}", style="bold")
        return drawn


WORD_COUNT: Final = r"""
set -euo pipefail
cat "$@" | tr -cs 'A-Za-z' '\n' | tr 'A-Z' 'a-z' | grep . | sort -S 256M | uniq -c
"""
AS_UNIQ_PRINTS: Final = r"""
set -euo pipefail
cat "$@" | sort | awk -F '\t' '{printf "%7d %s\n", $2, $1}'
"""
TOOLS: Final = ("bash", "tr", "grep", "sort", "uniq", "awk")


def word_count(texts: Sequence[Path], target: Path) -> None:
    """Count the words of texts with `tr | grep | sort | uniq -c` into a file.

    Raises:
        ClusterError: One of these tools is missing or failed.
    """
    _pipeline(WORD_COUNT, texts, target)


def job_output(parts: Sequence[Path], target: Path) -> None:
    """Bring a job's WORD<TAB>COUNT parts into the form and order of `word_count`, to be compared byte by byte.

    Raises:
        ClusterError: One of these tools is missing or failed.
    """
    _pipeline(AS_UNIQ_PRINTS, parts, target)


def _pipeline(script: str, files: Sequence[Path], target: Path) -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise errors.ClusterError(f"{', '.join(missing)} not found: install coreutils, grep and awk")
    command = ["bash", "-c", script, "reference", *map(str, files)]
    with target.open("wb") as out:
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, env=os.environ | {"LC_ALL": "C"}, check=False
        )
    if done.returncode != 0:
        raise errors.ClusterError(f"the reference's pipeline failed: {done.stderr.decode(errors='replace').strip()}")


def sizes(store: S3Store, prefix: str) -> dict[str, int]:
    """Return the sizes in bytes of the objects below a prefix (whole path segments), by key."""
    return {entry["path"]: entry["size"] for page in obstore.list(store, prefix) for entry in page}


def upload(store: S3Store, files: Mapping[str, Path]) -> int:
    """Store files under keys; those that are there with their size stay. Returns how many were sent."""
    there: dict[str, int] = {}
    for folder in {key.rpartition("/")[0] for key in files}:
        there |= sizes(store, folder)
    missing = {key: path for key, path in files.items() if there.get(key) != path.stat().st_size}
    for key, path in missing.items():
        obstore.put(store, key, path)
    return len(missing)


def download(store: S3Store, keys: list[str], folder: Path) -> list[Path]:
    """Fetch objects into a folder, which is emptied first, by the last part of their keys."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / key.rpartition("/")[2] for key in keys]
    for key, path in zip(keys, paths, strict=True):
        path.write_bytes(read(store, key))
    return paths


def read(store: S3Store, key: str) -> bytes:
    """Return the content of one object."""
    return bytes(obstore.get(store, key).bytes())


def remove(store: S3Store, prefix: str) -> int:
    """Delete everything below a prefix; return how many objects that were."""
    keys = list(sizes(store, prefix))
    if keys:
        obstore.delete(store, keys)
    return len(keys)


NAMESPACE: Final = "boathouse-demo"
BUCKET: Final = "books"
TEXTS: Final = "text"
EXAMPLES: Final = paths.REPOSITORY / "examples"
BUILD: Final = paths.REPOSITORY / "build" / "demo"
JOB_TIMEOUT_S: Final = 900
MOST_FREQUENT: Final = 10
IMAGES: Final = (*images.FOR_MRJOBS, images.SPARK)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WordCount:
    """One of the word counts; its name is also its folder in the bucket."""

    kind: kinds.Kind
    name: str
    example: Path

    @property
    def title(self) -> str:
        """As the command line takes it."""
        return f"{self.kind.name}/{self.name}"


WORD_COUNTS: Final = (
    WordCount(kind=kinds.MRJOB, name="wordcount", example=EXAMPLES / "wordcount.yaml"),
    WordCount(kind=kinds.SPARKAPP, name="spark-wordcount", example=EXAMPLES / "spark" / "wordcount.yaml"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `make demo` can be told by environment variables (in brackets) and flags."""

    provider: str
    context: str | None
    name: str
    nodes: int
    min_mb: int
    keep: bool


class DemoError(errors.ClusterError):
    """The demo ran and its result is not what it must be."""


def run(options: Options, screen: console.Console) -> int:
    """Run the demo; return the exit code."""
    stages = Stages(screen)
    started_s = time.monotonic()
    cluster: Cluster | None = None
    try:
        with stages("text from Debian's documentation packages"):
            text = _corpus(options, screen)
        with stages("tools and images (built once, then cached)"):
            _build(options, screen)
        with stages(f"cluster {options.name} ({options.nodes} nodes)"):
            cluster = _cluster(options)
        _demonstrate(cluster, text, stages, screen)
    except (errors.ClusterError, cli_errors.CommandError) as error:
        screen.print(f"[bold red]failed:[/bold red] {error}", highlight=False, soft_wrap=True)
        if cluster is not None:
            folder = BUILD / f"failure-{time.strftime('%Y%m%d-%H%M%S')}"
            save(cluster, NAMESPACE, folder)
            screen.print(
                f"What to look at is in {folder}: begin with jobs.txt, events.txt and operator.log", soft_wrap=True
            )
        return 1
    finally:
        if not options.keep:
            providers.choose(options.provider, name=options.name, context=options.context).down(options.name)
    screen.print(stages.summary())
    screen.print(f"Done in {time.monotonic() - started_s:.0f} s.", highlight=False)
    _farewell(cluster, options, screen)
    return 0


def _demonstrate(cluster: Cluster, text: corpus.Corpus, stages: Stages, screen: console.Console) -> None:
    with stages("images loaded into the nodes"):
        images.load(cluster, IMAGES)
    with stages("storage: an S3 server in the cluster"):
        credentials = storage.deploy(cluster, namespace=NAMESPACE)
    with stages("helm install charts/boathouse"):
        install.install(cluster)
    with storage.endpoint_from_host(cluster, namespace=NAMESPACE) as endpoint:
        with stages(f"upload of {text.size_bytes / 1e6:.0f} MB to s3://{BUCKET}/{TEXTS}/"):
            books = storage.bucket(endpoint, credentials, BUCKET)
            _prepare(cluster, books, text, screen)
        with stages("kubectl apply of the MRJob and the SparkApp"):
            jobs = _count(cluster, screen)
        with stages("check against tr | grep | sort | uniq -c on this machine"):
            counted = _check(books, text, screen)
    _show(cluster, jobs, counted, screen)


def _build(options: Options, screen: console.Console) -> None:
    """Build what the later stages need, once it is known that the machine can run the cluster."""
    provider = providers.choose(options.provider, name=options.name, context=options.context)
    screen.print(f"  provider: {provider.name}", highlight=False)
    if problems := provider.missing(_spec(options)):
        raise errors.ClusterError("\n".join(problems))
    tools.ensure((*catalogue.for_provider(provider.name, nodes=options.nodes, kwok_nodes=0), *catalogue.WORKLOADS))
    images.ensure(IMAGES)


def _corpus(options: Options, screen: console.Console) -> corpus.Corpus:
    def say(line: str) -> None:
        screen.print(f"  {line}", highlight=False)

    text = corpus.make(min_bytes=options.min_mb * 10**6, progress=say)
    packages = ", ".join(
        f"{package_text.package} ({package_text.size_bytes / 1e6:.0f} MB)" for package_text in text.texts
    )
    say(f"{text.size_bytes / 1e6:.0f} MB from {packages}")
    return text


def _cluster(options: Options) -> Cluster:
    provider = providers.choose(options.provider, name=options.name, context=options.context)
    return provider.find(options.name) or provider.up(_spec(options))


def _spec(options: Options) -> ClusterSpec:
    return ClusterSpec(name=options.name, nodes=options.nodes)


def _prepare(cluster: Cluster, books: S3Store, text: corpus.Corpus, screen: console.Console) -> None:
    """Upload the text to the bucket, and delete what an earlier demo left."""
    for count in WORD_COUNTS:
        cluster.run("delete", count.kind.plural, count.name, "-n", NAMESPACE, "--ignore-not-found", "--wait")
        if removed := remove(books, count.name):
            screen.print(f"  removed the output of an earlier demo ({removed} objects)", highlight=False)
    sent = upload(books, {f"{TEXTS}/{path.name}": path for path in text.files})
    if sent < len(text.files):
        screen.print(f"  {len(text.files) - sent} files were there already", highlight=False)


def _count(cluster: Cluster, screen: console.Console) -> list[model.Job]:
    """Apply all word counts, so that they run at the same time, and wait until each has ended."""
    kubeconfig = str(cluster.kubeconfig)
    changing.enable_spark(namespace=NAMESPACE, context=cluster.context, kubeconfig=kubeconfig)
    for count in WORD_COUNTS:
        screen.print(cluster.run("apply", "-n", NAMESPACE, "-f", str(count.example)).strip(), highlight=False)
    return [_follow(cluster, count, screen) for count in WORD_COUNTS]


def _follow(cluster: Cluster, count: WordCount, screen: console.Console) -> model.Job:
    job = reading.follow(_gateway(cluster), count.kind, count.name, screen, timeout_s=JOB_TIMEOUT_S)
    answer = explain.explain_job(job, [], None, now_s=time.time())
    screen.print(f"  {answer.headline}", highlight=False, soft_wrap=True)
    if job.phase != "Succeeded":
        raise DemoError(f"{answer.headline}. Its own errors: kubectl boathouse logs {count.title} -n {NAMESPACE}")
    return job


def _gateway(cluster: Cluster) -> gateway.Gateway:
    return gateway.Gateway.connect(kubeconfig=str(cluster.kubeconfig), context=cluster.context, namespace=NAMESPACE)


def _check(books: S3Store, text: corpus.Corpus, screen: console.Console) -> Path:
    """Compare all outputs with the reference's, byte by byte; return the reference's."""
    expected = BUILD / "expected.txt"
    BUILD.mkdir(parents=True, exist_ok=True)
    word_count(text.files, expected)
    words = sum(1 for _ in expected.open("rb"))
    for count in WORD_COUNTS:
        keys = sorted(key for key in sizes(books, count.name) if "/part-" in key)
        parts = download(books, keys, BUILD / count.name)
        counted = BUILD / f"{count.name}.txt"
        job_output(parts, counted)
        if not filecmp.cmp(expected, counted, shallow=False):
            raise DemoError(
                f"the counts of {count.title} differ from the reference's: compare {counted} with {expected}"
            )
        screen.print(f"  {count.title}: equal, {words} different words in {len(parts)} parts", highlight=False)
    return expected


def _show(cluster: Cluster, jobs: Sequence[model.Job], counted: Path, screen: console.Console) -> None:
    screen.print("\nThe most frequent words:")
    for frequency, word in most_frequent(counted.read_text().splitlines()):
        screen.print(f"  {frequency:>10,}  {word}", highlight=False)
    access = _gateway(cluster)
    pods = [kinds.drawn_pods(access, count.kind, job) for count, job in zip(WORD_COUNTS, jobs, strict=True)]
    lines = [
        count.kind.timeline(job, own, now_s=time.time())
        for count, job, own in zip(WORD_COUNTS, jobs, pods, strict=True)
    ]
    screen.print()
    screen.print(tables.seconds(picture.shares(*lines)))
    page = BUILD / "timeline.html"
    page.write_text(picture.to_html(*lines))
    screen.print(f"\nTimeline of {sum(map(len, pods))} pods: {page}\n", highlight=False, soft_wrap=True)


def most_frequent(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the words with the highest counts in lines as `uniq -c` prints them; equal counts by word."""
    pairs = ((int(count), word) for count, word in (line.split() for line in lines))
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1]))[:MOST_FREQUENT]


def _farewell(cluster: Cluster, options: Options, screen: console.Console) -> None:
    if not options.keep:
        screen.print("The cluster is down again (KEEP=0).")
        return
    lines = (
        "The cluster is still up. To look around:",
        f"  export KUBECONFIG={cluster.kubeconfig}",
        f"  export PATH={paths.REPOSITORY / '.venv/bin'}:{cluster.kubectl.parent}:$PATH",
        f"  kubectl get boathouse,pods -n {NAMESPACE}",
        f"  kubectl boathouse explain {WORD_COUNTS[-1].title} -n {NAMESPACE}",
        f"  kubectl boathouse timeline {' '.join(count.title for count in WORD_COUNTS)} -n {NAMESPACE} -o timeline.svg",
        f"To remove it: make cluster-down CLUSTER={options.name}",
    )
    for line in lines:
        screen.print(line, highlight=False, soft_wrap=True)


def parse(arguments: Sequence[str] | None) -> Options:
    """Read the flags; their defaults come from the environment, so that `make demo KEEP=0` works."""
    default = ClusterSpec()
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.demo", description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--provider", default="auto", choices=providers.NAMES, help="provider of the cluster (default: %(default)s)"
    )
    parser.add_argument("--context", help="kubeconfig context, for provider existing")
    parser.add_argument("--name", default=default.name, help="name of the cluster (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=default.nodes, help="number of real nodes (default: %(default)s)")
    parser.add_argument(
        "--min-mb",
        type=int,
        default=corpus.DEFAULT_MIN_BYTES // 10**6,
        help="minimum size of the text in MB (default: %(default)s)",
    )
    parser.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        default=os.environ.get("KEEP", "1") != "0",
        help="keep the cluster at the end (environment: KEEP=0 or 1)",
    )
    return Options(**vars(parser.parse_args(arguments)))


def main() -> int:
    """Run the demo from the command line."""
    return run(parse(None), console.Console())


if __name__ == "__main__":
    sys.exit(main())
