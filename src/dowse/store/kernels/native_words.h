/* Word loops and fusion arithmetic of the compiled kernel: postings, chunks and tables of scores enter; sums leave. */

typedef struct {
    const uint32_t *lengths;
    int64_t rows;
    double base, slope;
} Norm;

typedef struct {
    const uint32_t *slots;
    const uint16_t *counts;
    int64_t size;
} Entries;

#define PLACE(T, name)                                                                                                 \
    static int64_t name(const T *values, int64_t low, int64_t high, T wanted) /* where it stands or would stand */    \
    {                                                                                                                 \
        while (low < high) {                                                                                          \
            int64_t middle = (low + high) >> 1;                                                                       \
            if (values[middle] < wanted) low = middle + 1;                                                            \
            else high = middle;                                                                                       \
        }                                                                                                             \
        return low;                                                                                                   \
    }
PLACE(uint32_t, place_of_hash)
PLACE(uint64_t, place_of_id)

INLINE int64_t share(uint32_t hash, int64_t size) /* how far among evenly spread hashes this one would stand */
{
    return (int64_t)(((uint64_t)hash * (uint64_t)size) >> 32);
}

INLINE double score(double weight, uint16_t count, Norm norm, uint32_t slot)
{
    return weight * (double)count / ((double)count + (norm.base + norm.slope * (double)norm.lengths[slot]));
}

static int64_t slots_of(const uint64_t *known, const int64_t *slots, int64_t size, const uint64_t *wanted, int64_t count, int64_t *found)
{
    int64_t missing = 0, place = 0;
    for (int64_t at = 0; at < count; at++) {
        place = place_of_id(known, place < size && known[place] <= wanted[at] ? place : 0, size, wanted[at]);
        int there = place < size && known[place] == wanted[at];
        found[at] = there ? slots[place] : -1;
        missing += !there;
    }
    return missing;
}

/* Hashes are spread evenly: hardly any stands farther than 2·√size from its share of the way, and looking there touches
   a page or three instead of one a step. */
static void find(const uint32_t *terms, const int64_t *ends, int64_t size, const uint32_t *hashes, int64_t count, int64_t *starts, int64_t *stops)
{
    int64_t near = (int64_t)(2 * sqrt((double)size)) + 1;
    for (int64_t at = 0; at < count; at++) {
        int64_t way = share(hashes[at], size), low = way > near ? way - near : 0, high = way + near < size ? way + near : size;
        if (low > 0 && terms[low] >= hashes[at]) low = 0;
        if (high < size && terms[high] < hashes[at]) high = size;
        int64_t place = place_of_hash(terms, low, high, hashes[at]);
        int there = place < size && terms[place] == hashes[at];
        starts[at] = there && place > 0 ? ends[place - 1] : 0;
        stops[at] = there ? ends[place] : 0;
    }
}

typedef struct {
    const uint32_t *hashes;
    const double *weights;
    int64_t count;
    Norm norm;
} Leg;

typedef struct {
    const uint32_t *terms;
    const uint16_t *counts;
    const int64_t *ends;
    int64_t size, rows; /* of terms, of ends */
} Chunks;

static void fetch_terms(const Chunks *said, int64_t slot, const Leg *legs, int64_t count)
{
    if (slot < 0 || slot >= said->rows) return;
    uint64_t start = slot > 0 ? (uint64_t)said->ends[slot - 1] : 0, size = (uint64_t)said->ends[slot] - start;
    for (int64_t leg = 0; leg < count; leg++)
        for (int64_t at = 0; at < legs[leg].count; at++) FETCH(said->terms, start + ((legs[leg].hashes[at] * size) >> 32));
}

/* Exact sums of some chunks in all legs. First, by slot, where the hashes of all legs stand: chunks lie all over a
   mapped file, and one that was waited for is used for all legs. */
static int64_t bm25(const Chunks *said, const int64_t *slots, int64_t count, const Leg *legs, int64_t leg_count, double *sums)
{
    int64_t wanted = 0, to = 0;
    for (int64_t leg = 0; leg < leg_count; leg++) wanted += legs[leg].count;
    int64_t *places = malloc((size_t)(count * wanted + 1) * sizeof *places);
    if (!places) return NO_MEMORY;
    for (int64_t at = 0; at < count; at++) {
        if (at + 2 * AHEAD < count) FETCH(said->ends, slots[at + 2 * AHEAD]);
        if (at + AHEAD < count) fetch_terms(said, slots[at + AHEAD], legs, leg_count);
        int64_t slot = slots[at], start, end;
        if (slot < 0 || slot >= said->rows) goto damaged;
        start = slot > 0 ? said->ends[slot - 1] : 0, end = said->ends[slot];
        if (start < 0 || start > end || end > said->size) goto damaged;
        for (int64_t leg = 0; leg < leg_count; leg++)
            for (int64_t each = 0; each < legs[leg].count; each++) {
                uint32_t hash = legs[leg].hashes[each];
                int64_t place = start + share(hash, end - start);
                while (place > start && said->terms[place - 1] >= hash) place--;
                while (place < end && said->terms[place] < hash) place++;
                places[to] = place < end && said->terms[place] == hash ? place : -1;
                if (places[to++] >= 0) FETCH(said->counts, place);
            }
    }
    for (int64_t leg = 0, first = 0; leg < leg_count; first += legs[leg++].count)
        for (int64_t at = 0; at < count; at++) {
            const int64_t *own = places + at * wanted + first;
            double total = 0;
            if (slots[at] >= legs[leg].norm.rows) goto damaged;
            for (int64_t each = 0; each < legs[leg].count; each++)
                if (own[each] >= 0)
                    total += score(legs[leg].weights[each], said->counts[own[each]], legs[leg].norm, (uint32_t)slots[at]);
            sums[leg * count + at] = total;
        }
    free(places);
    return 0;
damaged:
    free(places);
    return DAMAGED;
}

static int64_t add_up(Entries in, const int64_t *starts, const int64_t *ends, const double *weights, int64_t count, Norm norm, double *sums)
{
    for (int64_t at = 0; at < count; at++) {
        if (starts[at] < 0 || ends[at] > in.size) return DAMAGED;
        for (int64_t entry = starts[at]; entry < ends[at]; entry++) {
            uint32_t slot = in.slots[entry];
            if (slot >= norm.rows) return DAMAGED;
            sums[slot] += score(weights[at], in.counts[entry], norm, slot);
        }
    }
    return 0;
}

/* As add_up, of the chunks that pass; each is noted when it is met first. How many it are. All pass where `passing` is
   NULL: then what each entry needs is fetched early; where few pass, most of that would be in vain. */
INLINE int64_t add_noted(Entries in, const int64_t *starts, const int64_t *ends, const double *weights, int64_t count, Norm norm,
                         const uint8_t *passing, double *sums, uint32_t *found, int64_t room)
{
    int64_t size = 0;
    for (int64_t at = 0; at < count; at++) {
        double weight = weights[at];
        int64_t end = ends[at];
        if (starts[at] < 0 || end > in.size) return DAMAGED;
        for (int64_t entry = starts[at]; entry < end; entry++) {
            if (!passing && entry + ENTRIES_AHEAD < end) {
                FETCH(sums, in.slots[entry + ENTRIES_AHEAD]);
                FETCH(norm.lengths, in.slots[entry + ENTRIES_AHEAD]);
            }
            uint32_t slot = in.slots[entry];
            if (slot >= norm.rows || size >= room) return DAMAGED;
            if (passing && !passing[slot]) continue;
            double before = sums[slot], after = before + score(weight, in.counts[entry], norm, slot);
            found[size] = slot;
            size += (before == 0) & (after != 0);
            sums[slot] = after;
        }
    }
    return size;
}

/* The best k of `size` noted chunks, and all that equal the last; the arrays have room for all. */
static int64_t select_best(const double *sums, const uint32_t *found, int64_t size, int64_t k, double *scores, int64_t *chosen, double *values)
{
    int64_t to = 0, kept = 0;
    for (int64_t at = 0; at < size; at++) scores[at] = sums[found[at]];
    double least = size > k ? reached_double(scores, size, k, values) : -INFINITY;
    for (int64_t at = 0; at < size; at++)
        if (scores[at] >= least) chosen[to] = found[at], scores[to++] = scores[at];
    least = to > k ? kth_double(scores, to, k, values) : -INFINITY;
    for (int64_t at = 0; at < to; at++)
        if (scores[at] >= least) chosen[kept] = chosen[at], values[kept++] = scores[at];
    return kept;
}

/* --- fusion ---------------------------------------------------------------------------------------------------- */

/* In the order in which numpy adds, so that the last digit is the same: halves of halves, eight sums in each. */
static double summed(const double *values, int64_t count)
{
    if (count > 128) {
        int64_t half = count / 2 - count / 2 % 8;
        return summed(values, half) + summed(values + half, count - half);
    }
    double total = 0, beside[8];
    int64_t at = 0;
    if (count >= 8) {
        memcpy(beside, values, sizeof beside);
        for (at = 8; at + 8 <= count; at += 8)
            for (int lane = 0; lane < 8; lane++) beside[lane] += values[at + lane];
        total = ((beside[0] + beside[1]) + (beside[2] + beside[3])) + ((beside[4] + beside[5]) + (beside[6] + beside[7]));
    }
    for (; at < count; at++) total += values[at];
    return total;
}

/* Mean, distances from it and their deviation. */
static double deviation_of(const double *values, int64_t count, double *mean, double *apart, double *squared)
{
    *mean = summed(values, count) / (double)count;
    for (int64_t at = 0; at < count; at++) apart[at] = values[at] - *mean, squared[at] = apart[at] * apart[at];
    return sqrt(summed(squared, count) / (double)count);
}

static int64_t joined(const uint64_t *every, const int64_t *order, int64_t count, uint64_t *ids, int64_t *places)
{
    int64_t size = 0;
    for (int64_t number = 0; number < count; number++) {
        int64_t at = order[number];
        if (at < 0 || at >= count) return DAMAGED;
        if (size == 0 || every[at] != ids[size - 1]) ids[size++] = every[at];
        places[at] = size - 1;
    }
    return size;
}

/* Ranks, share·sign(z)·z² by leg, and their sums; left to numpy where scores are missing or a list is not in the order
   of its scores, equal ones by place. `room` has two values a column. */
static int64_t squares(const double *scores, int64_t legs, int64_t columns, const int64_t *places, int64_t entries, const int64_t *sizes,
                       const double *shares, double least, int64_t *ranks, double *parts, double *raw, double *room)
{
    for (int64_t at = 0; at < legs * columns; at++)
        if (isnan(scores[at])) return LEFT_TO_NUMPY;
    memset(ranks, 0, (size_t)(legs * columns) * sizeof *ranks);
    for (int64_t leg = 0, start = 0; leg < legs; start += sizes[leg++]) {
        const double *own = scores + leg * columns;
        if (sizes[leg] < 0 || sizes[leg] > entries - start) return DAMAGED;
        for (int64_t at = start; at < start + sizes[leg]; at++) {
            int64_t place = places[at], before = at > start ? places[at - 1] : 0;
            if (place < 0 || place >= columns) return DAMAGED;
            if (at > start && !(own[place] < own[before] || (own[place] == own[before] && place > before)))
                return LEFT_TO_NUMPY;
            ranks[leg * columns + place] = at - start + 1;
        }
    }
    for (int64_t leg = 0; leg < legs; leg++) {
        double mean, deviation = deviation_of(scores + leg * columns, columns, &mean, room, room + columns);
        if (deviation < least) deviation = INFINITY;
        for (int64_t at = 0; at < columns; at++) {
            double z = room[at] / deviation, part = shares[leg] * copysign(z * z, z);
            parts[leg * columns + at] = part;
            raw[at] = leg ? raw[at] + part : part;
        }
    }
    return 0;
}

typedef struct {
    double share, hubness, smoothing, flat, least, most;
} How;

/* Set the dense leg's parts to those of cosines corrected for hubness, add all parts up, and move sums towards the mean
   of the nearest ones', weighed by likeness. `room` has two values a column and one a row. */
static int64_t smooth(const int64_t *near, const double *likeness, int64_t width, const int64_t *rows, int64_t count, const double *scores,
                      int64_t columns, double *parts, int64_t legs, int64_t dense, How how, double *sums, double *added, double *room)
{
    double *crowded = room + 2 * columns, mean, deviation = deviation_of(scores, columns, &mean, room, room + columns);
    for (int64_t at = 0; at < count; at++) {
        if (rows[at] < 0 || rows[at] >= columns) return DAMAGED;
        for (int64_t each = 0; each < width; each++)
            if (near[at * width + each] < 0 || near[at * width + each] >= count) return DAMAGED;
        crowded[at] = summed(likeness + at * width, width) / (double)width;
    }
    double usual = summed(crowded, count) / (double)count;
    for (int64_t at = 0; at < count && deviation >= how.flat; at++) {
        double z = (scores[rows[at]] - how.hubness * (crowded[at] - usual) - mean) / deviation;
        parts[dense * columns + rows[at]] = how.share * copysign(z * z, z);
    }
    for (int64_t at = 0; at < columns; at++) {
        sums[at] = parts[at], added[at] = 0;
        for (int64_t leg = 1; leg < legs; leg++) sums[at] += parts[leg * columns + at];
    }
    for (int64_t at = 0; at < count; at++) {
        double total = 0, weights = 0;
        for (int64_t each = 0; each < width; each++) {
            double weight = likeness[at * width + each];
            if (how.least > weight) weight = how.least;
            total += weight * sums[rows[near[at * width + each]]];
            weights += weight;
        }
        double move = how.smoothing * (total / weights - sums[rows[at]]);
        added[rows[at]] = move < -how.most ? -how.most : move > how.most ? how.most : move;
    }
    return 0;
}
