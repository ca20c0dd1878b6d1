"""Change rates by the hour as a generalised linear model: statsmodels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from recrawl.science import periodic


@pytest.mark.slow
def test_crawls_within_a_bin_are_a_generalised_linear_model():
    from statsmodels.genmod import families  # takes a second or two to import
    from statsmodels.genmod.generalized_linear_model import GLM

    history = periodic.simulate_periodic_history(
        np.geomspace(0.5, 8.0, 8),
        periodic.Profile([0.5, 2.0, 0.7]),
        interval=1 / 3,
        n_crawls=200,
        rng=1,
    )
    page, bin = np.divmod(np.arange(8 * 200), 200)
    bin %= 3
    design = np.zeros((1600, 10))  # of pages, and of two bins against the first
    design[np.arange(1600), page] = 1.0
    design[bin > 0, 7 + bin[bin > 0]] = 1.0
    family = families.Binomial(link=families.links.CLogLog())
    bits, offset = history.changed.ravel().astype(float), np.full(1600, np.log(1 / 3))
    x = GLM(bits, design, family=family, offset=offset).fit(tol=1e-14).params
    weight = np.exp([0.0, *x[8:]])
    fit = periodic.fit_profile(history, n_bins=3, smoothing=0.0)
    assert_allclose(fit.profile.weight, weight / weight.mean(), rtol=1e-6)
    assert_allclose(fit.change_rate, np.exp(x[:8]) * weight.mean(), rtol=1e-6)
