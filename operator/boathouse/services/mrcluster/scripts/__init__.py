"""Shell scripts of the containers, which get them in the cluster's ConfigMap. They need `sh` and a JRE of the image."""

from importlib import resources
from typing import Final

NAMES: Final = ("start.sh", "refresh.sh", "client.sh")
SCRIPTS: Final = {name: resources.files(__name__).joinpath(name).read_text(encoding="utf-8") for name in NAMES}
"""The texts of the scripts by name."""
