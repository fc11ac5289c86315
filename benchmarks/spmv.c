/* The C side of spmv_cpu.py: a plain loop, and timing without an interpreter in between.
 *
 *     gcc -O3 -march=native -fopenmp -shared -fPIC -o spmv.so spmv.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over at least 5 samples and `seconds`, after two calls; short calls are timed
 * together, as rust/src/operations.rs does it for the other side. */
static double median(void (*run)(void *), void *state, double seconds) {
    enum { MOST = 100000 };
    static double times[MOST];
    run(state);
    double start = now();
    run(state);
    double once = now() - start;
    long calls = once >= 1e-4 ? 1 : (long)(1e-4 / (once > 1e-8 ? once : 1e-8)) + 1;
    int samples = 0;
    start = now();
    while (samples < MOST && (samples < 5 || now() - start < seconds)) {
        double begin = now();
        for (long call = 0; call < calls; call++) run(state);
        times[samples++] = (now() - begin) / (double)calls;
    }
    qsort(times, (size_t)samples, sizeof *times, ascending);
    return times[samples / 2];
}

typedef struct {
    int32_t rows;
    const int32_t *pointers, *columns;
    const double *values, *x;
    double *y;
    int threads;
} plain;

/* y = A x as one would write it down. */
static void run_plain(void *state) {
    const plain *a = state;
    const int32_t *restrict pointers = a->pointers, *restrict columns = a->columns;
    const double *restrict values = a->values, *restrict x = a->x;
    double *restrict y = a->y;
#pragma omp parallel for schedule(static) num_threads(a->threads) if (a->threads > 1)
    for (int32_t row = 0; row < a->rows; row++) {
        double sum = 0;
        for (int32_t entry = pointers[row]; entry < pointers[row + 1]; entry++)
            sum += values[entry] * x[columns[entry]];
        y[row] = sum;
    }
}

double time_plain(int32_t rows, const int32_t *pointers, const int32_t *columns,
                  const double *values, const double *x, double *y, int threads, double seconds) {
    plain a = {rows, pointers, columns, values, x, y, threads};
    return median(run_plain, &a, seconds);
}

typedef struct {
    int32_t rows, k;
    const int32_t *pointers, *columns;
    const double *values, *x;
    double *y;
    int threads;
} dense;

/* A cache line. */
typedef int64_t line __attribute__((vector_size(64)));

/* What Y = A X moves, without the product: reads A and the rows of X that its entries name, in their order, and writes Y. Each
 * row counts as one of the mean length, so that no branch at its end is mispredicted. */
#define MOVE(LINES)                                                                              \
    do {                                                                                         \
        line seen[LINES] = {{0}};                                                                \
        for (int64_t row = first; row < last; row++) {                                           \
            int64_t end = entries * (row + 1) / a->rows;                                         \
            for (; entry < end; entry++) {                                                       \
                const line *of_x = x + (int64_t)columns[entry] * LINES;                          \
                line value = values[entry] - (line){0};                                          \
                _Pragma("GCC unroll 8") for (int j = 0; j < LINES; j++) seen[j] |= of_x[j] ^ value; \
            }                                                                                    \
            _Pragma("GCC unroll 8") for (int j = 0; j < LINES; j++) y[row * LINES + j] = seen[j]; \
        }                                                                                        \
    } while (0)

static void run_traffic(void *state) {
    const dense *a = state;
    const int64_t entries = a->pointers[a->rows];
    const int32_t *restrict columns = a->columns;
    const int64_t *restrict values = (const int64_t *)a->values;
    const line *restrict x = (const line *)a->x;
    line *restrict y = (line *)a->y;
#pragma omp parallel for schedule(static) num_threads(a->threads) if (a->threads > 1)
    for (int part = 0; part < a->threads; part++) {
        int64_t first = (int64_t)a->rows * part / a->threads;
        int64_t last = (int64_t)a->rows * (part + 1) / a->threads;
        int64_t entry = entries * first / a->rows;
        switch (a->k) {
        case 8: MOVE(1); break;
        case 32: MOVE(4); break;
        case 64: MOVE(8); break;
        }
    }
}

/* Of 8, 32 or 64 columns, X and Y row-major and on a cache line; not a number for others. */
double time_traffic(int32_t rows, int32_t k, const int32_t *pointers, const int32_t *columns,
                    const double *values, const double *x, double *y, int threads, double seconds) {
    if (k != 8 && k != 32 && k != 64) return __builtin_nan("");
    dense a = {rows, k, pointers, columns, values, x, y, threads};
    return median(run_traffic, &a, seconds);
}

/* `struct matrix_descr` of mkl_spblas.h. */
typedef struct {
    int type, mode, diagonal;
} description;

/* mkl_sparse_d_mv. */
typedef int (*multiply)(int operation, double alpha, void *matrix, description, const double *x,
                        double beta, double *y);

typedef struct {
    multiply run;
    void *matrix;
    const double *x;
    double *y;
} mkl;

static void run_mkl(void *state) {
    const mkl *a = state;
    const description general = {20, 0, 0};
    a->run(10, 1.0, a->matrix, general, a->x, 0.0, a->y);
}

double time_mkl(multiply run, void *matrix, const double *x, double *y, double seconds) {
    mkl a = {run, matrix, x, y};
    return median(run_mkl, &a, seconds);
}

/* scipy.sparse._sparsetools has no C interface; it is timed from Python. */
