"""A real text to count words in, made from documentation and dictionaries that Debian packages.

`python -m boathouse_e2e.corpus` downloads packages (it installs nothing), turns their HTML into text and leaves one
`.txt` file for each package, with the package's copyright file beside it and a manifest. Packages are taken in the
order of `CANDIDATES` until there is enough text. A package that has HTML and its plain sources gives the HTML alone,
so that no text comes twice.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selectolax.lexbor import LexborHTMLParser

from boathouse_e2e import errors, paths, shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CANDIDATES: Final = (
    r"dict-gcide",  # Webster's dictionary of 1913 and later additions
    r"dict-wn",  # WordNet
    r"dict-foldoc",
    r"dict-jargon",
    r"anarchism",  # a book
    r"debian-handbook",
    r"python3\.\d+-doc",
    r"postgresql-doc-\d+",
    r"linux-doc-\d+\.\d+",
    r"libstdc\+\+-\d+-doc",
    r"openjdk-\d+-doc",
    r"rust-doc",
    r"scala-doc",
    r"ghc-doc",
)
"""Patterns of package names, the best prose first; of several that match one pattern the highest version counts."""

DEFAULT_MIN_BYTES: Final = 200_000_000
LAYOUT: Final = 1
"""Part of the cache's name: grows when the same package would give another text."""

_HTML: Final = frozenset({"html", "htm", "xhtml"})
_PLAIN: Final = frozenset({"txt", "rst", "md", "dict"})
_COMPRESSED: Final = (".gz", ".dz")


class CorpusError(errors.ClusterError):
    """The text cannot be made here; the message says what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text of one package."""

    package: str
    version: str
    file: str
    size_bytes: int
    sha256: str
    copyright_file: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Files of text in one folder."""

    folder: Path
    texts: tuple[Text, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all texts together."""
        return sum(text.size_bytes for text in self.texts)

    @property
    def files(self) -> tuple[Path, ...]:
        """The texts' paths, in the order they were taken."""
        return tuple(self.folder / text.file for text in self.texts)

    @property
    def digest(self) -> str:
        """Names the content: equal for equal texts."""
        return hashlib.sha256("".join(sorted(text.sha256 for text in self.texts)).encode()).hexdigest()


def default_folder() -> Path:
    """Return where texts are kept between runs: `$XDG_CACHE_HOME/boathouse/corpus` or the same under `~/.cache`."""
    return paths.cache_folder() / "corpus"


def make(
    *,
    min_bytes: int = DEFAULT_MIN_BYTES,
    folder: Path | None = None,
    refresh: bool = False,
    progress: Callable[[str], None] = print,
) -> Corpus:
    """Make the text, or take what earlier runs made.

    Args:
        min_bytes: Packages are added until their text together is at least this long.
        folder: Where to keep it, `default_folder` if None.
        refresh: Ask apt for the packages' versions of today, also where the texts kept suffice.
        progress: Hears one line for each package.

    Returns:
        The texts; their manifest is `manifest.json` in the folder.

    Raises:
        CorpusError: apt is missing, or its packages hold less text than asked for.
    """
    folder = folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    kept = _read_manifest(folder)
    texts = _enough(kept.values(), min_bytes)
    if refresh or texts is None:
        offered = (kept.get(package) or _take(*package, folder, progress) for package in _available())
        texts = _enough((text for text in offered if text is not None), min_bytes)
    if texts is None:
        raise CorpusError(
            f"the packages found hold less than {min_bytes / 1e6:.0f} MB of text: "
            "check that apt's sources contain Debian's main, or ask for less with --min-mb"
        )
    corpus = Corpus(folder=folder, texts=texts)
    _write_manifest(corpus, kept)
    return corpus


def _enough(texts: Iterable[Text], min_bytes: int) -> tuple[Text, ...] | None:
    """Return the first texts that are long enough together; None if all are too short."""
    taken: list[Text] = []
    total_bytes = 0
    for text in texts:
        taken.append(text)
        total_bytes += text.size_bytes
        if total_bytes >= min_bytes:
            return tuple(taken)
    return None


def _available() -> Iterator[tuple[str, str]]:
    """Yield the candidates that apt offers, with their versions."""
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise CorpusError(
                f"{tool} is not here: the text is made from Debian packages. Run this on Debian or Ubuntu, or copy "
                f"{default_folder()} from such a machine"
            )
    names = _run("apt-cache", "pkgnames").split()
    if not any(re.fullmatch(CANDIDATES[0], name) for name in names):
        _update_lists()
        names = _run("apt-cache", "pkgnames").split()
    for pattern in CANDIDATES:
        matching = [name for name in names if re.fullmatch(pattern, name)]
        for name in sorted(matching, key=_natural, reverse=True):
            version = _candidate_version(name)
            if version is not None:
                yield name, version
                break


def _update_lists() -> None:
    if os.geteuid() != 0:
        raise CorpusError("apt knows no documentation packages yet: run `sudo apt-get update` and try again")
    _run("apt-get", "update", "-qq")


def _candidate_version(package: str) -> str | None:
    found = re.search(r"^  Candidate: (\S+)$", _run("apt-cache", "policy", package), re.MULTILINE)
    return None if found is None or found[1] == "(none)" else found[1]


def _natural(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))


def _take(package: str, version: str, folder: Path, progress: Callable[[str], None]) -> Text | None:
    """Download one package and keep its text; None if it has none."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch:
        root = Path(scratch) / "root"
        _unpack(_download(f"{package}={version}", Path(scratch)), root)
        name = f"{package}_{version.replace(':', '%3a')}"
        partial = Path(scratch) / "text"
        size_bytes, sha256 = _write_text(root, partial)
        if size_bytes == 0:
            return None
        partial.rename(folder / f"{name}.txt")
        copyright_file = _keep_copyright(root, package, folder / f"{name}.copyright")
    progress(f"{package} {version}: {size_bytes / 1e6:.1f} MB of text")
    return Text(
        package=package,
        version=version,
        file=f"{name}.txt",
        size_bytes=size_bytes,
        sha256=sha256,
        copyright_file=copyright_file,
    )


def _keep_copyright(root: Path, package: str, target: Path) -> str:
    documents = root / "usr/share/doc" / package
    if documents.is_symlink():  # Debian lets packages of one source share the copyright file of a small one
        package = documents.readlink().name
        root = root.parent / package
        _unpack(_download(package, root.parent), root)
    shutil.copyfile(root / "usr/share/doc" / package / "copyright", target)
    return target.name


def _download(package: str, folder: Path) -> Path:
    _run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=", package, cwd=folder)
    return next(folder.glob(f"{package.partition('=')[0]}_*.deb"))


def _unpack(archive: Path, root: Path) -> None:
    _run("dpkg-deb", "-x", str(archive), str(root))


def _write_text(root: Path, target: Path) -> tuple[int, str]:
    """Write all documents below root as text; return the size in bytes and the SHA-256."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for path in _documents(root):
            text = _plain_text(path)
            digest.update(text)
            out.write(text)
        return out.tell(), digest.hexdigest()


def _documents(root: Path) -> list[Path]:
    """Return the package's documents: its HTML files, or where it has none its plain ones."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    pages = [path for path in files if _kind(path) in _HTML]
    return pages or [path for path in files if _kind(path) in _PLAIN]


def _kind(path: Path) -> str:
    name = path.stem if path.suffix in _COMPRESSED else path.name
    return name.rpartition(".")[2].lower()


def _plain_text(path: Path) -> bytes:
    """Return one document without markup, empty lines and margins; each of its lines ends with a newline."""
    data = gzip.decompress(path.read_bytes()) if path.suffix in _COMPRESSED else path.read_bytes()
    if _kind(path) in _HTML:
        page = LexborHTMLParser(data)
        page.strip_tags(["script", "style", "nav"])
        data = page.body.text(separator=" ").encode(errors="replace") if page.body else b""
    lines = [line for line in map(bytes.strip, data.splitlines()) if line]
    return b"".join(line + b"\n" for line in lines)


def _read_manifest(folder: Path) -> dict[tuple[str, str], Text]:
    """Texts of earlier runs that are still there, by package and version."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except FileNotFoundError:
        return {}
    if manifest["layout"] != LAYOUT:
        return {}
    texts = [Text(**entry) for entry in manifest["texts"]]
    return {
        (text.package, text.version): text
        for text in texts
        if (folder / text.file).is_file() and (folder / text.file).stat().st_size == text.size_bytes
    }


def _write_manifest(corpus: Corpus, kept: dict[tuple[str, str], Text]) -> None:
    known = {(text.package, text.version): text for text in corpus.texts} | kept
    manifest = {"layout": LAYOUT, "texts": [dataclasses.asdict(text) for text in known.values()]}
    partial = corpus.folder / ".manifest.json"
    partial.write_text(json.dumps(manifest, indent=2) + "\n")
    partial.rename(corpus.folder / "manifest.json")


def _run(*command: str, cwd: Path | None = None) -> str:
    """Run a Debian tool and return what it prints."""
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return shell.run(*command, cwd=cwd, env=environment)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the text and say what it is made of."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.corpus", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--min-mb", type=int, default=DEFAULT_MIN_BYTES // 10**6, help="how much text, at least")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where to keep it (%(default)s)")
    parser.add_argument("--refresh", action="store_true", help="take the packages' versions of today")
    options = parser.parse_args(arguments)
    try:
        corpus = make(min_bytes=options.min_mb * 10**6, folder=options.folder, refresh=options.refresh)
    except errors.ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for text in corpus.texts:
        print(f"  {text.size_bytes / 1e6:7.1f} MB  {text.package} {text.version} (licences: {text.copyright_file})")
    print(f"{corpus.size_bytes / 1e6:.1f} MB in {len(corpus.texts)} files in {corpus.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
