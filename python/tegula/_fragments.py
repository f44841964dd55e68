"""Which tokens of which sequence lie on which rank: what context parallelism knows without asking anybody.

The tokens are cut into fragments, runs of tokens that are numbered in their order. A rank holds one (contiguous) or two
(zigzag: the r-th and the r-th from the end). A piece is what a fragment has of one sequence: a row of the local call's
states. Only the first piece of a fragment can have tokens before it elsewhere, and only the last one tokens behind it.
"""

from dataclasses import dataclass

from ._c import wrong

LAYOUTS = ("contiguous", "zigzag")


@dataclass(frozen=True)
class Fragment:
    """One that this rank holds. `before` and `after` count the fragments that the sequence of its first and of its last
    piece has before and behind it."""

    index: int
    before: int
    after: int
    first: slice  # rows of the local call
    last: slice
    first_tokens: tuple = None  # begin and end among the rank's tokens; None: all that the rows have
    last_tokens: tuple = None

    @property
    def is_through(self):
        """One sequence comes in and goes on: what it makes of a state that comes in matters to others."""
        return self.before > 0 and self.after > 0 and self.first == self.last


@dataclass(frozen=True)
class Pieces:
    """Those of one rank. Row i of the local call belongs to sequence sequences[i], whose first token it has if begins[i],
    and the last if ends[i]."""

    fragments: tuple
    exchanges: bool  # on some rank a sequence goes on: the same on all
    cu: tuple = None  # boundaries of the rows among the rank's tokens, if packed
    sequences: tuple = None
    begins: tuple = None
    ends: tuple = None
    n: int = 0  # sequences in all


def indices(layout, size, rank):
    """The fragments of a rank, by number."""
    return (rank,) if layout == "contiguous" else (rank, 2 * size - 1 - rank)


def order(layout, size):
    """(rank, which of the rank's) of all fragments."""
    places = {f: (rank, i) for rank in range(size) for i, f in enumerate(indices(layout, size, rank))}
    return [places[f] for f in sorted(places)]


def batch(B, layout, size, rank):
    """Of B sequences, each cut into all fragments. Of two fragments the rows alternate."""
    mine, n = indices(layout, size, rank), size * len(indices(layout, size, rank))
    fragments = []
    for i, f in enumerate(mine):
        rows = slice(i, None, len(mine))
        fragments.append(Fragment(f, f, n - 1 - f, rows, rows))
    sequences = tuple(b for b in range(B) for _ in mine)
    return Pieces(tuple(fragments), n > 1, None, sequences, tuple(f == 0 for _ in range(B) for f in mine),
                  tuple(f == n - 1 for _ in range(B) for f in mine), B)


def check_cu(cu, layout, size):
    """That they are boundaries, of as many tokens as can be shared out."""
    if len(cu) < 2 or cu[0] != 0 or list(cu) != sorted(cu):
        raise wrong("cu_seqlens", "boundaries of all tokens of all ranks, which begin with 0 and do not decrease",
                    str(list(cu[:8])))
    n = size * len(indices(layout, size, 0))
    if cu[-1] == 0 or cu[-1] % n:
        raise wrong("cu_seqlens", f"a multiple of {n} tokens in all, {size} ranks with {n // size} equal parts each",
                    f"{cu[-1]}", "pad the last sequence, or add one that is thrown away")


def packed(cu, layout, size, rank):
    """Of sequences one behind the other with these boundaries. An empty one belongs to the fragment it lies at the begin
    of, or in; at the end of all tokens to the last."""
    n = size * len(indices(layout, size, rank))
    per, at, rows, fragments, bounds = cu[-1] // n, 0, [], [], [0]
    for f in indices(layout, size, rank):
        low, high = f * per, (f + 1) * per
        first = len(rows)
        for s, (begin, end) in enumerate(zip(cu, cu[1:])):
            is_empty_here = begin == end and (low <= begin < high or begin == high == cu[-1])
            if is_empty_here or max(begin, low) < min(end, high):
                rows.append((s, begin >= low, end <= high))
                bounds.append(at + min(end, high) - low)
        fragments.append(_fragment(f, per, cu, rows, first, bounds))
        at += per
    sequences, begins, ends = zip(*rows)
    borders = {f * per for f in range(1, n)}
    return Pieces(tuple(fragments), not borders <= set(cu), tuple(bounds), sequences, begins, ends, len(cu) - 1)


def _fragment(f, per, cu, rows, first, bounds):
    last = len(rows) - 1
    (s, begins, _), (e, _, ends) = rows[first], rows[last]
    return Fragment(f, 0 if begins else f - cu[s] // per, 0 if ends else (cu[e + 1] - 1) // per - f,
                    slice(first, first + 1), slice(last, last + 1), (bounds[first], bounds[first + 1]),
                    (bounds[last], bounds[last + 1]))


def of_fla(cu, rank, before, after):
    """As flash-linear-attention's context tells it: local boundaries, and how many ranks the first sequence has before
    and the last one behind. Which sequences of all these are, it does not tell."""
    n = len(cu) - 1
    fragment = Fragment(rank, before, after, slice(0, 1), slice(n - 1, n), tuple(cu[:2]), tuple(cu[-2:]))
    return Pieces((fragment,), True, tuple(cu))
