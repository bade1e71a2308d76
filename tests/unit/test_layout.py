"""What must stay true of the repository itself."""

import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_operator_folder_is_not_a_package_that_would_shadow_the_standard_library():
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not hasattr(importlib.import_module("operator"), "__path__")


def test_no_module_shadows_one_of_the_standard_library_when_started_by_path():
    shadowing = {"queue", "sched", "profile", "resource", "select", "types", "trace", "signal", "statistics"}
    assert [path for path in tracked_files() if path.suffix == ".py" and path.stem in shadowing] == []


def test_no_file_has_the_markers_of_an_unfinished_merge():
    marker = re.compile(rb"^[ \t]*(<{7}|>{7}) ", flags=re.MULTILINE)
    assert [path for path in tracked_files() if marker.search(path.read_bytes())] == []


def test_each_test_that_the_page_about_kube_scheduler_names_is_there():
    page = (ROOT / "docs" / "coming-from-kube-scheduler.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = "".join(path.read_text() for path in tracked_files() if path.match("test_*.py"))
    assert named
    assert sorted(name for name in named if f"def {name}(" not in sources) == []


LOCKS = sorted([*(ROOT / "requirements").glob("*.txt"), *ROOT.glob("images/*/requirements.txt")])


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_locks_are_hashed_and_name_no_index(lock: Path):
    text = lock.read_text()
    pins = re.findall(r"^[a-z0-9][^\s=]*==", text, flags=re.MULTILINE)
    assert len(pins) > 0
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text


def test_no_lock_of_go_modules_replaces_a_module_by_a_folder():
    for module in ROOT.glob("e2e/tools/*/go.mod"):
        assert not re.search(r"=>\s*\.{0,2}/", module.read_text()), module


def test_every_test_and_module_that_a_page_names_exists():
    files = [path.as_posix() for path in tracked_files()]
    sources = [path for path in files if path.startswith((f"{ROOT}/tests", f"{ROOT}/e2e", f"{ROOT}/lab"))]
    known = {Path(path).stem for path in sources}
    known.update(*(re.findall(r"def (test_\w+)", Path(path).read_text()) for path in sources if path.endswith(".py")))
    pages = [page.read_text() for page in ROOT.glob("docs/**/*.md")]
    tests = {name for page in pages for name in re.findall(r"`(test_\w+)`", page)}
    modules = {name for page in pages for name in re.findall(r"`(\w+/\w+\.py)`", page)}
    gone = {name for name in modules if not any(path.endswith(f"/{name}") for path in files)}
    assert (tests - known, gone) == (set(), set())


def test_every_part_of_the_architecture_pages_pictures_exists():
    page = (ROOT / "docs" / "architecture.md").read_text()
    parts = re.findall(r"^  participant \w+ as ([\w/]+)$", page, flags=re.MULTILINE)
    assert len(parts) > 5
    folder = ROOT / "operator" / "boathouse"
    assert [part for part in parts if not (folder / part).is_dir() and not (folder / f"{part}.py").exists()] == []


def test_every_folder_of_the_architecture_page_exists():
    page = (ROOT / "docs" / "architecture.md").read_text()
    operator, policies = (
        page.partition("## Folders")[2].partition("## Import contracts")[0].split("| folder of `policies`")
    )
    named = {
        name: ROOT / "operator" / "boathouse" / name for name in re.findall(r"^\| `([\w/.]+)`", operator, re.MULTILINE)
    }
    named |= {name: ROOT / "policies" / name for name in re.findall(r"^\| `([\w/]+)`", policies, re.MULTILINE)}
    assert len(named) > 20
    assert [name for name, path in named.items() if not path.exists()] == []
