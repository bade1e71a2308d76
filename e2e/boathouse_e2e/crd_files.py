"""`python -m boathouse_e2e.crd_files`: write the CRDs to crds/ and, as templates, into the chart."""

import argparse
import pathlib
import sys
from typing import Any

import yaml
from typing_extensions import override

from boathouse.resources import crd
from boathouse.resources.mrcluster.status import MRCLUSTER
from boathouse.resources.mrjob import status
from boathouse.resources.sparkapp.status import SPARKAPP

ALL = (status.MRJOB, SPARKAPP, MRCLUSTER)
HEADER = "# Generated from operator/boathouse/resources by `make manifests`; edit the models instead.\n"
MAX_SIZE_BYTES = 170_000
"""Well below the 256 KiB of `kubectl apply`'s annotation."""


class _Dumper(yaml.CSafeDumper):
    """YAML dumper, in C, without anchors, which are hard to read and which some readers of CRDs do not support."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def manifests() -> dict[str, str]:
    """Return the text of each file under crds/, by file name."""
    return {_file(resource): HEADER + _yaml(resource.manifest()) for resource in ALL}


def templates() -> dict[str, str]:
    """Return the text of each Helm template, by file name. An uninstall keeps the CRDs, so that no job is lost."""
    result = {}
    for resource in ALL:
        manifest = resource.manifest()
        manifest["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        result[_file(resource)] = f"{HEADER}{{{{- if .Values.crds.install }}}}\n{_yaml(manifest)}{{{{- end }}}}\n"
    return result


def _file(resource: crd.CustomResource) -> str:
    return f"{resource.name.partition('.')[2]}_{resource.plural}.yaml"


def _yaml(manifest: dict[str, Any]) -> str:
    text = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=140, allow_unicode=True)
    if "{{" in text:
        raise ValueError("a description or a rule contains {{, which Helm would parse as a template")
    if len(text) > MAX_SIZE_BYTES:
        raise ValueError(
            f"{manifest['metadata']['name']} has {len(text)} bytes, more than {MAX_SIZE_BYTES}: shorten it"
        )
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with --check report stale files."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.crd_files", description=__doc__)
    parser.add_argument(
        "--root", type=pathlib.Path, default=pathlib.Path(), help="repository folder (default: the current folder)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is missing or stale")
    options = parser.parse_args(arguments)
    files = {options.root / "crds" / name: text for name, text in manifests().items()}
    files |= {options.root / "charts/boathouse/templates/crds" / name: text for name, text in templates().items()}
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path])
        sys.stdout.write(f"{'stale' if options.check else 'wrote'} {path}\n")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
