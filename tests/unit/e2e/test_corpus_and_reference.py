import gzip
import json
import re
from collections import Counter

import pytest

from boathouse_e2e import corpus, demo


def test_html_becomes_text_without_markup_and_scripts(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<html><head><script>var x</script></head><body><p>one &amp; two</p>\n\n<p>three</p></body></html>")
    (target := tmp_path / "out").touch()
    corpus._write_text(tmp_path, target)
    assert re.sub(r"\s+", " ", target.read_text()).strip() == "one & two three"


def test_plain_sources_beside_html_are_left_out(tmp_path):
    (tmp_path / "page.html").write_text("<p>text</p>")
    (tmp_path / "page.txt").write_text("text")
    assert [path.name for path in corpus._documents(tmp_path)] == ["page.html"]


def test_compressed_dictionaries_are_read(tmp_path):
    (tmp_path / "words.dict.dz").write_bytes(gzip.compress(b"  aardvark\n\n zebra \n"))
    (path,) = corpus._documents(tmp_path)
    assert corpus._plain_text(path) == b"aardvark\nzebra\n"


def write_manifest(folder, *texts):
    for name, size in texts:
        (folder / f"{name}.txt").write_bytes(b"x" * size)
    entries = [
        {"package": name, "version": "1", "file": f"{name}.txt", "size_bytes": size}
        | {"sha256": name, "copyright_file": f"{name}.copyright"}
        for name, size in texts
    ]
    (folder / "manifest.json").write_text(json.dumps({"layout": corpus.LAYOUT, "texts": entries}))


def test_texts_of_an_earlier_run_are_taken_when_they_suffice(tmp_path):
    write_manifest(tmp_path, ("a", 60), ("b", 60), ("c", 60))
    made = corpus.make(min_bytes=100, folder=tmp_path)
    assert [text.package for text in made.texts] == ["a", "b"]
    assert made.size_bytes == 120


def test_a_text_that_was_cut_short_is_not_taken(tmp_path):
    write_manifest(tmp_path, ("a", 60))
    (tmp_path / "a.txt").write_bytes(b"x")
    assert corpus._read_manifest(tmp_path) == {}


def test_without_apt_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(corpus.CorpusError, match="Run this on Debian or Ubuntu"):
        corpus.make(min_bytes=1, folder=tmp_path)


def test_the_two_pipelines_meet_in_the_same_form(tmp_path):
    (text := tmp_path / "text").write_text("The cat, the DOG.\nthe_end\n")
    counts = Counter(re.findall("[a-z]+", text.read_text().lower()))
    parts = [tmp_path / "part-0", tmp_path / "part-1"]
    for number, part in enumerate(parts):
        part.write_text("".join(f"{word}\t{counts[word]}\n" for word in sorted(counts)[number::2]))
    demo.word_count([text], tmp_path / "expected")
    demo.job_output(parts, tmp_path / "counted")
    assert (tmp_path / "expected").read_text() == (tmp_path / "counted").read_text()
    assert demo.most_frequent((tmp_path / "counted").read_text().splitlines())[0] == (3, "the")
