"""The images' recipe, checked without building: what it installs is locked, and it names no registry."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions(name):
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


@pytest.mark.parametrize("target", ["task", "operator"])
def test_each_image_has_its_target(target):
    assert f"base AS {target}" in instructions("FROM")


def test_both_images_run_as_the_same_user_without_rights():
    assert instructions("USER") == ["10001:10001", "10001:10001"]


def test_no_image_is_of_a_named_registry():
    assert not re.search(r"\b[\w-]+\.(io|com|org|dev)/", "\n".join(instructions("FROM") + instructions("ARG")))


def test_everything_that_is_installed_from_the_network_is_hashed():
    assert "PIP_REQUIRE_HASHES=1" in " ".join(instructions("ENV"))
    unhashed = [line for line in instructions("RUN") if "PIP_REQUIRE_HASHES= " in line]
    assert unhashed
    assert all("--no-index" in line for line in unhashed)


@pytest.mark.parametrize("lock", ["build", "task", "operator"])
def test_the_locks_have_hashes_and_no_addresses(lock):
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    pinned = re.findall(r"^[\w.-]+==", text, re.MULTILINE)
    assert pinned
    assert text.count("--hash=sha256:") >= len(pinned)
    assert "://" not in text


def test_the_lock_of_the_build_is_of_the_build_system():
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]


def test_the_context_holds_only_what_is_copied():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [line.split()[:-1] for line in instructions("COPY") if not line.startswith("--from")]
    assert {source.split("/")[0] for sources in copied for source in sources} == kept
