"""What the pages for users let kubectl do, on a real API server; end-to-end tests run the first jobs of the pages."""

import os
import pathlib

import pytest
import yaml

from boathouse_e2e import pages, paths, shell

PROGRAMS = """
docker() { :; }
kind() { :; }
helm() { :; }
pipx() { :; }
boathouse() { cat examples/spark/pi.yaml; }
# Commands of Boathouse need its operator, and these of kubectl a kubelet. Of the wait, the condition is set before.
# What is of the whole cluster stays for the other tests.
kubectl() {
  case " $* " in
    *" delete namespace "* | *" delete crd "* | *" boathouse-fence "*) return ;;
    *" boathouse "* | *" exec "* | *" port-forward "*) return ;;
    *" create namespace "*) set -- "$@" --dry-run=client ;;
    *" wait "*) hold "$@" ;;
  esac
  "$KUBECTL" --namespace="$NAMESPACE" "$@"
}
hold() {
  local word condition object
  for word; do
    case $word in
      --for=condition=*) condition=${word##*=} ;;
      */*) object=$word ;;
    esac
  done
  "$KUBECTL" --namespace="$NAMESPACE" patch "$object" --subresource=status --type=merge --patch \
    '{"status": {"conditions": [{"type": "'"$condition"'", "status": "True", "reason": "Held", "message": "",
      "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}'
}
"""


def put_down(text: str, folder: pathlib.Path) -> None:
    """Put what a page shows into a folder, as its reader does, beside the examples."""
    for block in pages.blocks(text, "yaml"):
        named = [manifest["metadata"]["name"] for manifest in yaml.safe_load_all(block) if "metadata" in manifest]
        for name in named[:1]:
            (folder / f"{name}.yaml").write_text(block)
    (folder / "books.txt").write_text("a b\n")
    (folder / "examples").symlink_to(paths.REPOSITORY / "examples")


@pytest.mark.parametrize("page", pages.PAGES)
@pytest.mark.usefixtures("crds")
def test_kubectl_does_what_a_page_says(control_plane, namespace, tmp_path, page):
    text = pages.text_of(page).replace(pages.NAMESPACE, namespace)
    put_down(text, tmp_path)
    variables = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "KUBECTL": str(control_plane.kubectl)}
    script = pages.script(pages.console_lines(text), namespace, PROGRAMS)
    shell.run("bash", "-c", script, cwd=tmp_path, env={**variables, "NAMESPACE": namespace}, timeout_s=100)
