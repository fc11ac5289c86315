// A C program with a shared library made of spm-gpu, and libcuda.
#include <stdio.h>

int cuInit(unsigned flags);
int other_init(unsigned flags);
int stand_in_calls(void);
int spm_downstream_devices(void);

int main(void) {
    int devices = spm_downstream_devices(), calls = stand_in_calls();
    int own = cuInit(226), other = other_init(227);
    printf("devices %d, calls %d, own %d, other %d\n", devices, calls, own, other);
    return !(devices == 0 && calls == 2 && own == 226 && other == 227);
}
