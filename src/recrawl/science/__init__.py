"""The methods behind the tool: estimators, priors, objectives, policies, worlds.

They need NumPy, SciPy and numba, and nothing else.
"""
