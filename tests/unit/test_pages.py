"""The commands and manifests of the pages for users are understood; contract and end-to-end tests run them."""

import itertools
import re

import pytest
import typer
import yaml
from typer.testing import CliRunner

from boathouse.resources.mrcluster.status import MRCLUSTER
from boathouse.resources.mrjob.status import MRJOB
from boathouse.resources.sparkapp.status import SPARKAPP
from boathouse_cli import commands, kinds
from boathouse_cli.conversion import admission
from boathouse_e2e import pages, paths
from tests.contract.test_crd import job
from tests.contract.test_sparkapp_crd import application

COMMAND_LINE = typer.main.get_command(commands.app)
RESOURCES = {resource.kind: resource for resource in (SPARKAPP, MRJOB, MRCLUSTER)}
EXAMPLES = sorted((paths.REPOSITORY / "examples").rglob("*.yaml"))
PUBLISHED = "oci://ghcr.io/OWNER/"
"""Where a release has its charts."""
ELLIPSIS = "..."
"""Stands for words that the reader chooses."""


def lines():
    """The command lines of all pages and examples, each once."""
    texts = map(pages.text_of, pages.PAGES)
    found = [line for text in texts for line in (*pages.console_lines(text), *pages.inline_lines(text))]
    found += [line for example in EXAMPLES for line in pages.comment_lines(example)]
    return list(dict.fromkeys(found))


def words_of(*programs):
    """The words after a program, of each command that begins with it."""
    found = {
        tuple(words[len(program) :])
        for words in pages.commands(lines())
        for program in programs
        if tuple(words[: len(program)]) == program
    }
    return sorted(found)


OURS = words_of(("kubectl", "boathouse"), ("boathouse",))
SUBMITTED = [words for words in OURS if words[0] == "submit" and words[1:] and words[-1] != ELLIPSIS]


def understood(words):
    """A command, and its parameters by name as the command line reads them."""
    command = COMMAND_LINE.commands[words[0]]
    return command, command.make_context(words[0], list(words[1:]), parent=typer.Context(COMMAND_LINE)).params


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    """Where the pages expect their reader to be."""
    monkeypatch.chdir(paths.REPOSITORY)


def test_a_command_that_is_named_exists():
    assert {words[0] for words in OURS if not words[0].startswith("--")} <= COMMAND_LINE.commands.keys()


@pytest.mark.parametrize("words", [words for words in OURS if words[1:]], ids=" ".join)
def test_a_command_with_its_arguments_is_understood(words):
    command, given = understood(words)
    for parameter in command.params:
        if parameter.metavar == "KIND/NAME":
            assert kinds.target(given[parameter.name])


def test_the_options_before_any_command_are_known():
    known = {name for parameter in COMMAND_LINE.params for name in parameter.opts} | {"--help"}
    given = {words[0] for words in OURS if words[0].startswith("--")}
    assert given
    assert given <= known


@pytest.mark.parametrize("words", SUBMITTED, ids=" ".join)
def test_what_is_submitted_is_converted_without_loss(words):
    found = CliRunner().invoke(commands.app, [words[0], "--dry-run", "--strict", *words[1:]])
    assert found.exit_code == 0, found.output
    manifest = list(yaml.safe_load_all(found.stdout))[-1]
    assert admission.problems(RESOURCES[manifest["kind"]], manifest) == []


def test_a_file_that_kubectl_applies_is_an_example_or_on_a_page():
    used = {
        words[words.index("-f") + 1]
        for words in words_of(("kubectl",))
        if {"apply", "delete"} & {*words} and "-f" in words
    }
    shown = {
        f"{manifest['metadata']['name']}.yaml"
        for page in pages.PAGES
        for manifest in shown_by(page)
        if "metadata" in manifest
    }
    examples = {str(example.relative_to(paths.REPOSITORY)) for example in EXAMPLES}
    assert len(used) > 5
    assert used <= {*shown, *examples, "-"}


@pytest.mark.parametrize("words", words_of(("helm", "install"), ("helm", "upgrade")), ids=" ".join)
def test_a_chart_that_helm_installs_is_ours_and_has_the_values_that_are_set(words):
    chart = paths.REPOSITORY / words[1].removeprefix(PUBLISHED)
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for setting in (given for option, given in itertools.pairwise(words) if option == "--set"):
        found = values
        for part in setting.partition("=")[0].split("."):
            found = found[part]


@pytest.mark.parametrize("words", words_of(("docker", "build")), ids=" ".join)
def test_an_image_is_built_from_a_target_of_a_dockerfile(words):
    recipe = (paths.REPOSITORY / words[-1] / "Dockerfile").read_text()
    target = words[words.index("--target") + 1] if "--target" in words else words[-1].rpartition("/")[2]
    assert re.search(rf"^FROM \S+ AS {target}$", recipe, re.MULTILINE)
    assert re.fullmatch(rf"[a-z.]+/boathouse-{target}:\d+\.\d+\.\d+", image_of(words))


def test_an_image_that_goes_into_a_cluster_of_kind_is_built_before():
    given = {image for words in words_of(("kind", "load", "docker-image")) for image in words}
    assert given
    assert given <= {image_of(words) for words in words_of(("docker", "build"))}


def test_what_is_made_is_a_target_of_make():
    targets = re.findall(r"^([a-z][-a-z0-9]*):", (paths.REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert {words[0] for words in words_of(("make",))} <= set(targets)


def test_there_are_only_programs_that_a_test_knows():
    known = {"boathouse", "docker", "hdfs", "helm", "kind", "kubectl", "make", "pipx"}
    assert {words[0] for words in pages.commands(lines())} == known


def image_of(words):
    return words[words.index("-t") + 1]


def shown_by(page):
    """What the blocks of YAML of a page show, those of other objects left out."""
    found = pages.manifests(pages.text_of(page))
    return [manifest for manifest in found if manifest.get("kind", "MRJob") in RESOURCES]


def completed(page, shown):
    """An object with the fields that a page shows, and with others that it needs."""
    fields = shown.get("spec", shown)
    kind = shown.get("kind") or ("SparkApp" if "sparkapp" in page else "MRJob")
    if "metadata" in shown:
        return kind, shown
    if "clusterRef" in fields:
        fields = {"mapper": {"command": ["cat"]}, **fields}
        return kind, {"metadata": {"name": "shown"}, "spec": fields}
    base = (job() if kind == "MRJob" else application())["spec"]
    if "steps" in fields:
        base = {name: value for name, value in base.items() if name not in {"mapper", "reducer"}}
    return kind, {"metadata": {"name": "shown"}, "spec": {**base, **fields}}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        pytest.param(page, manifest, id=f"{page}-{n}")
        for page in pages.PAGES
        for n, manifest in enumerate(shown_by(page))
    ],
)
def test_a_manifest_of_a_page_is_accepted(page, shown):
    kind, manifest = completed(page, shown)
    assert admission.problems(RESOURCES[kind], manifest) == []


def test_the_job_of_the_readme_is_that_of_its_example():
    (shown,) = shown_by("README.md")
    first = (paths.REPOSITORY / "examples" / "first-mrjob.yaml").read_text()
    (example,) = [manifest for manifest in yaml.safe_load_all(first) if manifest["kind"] == "MRJob"]
    for stage in ("mapper", "reducer"):
        del example["spec"][stage]["resources"]
    assert shown == example
