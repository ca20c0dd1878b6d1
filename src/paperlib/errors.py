"""Errors and warnings of the science: what they mean is said where they are raised."""


class DegenerateHistoryWarning(UserWarning):
    """A history without a change, or with nothing but changes, has no interior estimate."""


class ConvergenceError(RuntimeError):
    """A solver gave up; `last` holds its last iterate."""

    def __init__(self, message, last):
        super().__init__(message)
        self.last = last


class DegeneratePriorWarning(UserWarning):
    """A fit of a prior that ended at its bounds."""


class DegenerateSignalsWarning(UserWarning):
    """A page whose history does not say how good its signals are."""


class UnexploredWarning(UserWarning):
    """Pages were given crawl rates although no bit of theirs had been seen."""


class BoundsWarning(UserWarning):
    """The bounds of the change rates exclude true rates."""
