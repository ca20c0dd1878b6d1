"""Experiments with several numbers of pages."""

import numpy as np
import pandas as pd
import pytest

from paperfigs import experiments


def test_windows_are_weighed_run_by_run():
    windows = {
        5: {
            "steady": np.array([0.5, 0.7]),
            "greedy": np.array([[0.0, 1.0], [0.2, 0.6]]),
        }
    }
    means = experiments.window_mean(windows, [0.25, 0.75])
    assert means.keys() == {5}
    np.testing.assert_array_equal(means[5]["steady"], [0.5, 0.7])
    np.testing.assert_allclose(means[5]["greedy"], [0.75, 0.5], rtol=1e-15)


def test_a_run_depends_on_seed_size_and_number_alone():
    def one_run(rng, m):
        return pd.DataFrame({"size": np.full(m, m), "x": rng.random(m)})

    table = experiments.tables(one_run, [2, 3], 4, seed=1)
    assert table.index.names == ["m", "run", "page"]
    assert len(table) == 4 * (2 + 3)
    assert (table["size"] == table.index.get_level_values("m")).all()
    assert table["x"].is_unique
    fewer = experiments.tables(one_run, [3], 2, seed=1)
    pd.testing.assert_frame_equal(fewer, table.loc[[3], slice(0, 1), :])
    other = experiments.tables(one_run, [3], 2, seed=2)
    assert not np.isin(other["x"], table["x"]).any()


# ------------------------------ the best exploration

LENGTH, HORIZON = np.geomspace(3, 3000, 12), np.geomspace(100, 1e5, 6)


def parabolas(exploration, horizon, runs):
    """runs x sqrt(T) (1 + (log(exploration) - log(T) / 2 - 0.3)^2).

    The least is runs x sqrt(T), at the exploration 1.35 sqrt(T).
    """
    away = np.log(exploration)[:, np.newaxis] - np.log(horizon) / 2 - 0.3
    return np.reshape(runs, (len(runs), 1, -1)) * np.sqrt(horizon) * (1 + away**2)


def test_the_best_exploration_of_a_parabola():
    values = parabolas(LENGTH, HORIZON, [1.0, 2.0, 6.0])
    values[:, LENGTH[:, np.newaxis] > HORIZON] = np.nan
    at, least = experiments.best_exploration(values, LENGTH)
    np.testing.assert_allclose(at, np.exp(0.3) * np.sqrt(HORIZON), rtol=1e-10)
    np.testing.assert_allclose(least, 3.0 * np.sqrt(HORIZON), rtol=1e-10)


def test_the_best_exploration_at_an_end_of_the_grid_is_not_known():
    exploration, horizon = (
        np.geomspace(3, 300, 8),
        np.array([1.0, 100.0, 1e3, 1e8, 9.0]),
    )
    values = parabolas(exploration, horizon, [1.0])
    values[..., -1] = np.nan  # a horizon shorter than every exploration
    at, least = experiments.best_exploration(values, exploration)
    np.testing.assert_array_equal(np.isnan(at), [True, False, False, True, True])
    np.testing.assert_array_equal(np.isnan(least), np.isnan(at))


def test_the_best_exploration_needs_three_lengths_that_rise():
    with pytest.raises(ValueError, match="exploration must rise, at least 3 numbers"):
        experiments.best_exploration([[[1.0]] * 3], [10.0, 1.0, 100.0])
