"""The lines of the Bing data set, from bytes to numbers.

The text ends in a line break, so that no loop looks for the end; np.uintp spares the test for a negative index.
"""

import numpy as np
from numba import njit

# what is wrong with a line; in the order of the texts in _bing
(
    GOOD,
    COLUMNS,
    NUMBER,
    BIT,
    INTERVAL,
    RANGE,
    REPEATED,
    NO_IMPORTANCE,
    NO_HOST,
    UNKNOWN_HOST,
    BLANK,
) = range(11)
HARD = -1  # holds a number that is left to Python's float

_FAST = {
    "nogil": True,
    "cache": True,
    "_nrt": False,
}  # nothing is allocated: without reference counts three times as fast
_TEN = 10.0 ** np.arange(23)  # exact
_WHOLE_TEN = np.uint64(10) ** np.arange(9, dtype=np.uint64)
_ZEROS, _BELOW_TEN, _TOPS, _ONES = (
    np.uint64(byte * 0x0101010101010101) for byte in (0x30, 0x76, 0x80, 0x01)
)
_PAIRS, _U1 = np.uint64(0x000000FF000000FF), np.uint64(1)
(
    _TAB,
    NEWLINE,
    _RETURN,
    _SPACE,
    _PLUS,
    _COMMA,
    _MINUS,
    _POINT,
    _ZERO,
    _ONE,
    OPEN,
    _CLOSE,
) = b"\t\n\r +,-.01[]"


@njit(**_FAST)
def count(text, byte):
    n = 0
    for c in text:
        n += c == byte
    return n


@njit(**_FAST)
def mark_repeated(seen, place, reason):
    for i in range(place.size):
        if reason[i] == GOOD and place[i] >= 0:
            if seen[place[i]]:
                reason[i] = REPEATED
            seen[place[i]] = True


@njit(**_FAST, forceinline=True)
def _skip(text, i):
    while text[np.uintp(i)] == _SPACE or text[np.uintp(i)] == _RETURN:
        i += 1
    return i


@njit(**_FAST, forceinline=True)
def _integer(text, i):
    """Value, the byte after it, and whether it is one of at most 18 digits."""
    i = _skip(text, i)
    negative = text[np.uintp(i)] == _MINUS
    i += negative
    value, first = 0, i
    while _ZERO <= text[np.uintp(i)] <= _ZERO + 9:
        value = 10 * value + text[np.uintp(i)] - _ZERO
        i += 1
    return (-value if negative else value), _skip(text, i), first < i <= first + 18


@njit(**_FAST, forceinline=True)
def _digits(text, words, i, value):
    """`value` with the digits at i appended, and the byte after them. Eight at a time, as simdjson does: three times as fast."""
    while i < words.size:
        x = words[np.uintp(i)] ^ _ZEROS  # a digit's value; 10 or more in other bytes
        other = ((x + _BELOW_TEN) | x) & _TOPS
        n = 8
        if other:
            n = (
                np.int64(((other ^ (other - _U1)) & _ONES) * _ONES >> np.uint64(56)) - 1
            )  # bytes before the first that is no digit
            if n == 0:
                return value, i
            x <<= np.uint64(64 - 8 * n)
        x = x * np.uint64(10) + (x >> np.uint64(8))
        x = (x & _PAIRS) * np.uint64(100 + (1000000 << 32)) + (
            (x >> np.uint64(16)) & _PAIRS
        ) * np.uint64(1 + (10000 << 32))
        value = value * _WHOLE_TEN[np.uintp(n)] + (x >> np.uint64(32))
        i += n
        if n < 8:
            return value, i
    while _ZERO <= text[np.uintp(i)] <= _ZERO + 9:
        value = value * np.uint64(10) + np.uint64(text[np.uintp(i)] - _ZERO)
        i += 1
    return value, i


@njit(**_FAST, forceinline=True)
def _number(text, words, i):
    """Value, the byte after it, and GOOD, NUMBER or HARD (value 1.0).

    Exact up to 2^53 without the point [Clinger 1990]; beyond that within one unit in the last place, up to 19 digits.
    """
    i = _skip(text, i)
    negative = text[np.uintp(i)] == _MINUS
    if negative or text[np.uintp(i)] == _PLUS:
        i += 1
    first = i
    digits, i = _digits(text, words, i, np.uint64(0))
    n_digits, exponent = i - first, 0
    if text[np.uintp(i)] == _POINT:
        point = i + 1
        digits, i = _digits(text, words, point, digits)
        exponent = point - i
        n_digits -= exponent
    if n_digits == 0:
        return 1.0, i, NUMBER
    if text[np.uintp(i)] | 32 == 101:  # e or E
        shift, i, fine = _exponent(text, i + 1)
        if not fine:
            return 1.0, i, NUMBER
        exponent += shift
    i = _skip(text, i)
    if n_digits > 19 or (abs(exponent) > 22 and digits != 0):
        return 1.0, i, HARD
    if digits == 0:
        return 0.0, i, GOOD
    scale = _TEN[np.uintp(abs(exponent))]
    if digits < np.uint64(1 << 53):
        value = np.float64(np.int64(digits))
        value = value / scale if exponent < 0 else value * scale
    else:
        value = np.float64(digits)
        rest = np.float64(
            np.int64(digits - np.uint64(value))
        )  # what the rounding to 53 bits took away
        value = (
            value / scale + rest / scale
            if exponent < 0
            else value * scale + rest * scale
        )
    return (-value if negative else value), i, GOOD


@njit(**_FAST)
def _exponent(text, i):
    negative = text[np.uintp(i)] == _MINUS
    if negative or text[np.uintp(i)] == _PLUS:
        i += 1
    value, first = 0, i
    while _ZERO <= text[np.uintp(i)] <= _ZERO + 9:
        value = min(10 * value + text[np.uintp(i)] - _ZERO, 9999)
        i += 1
    return (-value if negative else value), i, i > first


@njit(**_FAST)
def _next_line(text, i):
    while text[np.uintp(i)] != NEWLINE:
        i += 1
    return i + 1


@njit(**_FAST, forceinline=True)
def _unexpected(text, i):
    """The reason when something else was due here: the line is at its end, or no number can be read."""
    return COLUMNS if text[np.uintp(i)] == NEWLINE else NUMBER


@njit(**_FAST, forceinline=True)
def _after(text, i):
    """The reason of a line that is good up to here, where it should end."""
    return (
        GOOD
        if text[np.uintp(i)] == NEWLINE
        else COLUMNS
        if text[np.uintp(i)] == _TAB
        else NUMBER
    )


@njit(**_FAST)
def pair_lines(text, words, named, start, reason, ids, values):
    i = 0
    for line in range(reason.size):
        start[line] = i
        reason[line], i = _pair_line(text, words, i, named, ids[line:], values[line:])
        i = _next_line(text, i)
    start[-1] = i


@njit(**_FAST)
def _pair_line(text, words, i, named, id_, value):
    """Reason, and a byte at or before the end of the line."""
    if text[_skip(text, i)] == NEWLINE:
        return BLANK, i
    if named:
        while text[np.uintp(i)] != _TAB and text[np.uintp(i)] != NEWLINE:
            i += 1
        if text[np.uintp(i)] == NEWLINE:
            return COLUMNS, i
        i += 1
    id_[0], i, fine = _integer(text, i)
    if not fine or text[np.uintp(i)] != _TAB:
        return _unexpected(text, i), i
    mark = GOOD
    if named:
        value[0], i, fine = _integer(text, i + 1)
        if not fine:
            mark = NUMBER
    else:
        value[0], i, mark = _number(text, words, i + 1)
    if mark == NUMBER:
        return _unexpected(text, i), i
    after = _after(text, i)
    return (mark if after == GOOD else after), i


@njit(**_FAST)
def history_lines(text, words, start, reason, url, n_crawls, interval, changed):
    i = total = 0
    for line in range(reason.size):
        start[line] = i
        reason[line], i, n_crawls[line] = _history_line(
            text, words, i, url[line:], interval[total:], changed[total:]
        )
        total += n_crawls[line]
        i = _next_line(text, i)
    start[-1] = i
    return total


@njit(**_FAST)
def _history_line(text, words, i, url, interval, changed):
    """Reason, a byte at or before the end of the line, and the number of crawls, 0 if it is bad."""
    if text[_skip(text, i)] == NEWLINE:
        return BLANK, i, 0
    url[0], i, fine = _integer(text, i)
    if not fine or text[np.uintp(i)] != _TAB:
        return _unexpected(text, i), i, 0
    _, i, mark = _number(text, words, i + 1)  # the first crawl: nothing comes before it
    hard = mark == HARD
    if mark == NUMBER or text[np.uintp(i)] != _TAB:
        return _unexpected(text, i), i, 0
    i = _skip(text, i + 1)
    if text[np.uintp(i)] != OPEN:
        return _unexpected(text, i), i, 0
    i = _skip(text, i + 1)
    n = 0
    while text[np.uintp(i)] == OPEN:
        interval[np.uintp(n)], i, mark = _number(text, words, i + 1)
        if mark == NUMBER or text[np.uintp(i)] != _COMMA:
            return _unexpected(text, i), i, 0
        hard |= mark == HARD
        if not 0.0 < interval[np.uintp(n)] < np.inf:
            return INTERVAL, i, 0
        i = _skip(text, i + 1)
        if text[np.uintp(i)] != _ZERO and text[np.uintp(i)] != _ONE:
            return (COLUMNS if text[np.uintp(i)] == NEWLINE else BIT), i, 0
        changed[np.uintp(n)] = text[np.uintp(i)] == _ONE
        i = _skip(text, i + 1)
        if text[np.uintp(i)] != _CLOSE:
            return (COLUMNS if text[np.uintp(i)] == NEWLINE else BIT), i, 0
        n += 1
        i = _skip(text, i + 1)
        if text[np.uintp(i)] == _COMMA:
            i = _skip(text, i + 1)
            if text[np.uintp(i)] != OPEN:
                return _unexpected(text, i), i, 0
        elif text[np.uintp(i)] != _CLOSE:
            return _unexpected(text, i), i, 0
    if text[np.uintp(i)] != _CLOSE:
        return _unexpected(text, i), i, 0
    i = _skip(text, i + 1)
    after = _after(text, i)
    if after != GOOD:
        return after, i, 0
    return (HARD if hard else GOOD), i, n
