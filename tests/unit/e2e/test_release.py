"""What makes a release whole: one version, notes from the changelog, a workflow that calls targets."""

import re

import pytest
import yaml

from boathouse_e2e import publishing, release
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.install import CHART
from boathouse_e2e.paths import REPOSITORY

MAKEFILE = (REPOSITORY / "Makefile").read_text()
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yaml"))
CHANGELOG = """# Changelog

## Unreleased

## 0.2.0 - 2026-12-01

### Added
- A thing.

## 0.1.0
- The first.
"""
FILES = (
    "pyproject.toml",
    "lab/pyproject.toml",
    "lab/README.md",
    "README.md",
    "CHANGELOG.md",
    "docs/getting-started.md",
    "charts/boathouse/Chart.yaml",
)


@pytest.fixture
def checkout(tmp_path):
    """A checkout that is ready for the tag v0.2.0."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (REPOSITORY / name).read_text().replace("/OWNER", "/someone")
        (tmp_path / name).write_text(text.replace(release.version(), "0.2.0"))
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_version_chart_and_images_agree():
    assert release.disagreements(REPOSITORY, tag="") == []


def test_a_checkout_with_one_version_is_ready_for_its_tag(checkout):
    assert release.disagreements(checkout, "v0.2.0") == []


@pytest.mark.parametrize(
    ("file", "text", "changed", "said"),
    [
        ("charts/boathouse/Chart.yaml", "\nversion: 0.2.0", "\nversion: 0.1.9", "Chart.yaml: version is 0.1.9"),
        ("charts/boathouse/Chart.yaml", "appVersion: 0.2.0", "appVersion: 0.1.9", "appVersion is 0.1.9"),
        ("pyproject.toml", 'version = "0.2.0"', 'version = "0.1.0"', "use the tag v0.1.0"),
        ("lab/pyproject.toml", 'version = "0.2.0"', 'version = "0.1.0"', "lab/pyproject.toml: version is 0.1.0"),
        ("lab/pyproject.toml", "]==0.2.0", "]==0.1.0", "lab/pyproject.toml: the dependency on boathouse"),
        ("CHANGELOG.md", "## 0.2.0", "## 0.2.1", "CHANGELOG.md has no section 0.2.0"),
        ("README.md", "ghcr.io/someone", "ghcr.io/OWNER", "README.md has ghcr.io/OWNER"),
    ],
)
def test_what_disagrees_with_the_tag_is_named(checkout, file, text, changed, said):
    path = checkout / file
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, changed))
    assert said in "\n".join(release.disagreements(checkout, "v0.2.0"))


def test_the_images_of_the_documents_have_the_version():
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    tags = {tag for page in pages for tag in re.findall(r"/boathouse-[a-z]+:(\d[\w.]*)", page.read_text())}
    assert tags - {"3.3.5"} == {release.version()}


def test_the_notes_are_the_section_of_the_version():
    assert release.notes(CHANGELOG, "0.2.0") == "### Added\n- A thing.\n"
    assert release.notes(CHANGELOG, "0.1.0") == "- The first.\n"


@pytest.mark.parametrize("section", ["Unreleased", "0.2", "0.3.0"])
def test_a_section_without_text_has_no_notes(section):
    assert release.notes(CHANGELOG, section) is None


def test_the_published_chart_names_the_published_images():
    values = yaml.safe_load(release.published_values((CHART / "values.yaml").read_text(), "ghcr.io/someone"))
    named = [values["image"], *(values[kind]["image"] for kind in ("task", "spark", "hadoop"))]
    assert {image["registry"] for image in named} == {"ghcr.io/someone"}
    assert {image["repository"] for image in named} == {publishing.short_name(name) for name in release.IMAGES}


def test_a_chart_with_an_image_of_another_registry_is_not_published():
    values = (CHART / "values.yaml").read_text().replace("registry: localhost", "registry: elsewhere", 1)
    with pytest.raises(ClusterError, match="4 images, and 3"):
        release.published_values(values, "ghcr.io/someone")


def test_only_the_hosted_workflow_signs_without_a_key():
    with pytest.raises(ClusterError, match="only the release workflow signs"):
        publishing.workflow_identity({})
    workflow = {"GITHUB_REPOSITORY": "o/r", "GITHUB_WORKFLOW_REF": "o/r/.github/workflows/release.yaml@refs/tags/v1"}
    signer = publishing.workflow_identity(workflow)
    assert f"https://github.com/{workflow['GITHUB_WORKFLOW_REF']}" in signer.verify
    assert signer.provenance["runDetails"]["builder"]["id"] in signer.verify


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_only_targets_that_exist(workflow):
    targets = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    called = [word for step in steps for words in re.findall(r"\bmake (.*)", step) for word in words.split()]
    named = {word for word in called if "=" not in word}
    assert named
    assert named <= targets
