"""A schedule as the file that a crawler takes, and the command that applies it."""

from recrawl.targets.exporting import TARGETS, ExportWarning, export

__all__ = ["TARGETS", "ExportWarning", "export"]
