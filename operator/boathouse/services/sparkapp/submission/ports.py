"""The ports of a driver. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final

DRIVER: Final = 7078
BLOCK_MANAGER: Final = 7079
UI: Final = 4040
_MOST: Final = 2**16 - 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of a driver's container; 0 is one that Spark chooses when it starts.

    Attributes:
        ui: Of the UI and the REST interface.
    """

    driver: int
    block_manager: int
    ui: int


def of(conf: Mapping[str, str]) -> Ports:
    """Return the ports that the properties say.

    Raises:
        ValueError: One of them is not a port.
    """
    block_manager = _port(conf, "spark.blockManager.port", BLOCK_MANAGER)
    return Ports(
        driver=_port(conf, "spark.driver.port", DRIVER),
        block_manager=_port(conf, "spark.driver.blockManager.port", block_manager),
        ui=_port(conf, "spark.ui.port", UI),
    )


def _port(conf: Mapping[str, str], key: str, default: int) -> int:
    text = conf.get(key, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= _MOST):
        raise ValueError(f'{key} is "{text[:64]}", which is not a port: correct it')
    return int(text)
