/* Compiled kernel: the module `_native`, called by native_kernel.py. Arrays enter through the buffer protocol.

   Lengths are checked here against each other (ValueError), indices in the loops against lengths (CorruptIndexError).
   The loops of the store run without the interpreter's lock. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "native_vectors.h"
#include "native_words.h"

#define DATA(type, number) ((type *)b[number].buf)
#define SIZE(number) (b[number].itemsize ? b[number].len / b[number].itemsize : 0)
#define UNLOCKED(statement)                                                                                            \
    do {                                                                                                              \
        PyThreadState *state = PyEval_SaveThread();                                                                   \
        statement;                                                                                                    \
        PyEval_RestoreThread(state);                                                                                  \
    } while (0)

enum { UNFIT = -4 };

/* Whether items have these sizes, a digit each, and lie where a processor may read them. */
static int fits(const Py_buffer *b, const char *sizes)
{
    for (; *sizes; sizes++, b++)
        if (b->itemsize != *sizes - '0' || (b->len && (uintptr_t)b->buf % (uintptr_t)b->itemsize)) return 0;
    return 1;
}

/* Release the arrays, and return a number or raise what it stands for. */
static PyObject *done(Py_buffer *b, int count, int64_t number)
{
    for (int at = 0; at < count; at++) PyBuffer_Release(&b[at]);
    if (number >= 0) return PyLong_FromLongLong(number);
    if (number == LEFT_TO_NUMPY) Py_RETURN_NONE;
    if (number == NO_MEMORY) return PyErr_NoMemory();
    if (number == UNFIT) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the lengths or types of these arrays do not fit together");
        return NULL;
    }
    PyObject *errors = PyImport_ImportModule("dowse.errors");
    PyObject *type = errors ? PyObject_GetAttrString(errors, "CorruptIndexError") : NULL;
    if (type) PyErr_SetString(type, "a file of the index points outside of another one; run `dowse rebuild`");
    Py_XDECREF(errors), Py_XDECREF(type);
    return NULL;
}

/* distances(columns, query, allowed or an empty array, all rows?, distances, count) → limit << 40 | found */
static PyObject *py_distances(PyObject *self, PyObject *args)
{
    Py_buffer b[3], *held = NULL;
    const uint64_t **columns = NULL;
    PyObject *given;
    int everything;
    long long wanted;
    int64_t number = UNFIT, words = 0, found = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!y*y*pw*L", &PyTuple_Type, &given, &b[0], &b[1], &everything, &b[2], &wanted)) return NULL;
    int64_t count = PyTuple_Size(given), rows = SIZE(2), shortest = INT64_MAX;
    held = calloc((size_t)count + 1, sizeof *held), columns = calloc((size_t)count + 1, sizeof *columns);
    if (!held || !columns) {
        number = NO_MEMORY;
        goto end;
    }
    for (; words < count; words++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(given, words), &held[words], PyBUF_SIMPLE)) goto end;
        columns[words] = held[words].buf;
        if (held[words].len / 8 < shortest) shortest = held[words].len / 8;
        if (!fits(&held[words], "8")) {
            words++;
            goto end;
        }
    }
    if (!fits(b, "882") || count < 1 || count > COLUMNS || SIZE(0) != count || (everything ? shortest : SIZE(1)) < rows) goto end;
    number = 0;
    for (int64_t at = 0; at < rows && !everything; at++)
        if (DATA(int64_t, 1)[at] < 0 || DATA(int64_t, 1)[at] >= shortest) number = DAMAGED;
    if (!number) UNLOCKED({
        if (everything) simd->all_distances(columns, words, DATA(uint64_t, 0), rows, DATA(uint16_t, 2));
        else simd->some_distances(columns, words, DATA(uint64_t, 0), DATA(int64_t, 1), rows, DATA(uint16_t, 2));
        number = last_distance(DATA(uint16_t, 2), rows, wanted, 64 * words, &found);
    });
    if (number >= 0) number = number << 40 | found;
end:
    for (int64_t at = 0; held && at < words; at++) PyBuffer_Release(&held[at]);
    free(held), free(columns);
    return done(b, 3, number);
}

static PyObject *py_pick(PyObject *self, PyObject *args) /* distances, limit, chosen → how many */
{
    Py_buffer b[2];
    unsigned short limit;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*Hw*", &b[0], &limit, &b[1])) return NULL;
    if (fits(b, "28")) UNLOCKED(number = pick(DATA(uint16_t, 0), SIZE(0), limit, DATA(int64_t, 1), SIZE(1)));
    return done(b, 2, number);
}

/* b: rows, coarse, fine, scales, and a vector or anything else. */
static int packed(Py_buffer *b, int64_t size, Packed *kept)
{
    int64_t bytes;
    *kept = (Packed){b[1].buf, b[2].buf, b[3].buf, b[4].buf, SIZE(3), size};
    return fits(b, "8114") && size > 0 && !__builtin_mul_overflow(kept->rows, size, &bytes) && b[1].len == bytes && b[2].len == bytes;
}

static PyObject *py_nearest(PyObject *self, PyObject *args)
{
    Py_buffer b[7];
    long long k;
    float doubt;
    Packed kept;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*w*Lf", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &k, &doubt)) return NULL;
    if (packed(b, SIZE(4), &kept) && fits(&b[4], "484") && k > 0 && k < SIZE(0) && SIZE(5) >= SIZE(0) && SIZE(6) >= SIZE(0))
        UNLOCKED(number = nearest(kept, DATA(int64_t, 0), SIZE(0), k, doubt, DATA(int64_t, 5), DATA(float, 6)));
    return done(b, 7, number);
}

static PyObject *py_dots(PyObject *self, PyObject *args)
{
    Py_buffer b[6];
    Packed kept;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5])) return NULL;
    if (packed(b, SIZE(4), &kept) && fits(&b[4], "44") && SIZE(5) == SIZE(0))
        UNLOCKED(number = simd->products(kept, DATA(int64_t, 0), SIZE(0), 1, DATA(float, 5)));
    return done(b, 6, number);
}

static PyObject *py_unpack(PyObject *self, PyObject *args)
{
    Py_buffer b[5];
    long long size;
    Packed kept;
    int64_t number = UNFIT, items;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*L", &b[0], &b[1], &b[2], &b[3], &b[4], &size)) return NULL;
    if (packed(b, size, &kept) && fits(&b[4], "4") && !__builtin_mul_overflow(SIZE(0), size, &items) && SIZE(4) == items)
        UNLOCKED(number = simd->unpack(kept, DATA(int64_t, 0), SIZE(0), DATA(float, 4)));
    return done(b, 5, number);
}

/* bm25(slots, terms, counts, ends, sums, (hashes, weights, lengths, base, slope) of each leg …) */
static PyObject *py_bm25(PyObject *self, PyObject *args)
{
    Py_buffer b[5 + 3 * LEGS];
    Leg legs[LEGS];
    int64_t number = UNFIT, count = PyTuple_Size(args) - 5, known = 0;
    PyObject *first = PyTuple_GetSlice(args, 0, 5);
    (void)self;
    int parsed = first && PyArg_ParseTuple(first, "y*y*y*y*w*", &b[0], &b[1], &b[2], &b[3], &b[4]);
    Py_XDECREF(first); /* the tuple of the call still holds what is in it */
    if (!parsed) return NULL;
    for (; known < count && known < LEGS; known++) {
        Py_buffer *own = b + 5 + 3 * known;
        Leg *leg = &legs[known];
        PyObject *given = PyTuple_GetItem(args, 5 + known);
        if (!PyTuple_Check(given)) goto end;
        if (!PyArg_ParseTuple(given, "y*y*y*dd", own, own + 1, own + 2, &leg->norm.base, &leg->norm.slope)) goto end;
        leg->hashes = own[0].buf, leg->weights = own[1].buf, leg->count = own[0].len / 4;
        leg->norm.lengths = own[2].buf, leg->norm.rows = own[2].len / 4;
        if (!fits(own, "484") || own[1].len / 8 != leg->count) {
            known++;
            goto end;
        }
    }
    Chunks said = {b[1].buf, b[2].buf, b[3].buf, SIZE(1), SIZE(3)};
    if (fits(b, "84288") && known == count && SIZE(1) == SIZE(2) && SIZE(4) == SIZE(0) * count)
        UNLOCKED(number = bm25(&said, DATA(int64_t, 0), SIZE(0), legs, count, DATA(double, 4)));
end:
    return done(b, 5 + 3 * (int)known, number);
}

static PyObject *py_slots_of(PyObject *self, PyObject *args) /* known, slots, wanted, found → how many are missing */
{
    Py_buffer b[4];
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &b[0], &b[1], &b[2], &b[3])) return NULL;
    if (fits(b, "8888") && SIZE(0) == SIZE(1) && SIZE(2) == SIZE(3))
        number = slots_of(DATA(uint64_t, 0), DATA(int64_t, 1), SIZE(0), DATA(uint64_t, 2), SIZE(2), DATA(int64_t, 3));
    return done(b, 4, number);
}

static PyObject *py_find(PyObject *self, PyObject *args) /* terms, ends, hashes, starts, stops */
{
    Py_buffer b[5];
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*", &b[0], &b[1], &b[2], &b[3], &b[4])) return NULL;
    if (fits(b, "48488") && SIZE(0) == SIZE(1) && SIZE(2) == SIZE(3) && SIZE(2) == SIZE(4)) {
        UNLOCKED(find(DATA(uint32_t, 0), DATA(int64_t, 1), SIZE(0), DATA(uint32_t, 2), SIZE(2), DATA(int64_t, 3), DATA(int64_t, 4)));
        number = 0;
    }
    return done(b, 5, number);
}

static PyObject *py_add_up(PyObject *self, PyObject *args) /* slots, counts, starts, ends, weights, lengths, sums, base, slope */
{
    Py_buffer b[7];
    Norm norm;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*w*dd", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &norm.base, &norm.slope)) return NULL;
    norm.lengths = b[5].buf, norm.rows = SIZE(5);
    Entries in = {b[0].buf, b[1].buf, SIZE(0)};
    if (fits(b, "4288848") && SIZE(0) == SIZE(1) && SIZE(2) == SIZE(3) && SIZE(2) == SIZE(4) && SIZE(6) >= norm.rows)
        UNLOCKED(number = add_up(in, DATA(int64_t, 2), DATA(int64_t, 3), DATA(double, 4), SIZE(2), norm, DATA(double, 6)));
    return done(b, 7, number);
}

/* best(slots, counts, starts, ends, weights, lengths, mask, sums, found, scores, chosen, values, base, slope, size, k)
   → noted << 32 | kept; `size` places of `found` are taken. */
static PyObject *py_best(PyObject *self, PyObject *args)
{
    Py_buffer b[12];
    Norm norm;
    long long taken, k;
    int64_t number = UNFIT, kept = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*w*w*w*w*ddLL", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &b[7], &b[8],
                          &b[9], &b[10], &b[11], &norm.base, &norm.slope, &taken, &k))
        return NULL;
    norm.lengths = b[5].buf, norm.rows = SIZE(5);
    Entries in = {b[0].buf, b[1].buf, SIZE(0)};
    int64_t rows = norm.rows, room = SIZE(8) - taken < rows + 1 ? SIZE(8) - taken : rows + 1;
    if (fits(b, "428884184888") && SIZE(0) == SIZE(1) && SIZE(2) == SIZE(3) && SIZE(2) == SIZE(4) && SIZE(7) >= rows && taken >= 0 &&
        k > 0 && (!SIZE(6) || SIZE(6) >= rows) && room >= 0 && SIZE(9) > rows && SIZE(10) > rows && SIZE(11) > rows) {
        const int64_t *starts = b[2].buf, *ends = b[3].buf;
        const uint8_t *mask = b[6].buf;
        uint32_t *found = DATA(uint32_t, 8) + taken;
        UNLOCKED({
            number = SIZE(6) ? add_noted(in, starts, ends, b[4].buf, SIZE(2), norm, mask, b[7].buf, found, room)
                             : add_noted(in, starts, ends, b[4].buf, SIZE(2), norm, NULL, b[7].buf, found, room);
            if (number > 0) kept = select_best(b[7].buf, found, number, k, b[9].buf, b[10].buf, b[11].buf);
        });
        if (number >= 0) number = number << 32 | kept;
    }
    return done(b, 12, number);
}

static PyObject *py_clear(PyObject *self, PyObject *args) /* sums, found, size */
{
    Py_buffer b[2];
    long long size;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*L", &b[0], &b[1], &size)) return NULL;
    if (fits(b, "84") && size >= 0 && size <= SIZE(1)) {
        number = 0;
        for (int64_t at = 0; at < size; at++)
            if (DATA(uint32_t, 1)[at] < (uint64_t)SIZE(0)) DATA(double, 0)[DATA(uint32_t, 1)[at]] = 0;
            else number = DAMAGED;
    }
    return done(b, 2, number);
}

static PyObject *py_joined(PyObject *self, PyObject *args) /* every, order, ids, places → how many ids */
{
    Py_buffer b[4];
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*w*w*", &b[0], &b[1], &b[2], &b[3])) return NULL;
    if (fits(b, "8888") && SIZE(0) == SIZE(1) && SIZE(0) == SIZE(2) && SIZE(0) == SIZE(3))
        number = joined(DATA(uint64_t, 0), DATA(int64_t, 1), SIZE(0), DATA(uint64_t, 2), DATA(int64_t, 3));
    return done(b, 4, number);
}

static PyObject *py_squares(PyObject *self, PyObject *args) /* scores, places, sizes, shares, ranks, parts, raw, least */
{
    Py_buffer b[7];
    double least, *room = NULL;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*d", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &least)) return NULL;
    int64_t legs = SIZE(2), columns = SIZE(6);
    if (fits(b, "8888888") && legs && columns && SIZE(0) / columns == legs && SIZE(0) % columns == 0 && SIZE(3) == legs &&
        SIZE(4) == SIZE(0) && SIZE(5) == SIZE(0)) {
        room = malloc(2 * (size_t)columns * sizeof *room);
        number = !room ? NO_MEMORY : squares(b[0].buf, legs, columns, b[1].buf, SIZE(1), b[2].buf, b[3].buf, least, b[4].buf, b[5].buf, b[6].buf, room);
        free(room);
    }
    return done(b, 7, number);
}

/* smooth(near, likeness, rows, scores, parts, sums, added, dense, share, hubness, smoothing, flat, least, most) */
static PyObject *py_smooth(PyObject *self, PyObject *args)
{
    Py_buffer b[7];
    long long dense;
    How how;
    double *room = NULL;
    int64_t number = UNFIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*Ldddddd", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &dense, &how.share,
                          &how.hubness, &how.smoothing, &how.flat, &how.least, &how.most))
        return NULL;
    int64_t count = SIZE(2), columns = SIZE(3), legs = columns ? SIZE(4) / columns : 0, width = count ? SIZE(0) / count : 0;
    if (fits(b, "8888888") && count && legs && width && SIZE(0) == count * width && SIZE(1) == SIZE(0) && SIZE(4) == legs * columns &&
        SIZE(5) == columns && SIZE(6) == columns && dense >= 0 && dense < legs) {
        room = malloc((size_t)(2 * columns + count) * sizeof *room);
        number = !room ? NO_MEMORY : smooth(b[0].buf, b[1].buf, width, b[2].buf, count, b[3].buf, columns, b[4].buf, legs, dense, how, b[5].buf, b[6].buf, room);
        free(room);
    }
    return done(b, 7, number);
}

static PyObject *py_summed(PyObject *self, PyObject *args)
{
    Py_buffer b[1];
    double total = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*", &b[0])) return NULL;
    int fit = fits(b, "8");
    if (fit) total = summed(b[0].buf, SIZE(0));
    PyObject *number = done(b, 1, fit ? 0 : UNFIT);
    Py_XDECREF(number);
    return number ? PyFloat_FromDouble(total) : NULL;
}

/* Choose the loops for a processor, at most those that this one has; → the name of those in use. */
static PyObject *py_processor(PyObject *self, PyObject *args)
{
    int most = 2;
    (void)self;
    if (!PyArg_ParseTuple(args, "|i", &most)) return NULL;
#if defined(__x86_64__)
    int has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq");
    int has = has_512 ? 2 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
    int level = has < most ? has : most;
    simd = level >= 2 ? &loops_512 : level == 1 ? &loops_2 : &loops_any;
    return PyUnicode_FromString(level >= 2 ? "AVX-512" : level == 1 ? "AVX2" : "SSE2");
#else
    return PyUnicode_FromString("portable");
#endif
}

#define METHOD(name) {#name, py_##name, METH_VARARGS, NULL}
static PyMethodDef methods[] = {METHOD(distances), METHOD(pick), METHOD(nearest), METHOD(dots), METHOD(unpack), METHOD(bm25),
                                METHOD(slots_of), METHOD(find), METHOD(add_up), METHOD(best), METHOD(clear), METHOD(joined),
                                METHOD(squares), METHOD(smooth), METHOD(summed), METHOD(processor), {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
