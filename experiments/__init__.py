"""The paper's tables and figures, built anew on the embedded engine.

An experiment says which runs it needs (`Cell`) and what they come to (`Section`). `run`
makes the runs that are not there yet, `write` a folder of them: JSON, CSV, figures and
a report that is one file. ``justitia experiment`` is the command.
"""

from justitia.experiments.catalogue import EXPERIMENTS, names
from justitia.experiments.cells import Cell
from justitia.experiments.errors import ExperimentError
from justitia.experiments.extra import check_installed
from justitia.experiments.folder import contents
from justitia.experiments.pool import run
from justitia.experiments.scope import Scope
from justitia.experiments.section import Experiment, Figure, Section
from justitia.experiments.store import Store
from justitia.experiments.table import Column, Table

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Column",
    "Experiment",
    "ExperimentError",
    "Figure",
    "Scope",
    "Section",
    "Store",
    "Table",
    "check_installed",
    "contents",
    "names",
    "run",
]
