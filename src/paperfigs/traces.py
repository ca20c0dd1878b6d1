"""Real change times of web pages, and populations of pages for experiments.

A trace is a CSV file of the times at which one page changed, with a checksum
beside it. Two are shipped, and `paperfigs.wikipedia` downloads others. One file has
many pages of Wikipedia.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperfigs.files import PathLike, sha256, write_atomic
from paperlib import checks

# A wheel has the data in the package, a checkout has them beside src/.
DATA = Path(__file__).resolve().with_name("data")
if not DATA.is_dir():
    DATA = DATA.parents[2] / "data"

_DAY = np.timedelta64(1, "D")
_PAIRING = 20  # seed of the random pairs of pages and importances
# Beta distributions of precision and recall: 95% of the pages are below .7 and .6.
_QUALITY = [[[3.0], [4.0]], [[4.39], [7.148]]]
_LEAST_PRECISION = 0.01
# Stand-in for the private data of Grimes and Ford (2008): the median of the mean
# times between changes, in hours, is calibrated so that the best first interval of
# their figure 4 is 11 days, as in the paper (measured: 11.0 with a standard error of
# 0.2). The limits are our choice.
_MEDIAN_PERIOD, _SHORTEST_PERIOD, _LONGEST_PERIOD = 17.5 * 24, 2.0, 365 * 24
_NARROW = 0.7  # standard deviation of the log period of narrow pages (our choice)
_LABELLED = 0.05  # share of the pages
_LABELLED_IMPORTANCE = 0.264  # their share of the importance


class Trace(NamedTuple):
    """Times at which one page changed.

    Parameters
    ----------
    title : str
        Title of the page.
    start : numpy.datetime64
        Start of the window of observation, UTC, to the second.
    horizon : float
        Length of the window, days.
    times : ndarray of float, shape (n_events,)
        Change times in days since `start`, ascending; equal times are kept.
    """

    title: str
    start: np.datetime64
    horizon: float
    times: NDArray

    @property
    def change_rate(self) -> float:
        """Changes per day over the window; a change at its start is not counted."""
        return np.count_nonzero(self.times > 0) / self.horizon


def load(name: str) -> Trace:
    """Read a trace.

    Parameters
    ----------
    name : str
        "debian_firefox_esr" (close to a Poisson process), "bokeh_commits"
        (bursty), or "wikipedia" after a download; or the absolute path of a
        file from `write`.

    Returns
    -------
    Trace
        The trace.

    Raises
    ------
    FileNotFoundError, ValueError
        The file does not exist, or does not have its checksum.
    """
    comments, lines = _read(Path(name).with_suffix(".csv"))
    moments = _moments([comments["start"], comments["end"], *lines])
    days = (moments - moments[0]) / _DAY
    return Trace(comments["title"], moments[0], float(days[1]), days[2:])


def wikipedia_pages() -> Any:
    """Read all revisions of 333 pages of the English Wikipedia, up to January 2012.

    They are pages about accidents, fires, floods and eruptions, chosen by category.
    ``data/README.md`` says what that means.

    Returns
    -------
    pandas.DataFrame
        The title ("page") and the "time" of each revision, UTC, page by page.
    """
    import pandas as pd

    path = _verified("wikipedia_pages.csv.gz")
    return pd.read_csv(path, comment="#", parse_dates=["time"])


def write(
    path: PathLike,
    times: ArrayLike,
    *,
    window: Any = None,
    **about: str,
) -> Trace:
    """Write a trace and its checksum; both files are whole or absent.

    Parameters
    ----------
    path : path
        The file ``NAME.csv``; ``NAME.csv.sha256`` is written beside it.
    times : array_like of datetime64, shape (n_events,)
        Change times, UTC, in any order.
    window : pair of datetime64, optional
        Its start and end; by default the first time and the last.
    **about : str
        The title of the page, the source of the times, their licence.

    Returns
    -------
    Trace
        The trace, as read back from the file.
    """
    times = np.sort(np.array(times, "datetime64[s]"))
    start, end = window or (times[0], times[-1])
    about |= {"start": f"{start}Z", "end": f"{end}Z"}
    lines = [f"# {key}: {' '.join(text.split())}" for key, text in about.items()]
    lines += ["time", *(f"{moment}Z" for moment in times)]
    write_atomic(path, "\n".join(lines) + "\n")
    write_atomic(f"{path}.sha256", f"{sha256(path)}  {Path(path).name}\n")
    return load(Path(path).resolve())


def _verified(name):
    """The path of a file of the data, or of another folder, that has its checksum."""
    path = DATA / name
    if sha256(path) not in Path(f"{path}.sha256").read_text():
        raise ValueError(f"{path} is damaged: its sha256 is {sha256(path)}")
    return path


def _read(name):
    """Comments of an undamaged file, and the lines below its header."""
    lines = _verified(name).read_text(encoding="utf-8").splitlines()
    comments = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
    return dict(comments), lines[len(comments) + 1 :]


def _moments(texts):
    """Times that end in Z as an array."""
    return np.array([text.rstrip("Z") for text in texts], "datetime64[s]")


# ---- populations


def debian_pages() -> tuple[NDArray, NDArray]:
    """Change rates of Debian packages, with npm download counts as importances.

    A change is an upload of the package to Debian's unstable or experimental
    suite, between its first upload and 2023-02-12. The importances are monthly
    downloads of other software: 455 of the 10,000 largest counts of npm,
    **paired with the pages at random**. ``data/README.md`` describes the
    selection and the missing uploads.

    Returns
    -------
    change_rate : ndarray of float, shape (455,)
        Changes per day.
    importance : ndarray of float, shape (455,)
        Importances, with mean 1.
    """
    comments, lines = _read("debian_panel.csv")
    pages, times = np.array([line.split(",") for line in lines]).T
    page = pages.astype(int)
    moment = _moments(times)
    downloads = np.array(_read("npm_downloads.csv")[1], float)
    importance = np.random.default_rng(_PAIRING).permutation(downloads)
    start = moment[np.diff(page, prepend=-1) > 0]
    window = (_moments([comments["end"]]) - start) / _DAY
    # The first upload begins the window and is not counted.
    return (np.bincount(page) - 1) / window, importance / importance.mean()


def population(
    source: str, n_pages: int, *, rng: Any = None
) -> tuple[NDArray, NDArray]:
    """True change rates and importances of pages, for experiments.

    The Bing data set is too large to be shipped. A stand-in has change rates
    lognormal with median 0.15 and sigma 1.3, clipped to [0.0005, 7], and independent
    importances, lognormal with sigma 1.2. Results on it say nothing about real pages.
    From `debian_pages`, or from the Bing data, a sample is drawn with replacement.

    Parameters
    ----------
    source : {"stand-in", "panel", "bing"}
        "panel" is of Debian. "bing" needs the sample that ``make_bing_pages.py``
        beside the data makes of the Bing data set.
    n_pages : int
        Number of pages.
    rng : None, int or Generator, optional
        Source of the sample, or of the stand-in.

    Returns
    -------
    change_rate : ndarray of float, shape (n_pages,)
        True change rates, 1/day.
    importance : ndarray of float, shape (n_pages,)
        Importances, with mean 1.
    """
    return _population(source, n_pages, np.random.default_rng(rng))[:2]


def hourly_rates(kind: str, n_pages: int, *, rng: Any = None) -> NDArray:
    """Change rates of pages that stand in for those of Grimes and Ford (2008).

    Their data are private. Mean times between changes have a median of 17.5 days,
    calibrated to the 11 days of their figure 4, and except for "debian" they are
    clipped to 2 hours and 1 year.

    Parameters
    ----------
    kind : {"stand-in", "log-logistic", "narrow", "debian"}
        Distribution of the mean times between changes: lognormal with a standard
        deviation of the logarithm of 1; log-logistic with shape 1, whose tail is so
        heavy that it has no mean without the clip; lognormal with a standard deviation
        of 0.7; or that of `debian_pages`, drawn with replacement and scaled to the
        median.
    n_pages : int
        Number of pages.
    rng : None, int or Generator, optional
        Source of random numbers.

    Returns
    -------
    ndarray of float, shape (n_pages,)
        Change rates, 1/hour.
    """
    rng = np.random.default_rng(rng)
    if kind == "debian":
        rate, _ = debian_pages()
        return rng.choice(rate, n_pages) / np.median(rate) / _MEDIAN_PERIOD
    draws = {
        "stand-in": rng.standard_normal,
        "log-logistic": rng.logistic,
        "narrow": rng.standard_normal,
    }
    draw = draws[checks.one_of("kind", kind, draws)]
    period = _MEDIAN_PERIOD * np.exp(draw(size=n_pages))
    rate = 1 / np.clip(period, _SHORTEST_PERIOD, _LONGEST_PERIOD)
    if kind == "narrow":
        rate = (rate * _MEDIAN_PERIOD) ** _NARROW / _MEDIAN_PERIOD
    return rate


def uniform_pages(
    n_pages: int,
    *,
    beta: float,
    false_rate: tuple[float, float] | None = None,
    rng: Any = None,
) -> Any:
    r"""Pages with signals as in the simulations of Busa-Fekete et al. (2025).

    Their figures 3, 4, 8 and 12 to 14: change rates and importances are uniform
    on [0, 1], and the recall is drawn from :math:`\mathrm{Beta}(b, b)`.

    Parameters
    ----------
    n_pages : int
        Number of pages.
    beta : float
        The parameter b; at 0.25 most recalls are near 0 or near 1.
    false_rate : (float, float), optional
        Bounds of the rates of false signals, which are uniform between them,
        1/time; by default no signal is false.
    rng : None, int or Generator, optional
        Source of random numbers.

    Returns
    -------
    paperlib.signals.SignalledPages
        The pages.
    """
    from paperlib.signals import SignalledPages

    rng = np.random.default_rng(rng)
    change_rate = rng.random(n_pages)
    importance = rng.random(n_pages)
    recall = rng.beta(beta, beta, n_pages)
    rate = 0.0
    if false_rate is not None:
        rate = rng.uniform(*false_rate, n_pages)
    return SignalledPages(change_rate, importance, recall, rate)


def signalled_population(
    source: str, n_pages: int, *, rng: Any = None
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Pages of `population` with change-indicating signals of realistic quality.

    Precision and recall follow section 6.7 of Busa-Fekete et al. (2025). In the
    Bing data, the labelled pages are those whose change rate is known from
    sitemaps. In other data, one page in twenty is labelled, and these pages have
    26.4% of the importance, as in section 2 of the paper. Precision and recall
    of labelled pages come from the top 5% of two distributions, those of the
    other pages from the rest. The paper's distributions, its figure 1, are
    private. The stand-in meets all printed numbers: Beta(3, 4.39) for precision
    (95% below 0.7, 12% below 0.2, 1% above 0.8), clipped to at least 0.01, and
    Beta(4, 7.148) for recall (95% below 0.6, less than 0.1% above 0.8). They
    are independent among the labelled pages, and among the other pages.

    Parameters
    ----------
    source : {"stand-in", "panel", "bing"}
        As in `population`.
    n_pages : int
        Number of pages.
    rng : None, int or Generator, optional
        Source of all random numbers.

    Returns
    -------
    change_rate, importance : ndarray of float, shape (n_pages,)
        As in `population`.
    precision, recall : ndarray of float, shape (n_pages,)
        Quality of the signals.
    labelled : ndarray of bool, shape (n_pages,)
        Pages whose signals are of high quality.
    """
    from scipy.special import betaincinv

    rng = np.random.default_rng(rng)
    rate, importance, labelled = _population(source, n_pages, rng)
    if labelled is None:
        labelled = rng.random(n_pages) < _LABELLED
        shares = (labelled, _LABELLED_IMPORTANCE), (~labelled, 1 - _LABELLED_IMPORTANCE)
        for pages, share in shares:
            importance[pages] *= n_pages * share / importance[pages].sum()
    top = 0.95 + 0.05 * rng.random((2, n_pages))
    rank = np.where(labelled, top, 0.95 * rng.random((2, n_pages)))
    precision, recall = betaincinv(*_QUALITY, rank)
    return rate, importance, np.maximum(precision, _LEAST_PRECISION), recall, labelled


def _population(source, n_pages, rng):
    """Change rates, importances, and labels; None for data without labels."""
    labelled = None
    if source == "stand-in":
        rate = np.clip(rng.lognormal(np.log(0.15), 1.3, n_pages), 5e-4, 7.0)
        importance = rng.lognormal(0.0, 1.2, n_pages)
    elif source == "panel":
        rate, importance = debian_pages()
        drawn = rng.integers(rate.size, size=n_pages)
        rate = rate[drawn]
        importance = importance[drawn]
    elif source == "bing":
        lines = _read("bing_pages.csv")[1]
        pages = np.array([line.split(",") for line in lines], float)
        drawn = rng.integers(len(pages), size=n_pages)
        rate, importance, known_rate = pages[drawn].T
        labelled = np.isfinite(known_rate)
    else:
        checks.one_of("source", source, ("stand-in", "panel", "bing"))
    return rate, importance / importance.mean(), labelled
