"""Greedy slots under limits of hosts."""

import math

import numpy as np
from numba import njit

from paperlib._kernels import crawl_value

_SAFE = 1.0 - 1e-7  # rounding of a value stays well inside
_BURST = 2  # tokens that a host can save up: with one, a token that falls between two slots would lose the time until the next


@njit(cache=True, error_model="numpy")
def _polite_slots(rows, alpha, importance, time, explore, signal_page, signal_time, change_time, ends, host, spacing,
                  last, n, seen, full_at, again, page, interval, n_signals, changed):  # fmt: skip
    """Every slot compares all pages that can be crawled, for these change from slot to slot. The kernel checks nothing.

    A value is computed only where a bound lets it win: since the slot `at` in which it was `known`, it has grown by at most
    slope d (u + alpha d / 2) in the time d, for V' = importance alpha exp(-u) psi with psi at most u / alpha (Lemma 4 of [www25]).
    """
    known, slope, at, u = np.full((4, last.size), np.inf)
    k = 0
    for j in range(time.size):
        t = time[j]
        while k < signal_time.size and signal_time[k] <= t:
            n[signal_page[k]] += 1
            known[signal_page[k]] = np.inf
            k += 1
        best, winner = -1.0, -1
        i = again[0]
        if (
            explore[j]
            and i >= 0
            and full_at[host[i]] - (_BURST - 1) * spacing[host[i]] <= t
        ):
            winner, again[0] = i, -1
        else:
            for i in range(last.size):
                if full_at[host[i]] - (_BURST - 1) * spacing[host[i]] > t:
                    continue
                if explore[j]:
                    if winner < 0 or last[i] < last[winner]:
                        winner = i
                    continue
                if known[i] < np.inf:
                    d = t - at[i]
                    if (
                        known[i] + slope[i] * d * (u[i] + 0.5 * alpha[i] * d)
                        < best * _SAFE
                    ):
                        continue
                elapsed = t - last[i]
                known[i], at[i], u[i] = (
                    crawl_value.value(rows[i], elapsed, n[i]),
                    t,
                    crawl_value.effective(rows[i], elapsed, n[i]),
                )
                slope[i] = importance[i] * math.exp(-u[i])
                if slope[i] == 0.0:
                    u[i] = 0.0
                if known[i] > best:
                    best, winner = known[i], i
            if explore[j] and rows.size:
                again[0] = winner
        page[j] = winner
        if winner >= 0:
            interval[j], n_signals[j], changed[j] = t - last[winner], n[winner], False
            while seen[winner] < ends[winner] and change_time[seen[winner]] <= t:
                seen[winner] += 1
                changed[j] = True
            last[winner], n[winner] = t, 0
            known[winner], slope[winner], at[winner], u[winner] = (
                0.0,
                importance[winner],
                t,
                0.0,
            )
            full_at[host[winner]] = (
                max(full_at[host[winner]], t) + spacing[host[winner]]
            )
