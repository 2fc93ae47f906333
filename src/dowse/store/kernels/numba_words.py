"""Word loops compiled by numba: runs, chunks and a query's terms enter; postings and BM25 sums leave."""

from __future__ import annotations

import numpy as np

from dowse.store.kernels.numba_core import AHEAD, compiled, kth, prefetch, reached

_ENTRIES_AHEAD = 24  # between fetching what an entry needs and using it; chosen


@compiled
def _place(terms, low, high, wanted):  # type: ignore[no-untyped-def]
    """Where a hash stands among ascending ones from `low` to `high`, or would stand."""
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def slots_of(known, slots, wanted, found):  # type: ignore[no-untyped-def]
    """Slots of wanted ids among known ones, which ascend; −1 for others, which are counted."""
    missing, place = 0, 0
    for number in range(len(wanted)):
        each = wanted[number]
        low = place if place < len(known) and known[place] <= each else 0
        place = _place(known, low, len(known), each)
        if place < len(known) and known[place] == each:
            found[number] = slots[place]
        else:
            found[number] = -1
            missing += 1
    return missing


@compiled
def _share(wanted, size):  # type: ignore[no-untyped-def]
    """How far among so many evenly spread 32-bit hashes this one would stand."""
    return np.int64((np.uint64(wanted) * np.uint64(size)) >> np.uint64(32))


@compiled
def find(terms, ends, hashes, found_starts, found_ends):  # type: ignore[no-untyped-def]
    """Hashes are spread evenly: hardly any stands farther than 2·√size, four deviations, from its share of the way.
    Looking there touches a page or three instead of one a step.
    """
    size = len(terms)
    near = np.int64(2 * np.sqrt(size)) + 1
    for number in range(len(hashes)):
        wanted = hashes[number]
        share = _share(wanted, size)
        low, high = max(share - near, 0), min(share + near, size)
        if low > 0 and terms[low] >= wanted:
            low = 0
        if high < size and terms[high] < wanted:
            high = size
        place = _place(terms, low, high, wanted)
        if place < size and terms[place] == wanted:
            found_starts[number] = ends[place - 1] if place > 0 else 0
            found_ends[number] = ends[place]


@compiled
def _stand(start, end, terms, wanted):  # type: ignore[no-untyped-def]
    """Where a chunk's entries from `start` to `end` have a hash; −1 where they do not.

    A chunk's hashes ascend and are spread evenly, so that each stands near its share of the way: looking from there
    takes three quarters of the time of halving.
    """
    place = start + _share(wanted, end - start)
    while place > start and terms[place - 1] >= wanted:
        place -= 1
    while place < end and terms[place] < wanted:
        place += 1
    return place if place < end and terms[place] == wanted else -1


@compiled
def _fetch_terms(slot, terms, ends, legs):  # type: ignore[no-untyped-def]
    start = ends[slot - 1] if slot > 0 else 0
    for leg in range(len(legs)):
        for number in range(len(legs[leg])):
            prefetch(terms, start + _share(legs[leg][number], ends[slot] - start))


@compiled
def _stands(slots, terms, counts, ends, legs, places):  # type: ignore[no-untyped-def]
    """By slot, where the hashes of all legs stand, one after the other; their counts are on their way."""
    for at in range(len(slots)):
        if at + 2 * AHEAD < len(slots):
            prefetch(ends, slots[at + 2 * AHEAD])
        if at + AHEAD < len(slots):
            _fetch_terms(slots[at + AHEAD], terms, ends, legs)
        slot, to = slots[at], 0
        start = ends[slot - 1] if slot > 0 else 0
        for leg in range(len(legs)):
            for number in range(len(legs[leg])):
                place = _stand(start, ends[slot], terms, legs[leg][number])
                places[at, to] = place
                to += 1
                if place >= 0:
                    prefetch(counts, place)


@compiled
def bm25(slots, terms, counts, ends, legs, weights, lengths, bases, slopes, sums):  # type: ignore[no-untyped-def]
    """All legs at once: chunks lie all over a mapped file, and one that was waited for is used for both.

    280 chunks after the caches were used by others, both legs: .05 ms; one after the other it took .09.
    """
    wanted = 0
    for leg in range(len(legs)):
        wanted += len(legs[leg])
    places = np.empty((len(slots), wanted), np.int64)
    _stands(slots, terms, counts, ends, legs, places)
    first = 0
    for leg in range(len(legs)):
        for at in range(len(slots)):
            norm, total = bases[leg] + slopes[leg] * lengths[leg][slots[at]], 0.0
            for number in range(len(legs[leg])):
                place = places[at, first + number]
                if place >= 0:
                    total += weights[leg][number] * counts[place] / (counts[place] + norm)
            sums[leg, at] = total
        first += len(legs[leg])


@compiled
def add_up(slots, counts, starts, ends, weights, lengths, base, slope, sums):  # type: ignore[no-untyped-def]
    for number in range(len(starts)):
        weight = weights[number]
        for entry in range(starts[number], ends[number]):
            slot, count = slots[entry], np.float64(counts[entry])
            sums[slot] += weight * count / (count + (base + slope * lengths[slot]))


@compiled
def sums(terms, ends, slots, counts, hashes, weights, lengths, base, slope, sums):  # type: ignore[no-untyped-def]
    """`find` and `add_up` in one: where few chunks hold few of the terms, the call is what costs."""
    starts, stops = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    find(terms, ends, hashes, starts, stops)
    add_up(slots, counts, starts, stops, weights, lengths, base, slope, sums)


@compiled
def clear(sums, found):  # type: ignore[no-untyped-def]
    for at in range(len(found)):
        sums[found[at]] = 0


@compiled
def _add_noted(slots, counts, starts, ends, weights, lengths, base, slope, passing, sums, found):  # type: ignore[no-untyped-def]
    """As `add_up`, of the chunks that pass; each of them is noted when it is met first. How many it are.

    `passing` is empty where all do: not to look takes .6 of the time. Then what each entry needs is fetched early, a
    fifth less for long lists; where few pass, most of that would be in vain.
    """
    size, all_pass = 0, len(passing) == 0
    for number in range(len(starts)):
        weight, end = weights[number], ends[number]
        for entry in range(starts[number], end):
            if all_pass and entry + _ENTRIES_AHEAD < end:
                prefetch(sums, np.int64(slots[entry + _ENTRIES_AHEAD]))
                prefetch(lengths, np.int64(slots[entry + _ENTRIES_AHEAD]))
            slot = slots[entry]
            if all_pass or passing[slot]:
                count, before = np.float64(counts[entry]), sums[slot]
                found[size] = slot
                size += before == 0
                sums[slot] = before + weight * count / (count + (base + slope * lengths[slot]))
    return size


@compiled
def best(slots, counts, starts, ends, weights, lengths, base, slope, passing, k, sums, found, scores):  # type: ignore[no-untyped-def]
    """How many chunks hold a term and pass; the best k of them, and all that equal the last. Sums were 0."""
    size = _add_noted(slots, counts, starts, ends, weights, lengths, base, slope, passing, sums, found)
    for at in range(size):
        scores[at] = sums[found[at]]
    least = reached(scores[:size], k) if size > k else 0.0
    chosen, values, to = np.empty(size + 1, np.int64), np.empty(size + 1), 0
    for at in range(size):
        chosen[to], values[to] = found[at], scores[at]
        to += scores[at] >= least
    chosen, values = chosen[:to], values[:to]
    if to <= k:
        return size, chosen, values
    among = values >= kth(values, k)
    return size, chosen[among], values[among]
