"""What the kernels of notebooks find imported; see `kernels`."""
# ruff: noqa: F401

import ipykernel.debugger
import ipykernel.kernelapp
import matplotlib.pyplot
import matplotlib_inline.backend_inline
import numba
import pandas
import scipy.stats

import paperlib.policies
import paperlib.repro.ledger
import paperlib.repro.plotting
import paperlib.repro.traces
import paperlib.simulate

# numba makes its compiler ready at the first call of a compiled function.
numba.njit(lambda: None)()
