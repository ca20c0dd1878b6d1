"""Long lists of cases, of which `make quick` takes a few."""

import pytest


def every(n, cases):
    """Cases of a parametrized test: all are kept, every n-th is not marked slow."""
    slow = pytest.mark.slow
    return [
        case
        if k % n == 0
        else pytest.param(*(case if isinstance(case, tuple) else [case]), marks=slow)
        for k, case in enumerate(cases)
    ]
