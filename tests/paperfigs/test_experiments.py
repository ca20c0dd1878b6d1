"""Experiments with several numbers of pages."""

import numpy as np
import pandas as pd

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
