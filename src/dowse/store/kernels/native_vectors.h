/* Vector loops of the compiled kernel: sign codes and packed vectors enter; nearest rows and products leave.

   Every index that comes from an array is compared with the length of the array it points into. Sums are not reordered
   (-ffp-contract=off, no -ffast-math), so that each processor computes the same digits. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "needs vector extensions of gcc or clang, little-endian; without them Dowse uses numpy"
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { DAMAGED = -1, NO_MEMORY = -2, LEFT_TO_NUMPY = -3 };
enum { AHEAD = 6, ENTRIES_AHEAD = 24, BLOCK = 1024, SAMPLE = 4096, LANES = 4, LEGS = 64, COLUMNS = 1023 };

#define LINE 64 /* bytes of a line of memory */
#define INLINE static inline __attribute__((always_inline))
/* By number, not by pointer: a place outside of the array may be prefetched, but not pointed to. */
#define FETCH(array, at) __builtin_prefetch((const void *)((uintptr_t)(array) + (uintptr_t)(at) * sizeof *(array)), 0, 1)

/* --- processors: the vector loops are compiled for several, and chosen once -------------------------------------- */

typedef struct {
    const int8_t *coarse, *fine;
    const float *scales, *vector;
    int64_t rows, size; /* size: dimensions */
} Packed;

typedef struct {
    void (*all_distances)(const uint64_t *const *columns, int64_t words, const uint64_t *query, int64_t rows, uint16_t *to);
    void (*some_distances)(const uint64_t *const *columns, int64_t words, const uint64_t *query, const int64_t *allowed, int64_t rows, uint16_t *to);
    int64_t (*within)(const uint16_t *distances, int64_t count, uint16_t limit);
    int64_t (*products)(Packed kept, const int64_t *rows, int64_t count, int both, float *found);
    int64_t (*unpack)(Packed kept, const int64_t *rows, int64_t count, float *found);
} Loops;

#define M1 0x5555555555555555u
#define M2 0x3333333333333333u
#define M4 0x0f0f0f0f0f0f0f0fu

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,prefer-vector-width=512")))
#define WIDTH 64
#define COUNTS 1
#define NAME(loop) loop##_512
#include "native_simd.h"
#define TARGET __attribute__((target("avx2,fma,popcnt")))
#define WIDTH 32
#define COUNTS 0
#define NAME(loop) loop##_2
#include "native_simd.h"
#endif
#define TARGET
#define WIDTH 16
#define COUNTS 0
#define NAME(loop) loop##_any
#include "native_simd.h"
static const Loops *simd = &loops_any;

/* --- the k-th largest value ------------------------------------------------------------------------------------ */

/* largest: by Hoare's selection, which leaves the values in another order. A scan ends at the pivot or at what an
   earlier exchange put there, also where values are not numbers.
   reached: what at least k of the values reach, and hardly any more: of some lanes, k have a value that reaches the
   k-th of their largest. Comparing alone takes a third of the time of counting by grade.
   kth: `room` has as many places as there are values. With fewer than k numbers it is not a number, too. */
#define SELECTION(T, largest, reached, kth)                                                                            \
    static T largest(T *values, int64_t count, int64_t k)                                                             \
    {                                                                                                                 \
        int64_t low = 0, high = count - 1, wanted = count - k;                                                        \
        while (low < high) {                                                                                          \
            T pivot = values[(low + high) >> 1];                                                                      \
            int64_t left = low, right = high;                                                                         \
            while (left <= right) {                                                                                   \
                while (values[left] < pivot) left++;                                                                  \
                while (pivot < values[right]) right--;                                                                \
                if (left <= right) {                                                                                  \
                    T swapped = values[left];                                                                         \
                    values[left++] = values[right], values[right--] = swapped;                                        \
                }                                                                                                     \
            }                                                                                                         \
            if (wanted <= right) high = right;                                                                        \
            else if (wanted >= left) low = left;                                                                      \
            else break;                                                                                               \
        }                                                                                                             \
        return values[wanted];                                                                                        \
    }                                                                                                                 \
    static T reached(const T *values, int64_t count, int64_t k, T *room)                                              \
    {                                                                                                                 \
        int64_t lanes = count / 2 / LANES < k ? count : LANES * k;                                                    \
        memcpy(room, values, (size_t)lanes * sizeof(T));                                                              \
        for (int64_t start = lanes; start < count; start += lanes) {                                                  \
            int64_t end = count - start < lanes ? count - start : lanes;                                              \
            for (int64_t at = 0; at < end; at++)                                                                      \
                room[at] = values[start + at] > room[at] ? values[start + at] : room[at];                             \
        }                                                                                                             \
        return largest(room, lanes, k);                                                                               \
    }                                                                                                                 \
    static T kth(const T *values, int64_t count, int64_t k, T *room)                                                  \
    {                                                                                                                 \
        T least = reached(values, count, k, room);                                                                    \
        int64_t size = 0;                                                                                             \
        for (int64_t at = 0; at < count; at++)                                                                        \
            if (values[at] >= least) room[size++] = values[at];                                                       \
        return size < k ? (T)NAN : largest(room, size, k);                                                            \
    }
SELECTION(float, largest_single, reached_single, kth_single)
SELECTION(double, largest_double, reached_double, kth_double)

/* --- vectors --------------------------------------------------------------------------------------------------- */

/* The least distance that `wanted` are within, guessed from a sample and then counted; `found`: how many are. */
static int64_t last_distance(const uint16_t *distances, int64_t count, int64_t wanted, int64_t farthest, int64_t *found)
{
    int64_t *histogram = calloc((size_t)farthest + 1, sizeof *histogram), limit = 0, guessed, fewer;
    int64_t step = count / SAMPLE > 1 ? count / SAMPLE : 1;
    if (!histogram) return NO_MEMORY;
    for (int64_t at = 0; at < count; at += step) histogram[distances[at]] += step;
    for (guessed = histogram[0]; limit < farthest && guessed < wanted; guessed += histogram[limit]) limit++;
    free(histogram);
    *found = simd->within(distances, count, (uint16_t)limit);
    while (limit < farthest && *found < wanted) *found = simd->within(distances, count, (uint16_t)++limit);
    while (limit > 0 && (fewer = simd->within(distances, count, (uint16_t)(limit - 1))) >= wanted) limit--, *found = fewer;
    return limit;
}

INLINE unsigned at_most(const uint16_t *distances, uint16_t limit) /* a bit for each of 16 */
{
#if defined(__x86_64__)
    __m128i most = _mm_set1_epi16((short)limit), zero = _mm_setzero_si128();
    __m128i low = _mm_subs_epu16(_mm_loadu_si128((const __m128i *)distances), most);
    __m128i high = _mm_subs_epu16(_mm_loadu_si128((const __m128i *)(distances + 8)), most);
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(low, zero), _mm_cmpeq_epi16(high, zero)));
#else
    unsigned bits = 0;
    for (unsigned at = 0; at < 16; at++) bits |= (unsigned)(distances[at] <= limit) << at;
    return bits;
#endif
}

static int64_t pick(const uint16_t *distances, int64_t count, uint16_t limit, int64_t *chosen, int64_t room)
{
    int64_t to = 0, at = 0;
    for (; at + 16 <= count; at += 16)
        for (unsigned bits = at_most(distances + at, limit); bits; bits &= bits - 1) {
            if (to >= room) return DAMAGED;
            chosen[to++] = at + __builtin_ctz(bits);
        }
    for (; at < count; at++)
        if (distances[at] <= limit) {
            if (to >= room) return DAMAGED;
            chosen[to++] = at;
        }
    return to;
}

/* See Kernel.nearest; there are more than k rows, and `places` and `found` have room for all. */
static int64_t nearest(Packed kept, const int64_t *rows, int64_t count, int64_t k, float doubt, int64_t *places, float *found)
{
    int64_t size = 0, surely, to = 0, *others = malloc((size_t)count * sizeof *others), failed = NO_MEMORY;
    float *rough = malloc((size_t)count * sizeof *rough), *room = malloc((size_t)count * sizeof *room);
    if (!others || !rough || !room || (failed = simd->products(kept, rows, count, 0, rough))) goto end;
    float last = kth_single(rough, count, k, room);
    for (int64_t at = 0; at < count; at++)
        if (rough[at] >= last) others[size] = rows[at], places[size++] = at;
    failed = DAMAGED;
    if (size < k || simd->products(kept, others, size, 1, found)) goto end; /* products that are not numbers */
    float least = kth_single(found, surely = size, k, room);
    for (int64_t at = 0; at < count; at++)
        if (rough[at] < last && rough[at] + doubt * kept.scales[rows[at]] >= least)
            others[size] = rows[at], places[size++] = at;
    if (simd->products(kept, others + surely, size - surely, 1, found + surely)) goto end;
    least = kth_single(found, size, k, room);
    for (int64_t at = 0; at < size; at++)
        if (found[at] >= least) places[to] = places[at], found[to++] = found[at];
    failed = to < k ? DAMAGED : 0;
end:
    free(others), free(rough), free(room);
    return failed ? failed : to;
}
