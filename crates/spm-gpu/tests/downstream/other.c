// Another library of the process that needs libcuda.
int cuInit(unsigned flags);

int other_init(unsigned flags) {
    return cuInit(flags);
}
