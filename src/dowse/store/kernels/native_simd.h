/* Vector loops of the compiled kernel, included once for each processor: TARGET is its attribute, WIDTH the bytes of
   its registers, COUNTS whether it counts the bits of many words at once, and NAME(loop) the name of a loop. */

TARGET INLINE uint64_t NAME(by_byte)(uint64_t x) /* bits set in each byte */
{
    x -= (x >> 1) & M1;
    x = (x & M2) + ((x >> 2) & M2);
    return (x + (x >> 4)) & M4;
}

TARGET INLINE uint64_t NAME(bytes_summed)(uint64_t x)
{
    x = (x & 0x00ff00ff00ff00ffu) + ((x >> 8) & 0x00ff00ff00ff00ffu);
    x += x >> 32;
    return (x + (x >> 16)) & 0xffffu;
}

#if COUNTS
TARGET static void NAME(add_six)(const uint64_t *const *columns, const uint64_t *query, int64_t rows, uint16_t *to)
{
    for (int64_t row = 0; row < rows; row += 8) {
        __mmask8 here = rows - row < 8 ? (__mmask8)((1u << (rows - row)) - 1) : 0xff;
        __m512i sum = _mm512_setzero_si512();
        for (int word = 0; word < 6; word++) {
            __m512i differ = _mm512_xor_si512(_mm512_maskz_loadu_epi64(here, columns[word] + row), _mm512_set1_epi64((long long)query[word]));
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(differ));
        }
        _mm_mask_storeu_epi16(to + row, here, _mm_add_epi16(_mm_maskz_loadu_epi16(here, to + row), _mm512_cvtepi64_epi16(sum)));
    }
}
#else
/* Adders turn the bits of six words into ones, twos and fours, so that three words are counted instead of six; where
   the processor counts the bits of many words at once (`counts`), that is faster. */
TARGET INLINE void NAME(add_six)(const uint64_t *const *columns, const uint64_t *query, int64_t rows, uint16_t *restrict to)
{
    const uint64_t *restrict a = columns[0], *restrict b = columns[1], *restrict c = columns[2];
    const uint64_t *restrict d = columns[3], *restrict e = columns[4], *restrict f = columns[5];
    uint64_t p = query[0], q = query[1], r = query[2], s = query[3], t = query[4], u = query[5];
    for (int64_t row = 0; row < rows; row++) {
        uint64_t x = a[row] ^ p, y = b[row] ^ q, z = c[row] ^ r, v = d[row] ^ s, w = e[row] ^ t, o = f[row] ^ u;
        uint64_t one = x ^ y ^ z, two = (x & y) | (z & (x ^ y)), other = v ^ w ^ o, twice = (v & w) | (o & (v ^ w));
        uint64_t carried = one & other, differ = two ^ twice;
        uint64_t twos = differ ^ carried, fours = (two & twice) | (carried & differ);
        uint64_t counted = NAME(by_byte)(one ^ other) + 2 * NAME(by_byte)(twos) + 4 * NAME(by_byte)(fours);
        to[row] += (uint16_t)NAME(bytes_summed)(counted);
    }
}
#endif

TARGET INLINE uint16_t NAME(ones)(uint64_t word)
{
    return (uint16_t)(COUNTS ? (uint64_t)__builtin_popcountll(word) : NAME(bytes_summed)(NAME(by_byte)(word)));
}

TARGET static void NAME(all_distances)(const uint64_t *const *columns, int64_t words, const uint64_t *query, int64_t rows, uint16_t *restrict to)
{
    for (int64_t start = 0; start < rows; start += BLOCK) { /* so that the distances stay in the cache */
        int64_t size = rows - start < BLOCK ? rows - start : BLOCK, word = 0;
        memset(to + start, 0, (size_t)size * sizeof *to);
        for (; word + 6 <= words; word += 6) {
            const uint64_t *six[6];
            for (int each = 0; each < 6; each++) six[each] = columns[word + each] + start;
            NAME(add_six)(six, query + word, size, to + start);
        }
        for (; word < words; word++) {
            const uint64_t *restrict column = columns[word] + start;
            for (int64_t row = 0; row < size; row++) to[start + row] += NAME(ones)(column[row] ^ query[word]);
        }
    }
}
TARGET static void NAME(some_distances)(const uint64_t *const *columns, int64_t words, const uint64_t *query,
                               const int64_t *restrict allowed, int64_t rows, uint16_t *restrict to)
{
    memset(to, 0, (size_t)rows * sizeof *to);
    for (int64_t word = 0; word < words; word++)
        for (int64_t at = 0; at < rows; at++) to[at] += NAME(ones)(columns[word][allowed[at]] ^ query[word]);
}
TARGET static int64_t NAME(within)(const uint16_t *distances, int64_t count, uint16_t limit)
{
    int64_t found = 0;
    for (int64_t start = 0; start < count; start += 4096) {
        uint16_t here = 0;
        int64_t end = count - start < 4096 ? count : start + 4096;
        for (int64_t at = start; at < end; at++) here = (uint16_t)(here + (distances[at] <= limit));
        found += here;
    }
    return found;
}
/* Sums beside each other, as SIMD needs; the last bits of a product are those of a processor. */
TARGET INLINE float NAME(product)(const int8_t *values, const float *vector, int64_t size)
{
    int64_t at = 0;
    float lanes[16] = {0}, sum = 0;
#if WIDTH == 64
#define WIDE(from) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(from))))
    __m512 a = _mm512_setzero_ps(), b = a;
    for (; at + 32 <= size; at += 32) {
        a = _mm512_fmadd_ps(WIDE(values + at), _mm512_loadu_ps(vector + at), a);
        b = _mm512_fmadd_ps(WIDE(values + at + 16), _mm512_loadu_ps(vector + at + 16), b);
    }
    sum = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
#elif WIDTH == 32
#define WIDE(from) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(from))))
    __m256 a = _mm256_setzero_ps(), b = a;
    for (; at + 16 <= size; at += 16) {
        a = _mm256_fmadd_ps(WIDE(values + at), _mm256_loadu_ps(vector + at), a);
        b = _mm256_fmadd_ps(WIDE(values + at + 8), _mm256_loadu_ps(vector + at + 8), b);
    }
    _mm256_storeu_ps(lanes, _mm256_add_ps(a, b));
#else
    for (; at + 16 <= size; at += 16)
        for (int lane = 0; lane < 16; lane++) lanes[lane] += (float)values[at + lane] * vector[at + lane];
#endif
    for (int lane = 0; lane < 16 && WIDTH < 64; lane++) sum += lanes[lane];
    for (; at < size; at++) sum += (float)values[at] * vector[at];
    return sum;
}

/* Products of some rows, with the coarse half alone or with both. Rows lie all over a mapped file, and are waited for
   longer than they are worked on unless they are fetched early. */
TARGET static int64_t NAME(products)(Packed kept, const int64_t *rows, int64_t count, int both, float *found)
{
    for (int64_t at = 0; at < count; at++) {
        if (at + AHEAD < count)
            for (int64_t step = 0; step < kept.size; step += LINE) {
                FETCH(kept.coarse, rows[at + AHEAD] * (uint64_t)kept.size + (uint64_t)step);
                if (both) FETCH(kept.fine, rows[at + AHEAD] * (uint64_t)kept.size + (uint64_t)step);
            }
        int64_t row = rows[at];
        if (row < 0 || row >= kept.rows) return DAMAGED;
        float sum = NAME(product)(kept.coarse + row * kept.size, kept.vector, kept.size);
        if (both) sum += NAME(product)(kept.fine + row * kept.size, kept.vector, kept.size) / 254.0f;
        found[at] = sum * kept.scales[row];
    }
    return 0;
}
TARGET static int64_t NAME(unpack)(Packed kept, const int64_t *rows, int64_t count, float *restrict found)
{
    for (int64_t at = 0; at < count; at++) {
        int64_t row = rows[at];
        if (row < 0 || row >= kept.rows) return DAMAGED;
        const int8_t *coarse = kept.coarse + row * kept.size, *fine = kept.fine + row * kept.size;
        for (int64_t each = 0; each < kept.size; each++)
            found[at * kept.size + each] = ((float)fine[each] / 254.0f + (float)coarse[each]) * kept.scales[row];
    }
    return 0;
}

static const Loops NAME(loops) = {NAME(all_distances), NAME(some_distances), NAME(within), NAME(products), NAME(unpack)};
#undef TARGET
#undef WIDTH
#undef COUNTS
#undef NAME
#undef WIDE
