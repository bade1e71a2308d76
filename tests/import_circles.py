"""A contract of import-linter, for `make lint`: no circles among single modules, whatever folders they are in."""

from __future__ import annotations

import graphlib
from typing import TYPE_CHECKING, ClassVar

from importlinter import Contract, ContractCheck, fields, output
from typing_extensions import override

if TYPE_CHECKING:
    from grimp import ImportGraph


class NoCircles(Contract):
    """`acyclic_siblings` also refuses folders that import each other, as the scheduler's parts do for their types."""

    type_name: ClassVar[str] = "no_circles"
    package = fields.StringField()

    @override
    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Sort the modules by their imports, those for type checkers included."""
        package = str(self.package)
        modules = {package, *graph.find_descendants(package)}
        imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
        try:
            graphlib.TopologicalSorter(imports).prepare()
        except graphlib.CycleError as error:
            return ContractCheck(kept=False, metadata={"circle": error.args[1]})
        return ContractCheck(kept=True)

    @override
    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print a circle, each module imported by the next."""
        output.print_error(" <- ".join(check.metadata["circle"]))
