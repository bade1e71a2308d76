"""What decides whether a tool or an image is built again, and what a build is told."""

import json
import platform
import re
import tarfile

import pytest
import yaml

from boathouse_e2e import (
    archive,
    builders,
    catalogue,
    dockerfiles,
    gotoolchain,
    images,
    install,
    kubernetes_module,
    paths,
    tools,
)
from boathouse_e2e.errors import ClusterError

DOCKERFILE = """ARG BASE
FROM ${BASE} AS task
COPY pyproject.toml \\
     README.md ./
COPY --chown=1:1 operator operator
COPY --from=task /opt /opt
"""


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "operator").mkdir()
    for name in ("Dockerfile", "pyproject.toml", "README.md", "operator/a.py", "notes.txt"):
        (tmp_path / name).write_text(DOCKERFILE if name == "Dockerfile" else name)
    return tmp_path


def test_what_a_dockerfile_copies_is_known_without_other_stages():
    assert dockerfiles.copied(DOCKERFILE) == ["pyproject.toml", "README.md", "operator"]


def test_a_dockerfile_names_the_image_that_it_builds_on():
    assert dockerfiles.base_of("# comment\nARG BASE=python:3.11\nFROM ${BASE}\n") == "python:3.11"
    with pytest.raises(ClusterError, match="ARG BASE"):
        dockerfiles.base_of(DOCKERFILE)


@pytest.mark.parametrize("name", ["Dockerfile", "pyproject.toml", "operator/a.py"])
def test_an_image_is_built_again_when_an_input_changes(repository, name):
    before = dockerfiles.inputs_hash(repository)
    (repository / name).write_text((repository / name).read_text() + "\n# changed")
    assert dockerfiles.inputs_hash(repository) != before


def test_an_image_is_not_built_again_for_a_file_that_it_does_not_hold(repository):
    before = dockerfiles.inputs_hash(repository)
    (repository / "notes.txt").write_text("changed")
    (repository / "operator" / "__pycache__").mkdir()
    (repository / "operator" / "__pycache__" / "a.pyc").write_text("compiled")
    assert dockerfiles.inputs_hash(repository) == before


def test_an_image_is_built_again_when_its_base_changes(repository):
    python, spark = (
        dockerfiles.inputs_hash(repository, base) for base in (dockerfiles.PYTHON_BASE, dockerfiles.SPARK_BASE)
    )
    assert python != spark


@pytest.mark.parametrize("name", images.RECIPES)
def test_every_image_has_a_dockerfile_with_its_stage_and_all_that_it_copies(name):
    recipe = images.RECIPES[name]
    folder = recipe.folder(paths.REPOSITORY)
    text = (folder / "Dockerfile").read_text()
    assert f" AS {recipe.target}\n" in text
    assert [source for source in dockerfiles.copied(text) if not list(folder.glob(source))] == []


def test_an_image_of_one_program_is_an_archive_that_names_itself(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    target = tmp_path / "image.tar"
    archive.write_programs(target, archive.Image(name="localhost/p:dev", entrypoint=("/p",)), {"/p": program})
    with tarfile.open(target) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json"))
        config = json.load(tar.extractfile(manifest["Config"]))
    assert manifest["RepoTags"] == ["localhost/p:dev"]
    assert config["architecture"] == archive.ARCHITECTURES[platform.machine()]
    assert len(config["rootfs"]["diff_ids"]) == len(manifest["Layers"]) == len(config["history"])


@pytest.mark.parametrize("release", catalogue.RELEASES)
def test_every_tool_has_a_pinned_module_and_a_sum(release):
    for tool in (tool.of(release) for tool in catalogue.TOOLS_BY_NAME.values()):
        assert tool.version()
        assert (tool.folder / "go.sum").exists() == ("require" in (tool.folder / "go.mod").read_text())


@pytest.mark.parametrize("release", catalogue.RELEASES)
def test_the_version_that_clients_read_is_the_pinned_one(release):
    kubelet = catalogue.TOOLS_BY_NAME["kubelet"].of(release)
    assert kubelet.version().startswith(f"v{release}.")
    assert f"gitVersion={kubelet.version()}" in kubelet.ldflags()
    assert f"gitMinor={release.partition('.')[2]}" in kubelet.ldflags().split()[-1]


def test_releases_of_kubernetes_have_binaries_of_their_own_and_share_the_rest():
    found = {
        name: {tools.path_of(tool.of(release)) for release in catalogue.RELEASES}
        for name, tool in catalogue.TOOLS_BY_NAME.items()
    }
    own = {name for name, paths_ in found.items() if len(paths_) > 1}
    assert own == {name for name, tool in catalogue.TOOLS_BY_NAME.items() if tool.is_kubernetes}
    assert {"kube-apiserver", "kubelet"} <= own


def test_the_oldest_release_is_the_charts_minimum():
    chart = yaml.safe_load((install.CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={min(catalogue.RELEASES)}.0-0"


@pytest.mark.parametrize("release", catalogue.RELEASES)
def test_a_go_module_of_kubernetes_is_what_the_command_writes(release):
    """Up to what `go mod tidy` adds."""
    tool = catalogue.TOOLS_BY_NAME["kubelet"].of(release)
    pinned = (tool.folder / "go.mod").read_text()
    staging = re.findall(r"^\t(k8s\.io/\S+) => ", pinned, re.MULTILINE)
    replaced = [{"Old": {"Path": path}, "New": {"Path": f"./staging/src/{path}"}} for path in staging]
    upstream = {"Go": re.search(r"^go (\S+)", pinned, re.MULTILINE)[1], "Replace": replaced}
    packages = [one.package for one in catalogue.TOOLS_BY_NAME.values() if one.is_kubernetes]
    head, _, rest = kubernetes_module.text(tool.family, tool.version(), upstream, sorted(packages)).partition("require")
    assert pinned.startswith(head)
    assert pinned.endswith(rest.partition("\n\n")[2])


def test_a_control_plane_alone_needs_no_node_tools():
    assert "kubelet" not in catalogue.for_provider("local", nodes=0, kwok_nodes=5)
    assert "kwok" in catalogue.for_provider("local", nodes=0, kwok_nodes=5)
    assert catalogue.for_provider("existing", nodes=2, kwok_nodes=0) == ("kubectl",)


def test_binaries_of_envtest_are_used_where_its_variable_names_them(tmp_path):
    (tmp_path / "etcd").touch()
    assert tools.from_assets({tools.ASSETS_VARIABLE: str(tmp_path)}) == {"etcd": tmp_path / "etcd"}
    assert tools.from_assets({}) == {}


def test_an_api_server_of_envtest_is_not_used_for_a_release_that_is_selected(tmp_path):
    for name in tools.FROM_ASSETS:
        (tmp_path / name).touch()
    assets = {tools.ASSETS_VARIABLE: str(tmp_path)}
    assert set(tools.from_assets(assets)) == {"etcd", "kube-apiserver"}
    assert set(tools.from_assets(assets | {catalogue.RELEASE_VARIABLE: "1.35"})) == {"etcd"}


@pytest.mark.parametrize(
    ("text", "version"), [("go version go1.26.8 linux/amd64", (1, 26, 8)), ("1.26", (1, 26)), ("none", ())]
)
def test_gos_version_is_read_from_what_it_says(text, version):
    assert gotoolchain.parse_version(text) == version


def test_an_old_go_on_the_path_is_not_taken(monkeypatch, tmp_path):
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go version go1.19.1 linux/amd64\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    installed = tmp_path / "installed"
    monkeypatch.setattr(gotoolchain, "_installed", lambda _: installed)
    assert gotoolchain.find_go().command == installed
    assert gotoolchain.find_go().own_build_cache is not None


def test_pips_settings_reach_the_build_without_this_machines_paths():
    listing = "global.index-url='https://index.example/simple'\n:env:.find-links='/somewhere'\nglobal.cert='/ca.pem'\n"
    conf = builders.pip_conf(builders.parse_pip_config(listing), own_authorities=True)
    assert conf == "[global]\nindex-url = https://index.example/simple\ncert = /run/secrets/ca.crt\n"


def test_pips_environment_wins_over_its_files():
    assert builders.parse_pip_config("global.proxy='a'\n:env:.proxy='b'\n") == {"proxy": "b"}


def test_an_image_that_does_not_exist_is_named():
    with pytest.raises(ClusterError, match=r"localhost/nothing"):
        images.ensure(["localhost/nothing"])
