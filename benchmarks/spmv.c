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
