/* PETSc's side of petsc_matmult.py: MatMult of the 27-point stencil, or of a matrix in a binary file of PETSc.
 *
 *     mpicc -O3 -march=native petsc_matmult.c -lpetsc
 *     mpirun -n 2 a.out SECONDS stencil27 SIDE
 *     mpirun -n 2 a.out SECONDS file PATH
 *
 * Prints one line of JSON. A product's time is that of the slowest rank, after all have begun together.
 */
#include <petscmat.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value of an entry, as spm_testing::distributed::value: it needs all 53 bits. */
static double value(uint64_t row, uint64_t col) {
    uint64_t bits = ((row * 0x9e3779b97f4a7c15ULL) ^ col) * 0xbf58476d1ce4e5b9ULL;
    return 0.1 + (double)(bits >> 11) / 9007199254740992.0;
}

/* Slabs of an n^3 grid, x fastest. */
static PetscErrorCode stencil27(PetscInt n, Mat *a) {
    PetscInt total = n * n * n, begin, end;
    PetscFunctionBeginUser;
    PetscCall(MatCreate(PETSC_COMM_WORLD, a));
    PetscCall(MatSetSizes(*a, PETSC_DECIDE, PETSC_DECIDE, total, total));
    PetscCall(MatSetType(*a, MATAIJ));
    PetscCall(MatSeqAIJSetPreallocation(*a, 27, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*a, 27, NULL, 9, NULL));
    PetscCall(MatGetOwnershipRange(*a, &begin, &end));
    for (PetscInt row = begin; row < end; row++) {
        PetscInt x = row % n, y = row / n % n, z = row / n / n, cols[27], count = 0;
        PetscScalar values[27];
        for (PetscInt k = z - 1; k <= z + 1; k++)
            for (PetscInt j = y - 1; j <= y + 1; j++)
                for (PetscInt i = x - 1; i <= x + 1; i++)
                    if (i >= 0 && i < n && j >= 0 && j < n && k >= 0 && k < n) {
                        cols[count] = i + n * (j + n * k);
                        values[count] = value((uint64_t)row, (uint64_t)cols[count]);
                        count++;
                    }
        PetscCall(MatSetValues(*a, 1, &row, count, cols, values, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    enum { MOST = 100000 };
    static double times[MOST];
    Mat a;
    Vec x, y;
    PetscMPIInt rank, ranks;
    PetscInt rows, begin, end;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    if (argc < 4) SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER, "SECONDS stencil27 SIDE, or SECONDS file PATH");
    double seconds = atof(argv[1]);
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    if (argv[2][0] == 's') {
        PetscCall(stencil27(atoi(argv[3]), &a));
    } else {
        PetscViewer file;
        PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, argv[3], FILE_MODE_READ, &file));
        PetscCall(MatCreate(PETSC_COMM_WORLD, &a));
        PetscCall(MatSetType(a, MATAIJ));
        PetscCall(MatLoad(a, file));
        PetscCall(PetscViewerDestroy(&file));
    }
    PetscCall(MatCreateVecs(a, &x, &y));
    PetscCall(VecGetOwnershipRange(x, &begin, &end));
    for (PetscInt i = begin; i < end; i++) PetscCall(VecSetValue(x, i, 0.5 + (double)(i % 17) / 17.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(x));
    PetscCall(VecAssemblyEnd(x));
    for (int i = 0; i < 3; i++) PetscCall(MatMult(a, x, y));
    double start = MPI_Wtime();
    int count = 0, more = 1;
    while (more) {
        PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
        double since = MPI_Wtime();
        PetscCall(MatMult(a, x, y));
        times[count++] = MPI_Wtime() - since;
        more = count < MOST && (count < 10 || MPI_Wtime() - start < seconds);
        PetscCallMPI(MPI_Bcast(&more, 1, MPI_INT, 0, PETSC_COMM_WORLD));
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, times, count, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
    qsort(times, (size_t)count, sizeof *times, ascending);
    MatInfo info;
    PetscReal norm;
    PetscCall(MatGetInfo(a, MAT_GLOBAL_SUM, &info));
    PetscCall(MatGetSize(a, &rows, NULL));
    PetscCall(VecNorm(y, NORM_1, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "{\"ranks\":%d,\"rows\":%lld,\"entries\":%.0f,\"iterations\":%d,\"median_s\":%.9e,"
                          "\"min_s\":%.9e,\"norm\":%.17e,\"version\":\"%d.%d.%d\",\"index_bytes\":%d}\n",
                          ranks, (long long)rows, info.nz_used, count, times[count / 2], times[0], norm,
                          PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, (int)sizeof(PetscInt)));
    PetscCall(MatDestroy(&a));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    return PetscFinalize();
}
