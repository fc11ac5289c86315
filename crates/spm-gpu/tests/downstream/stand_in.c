// A libcuda of a machine without devices. cuInit answers its argument, so that a program sees
// whether its call arrives as it was made.
#include <stddef.h>

static int calls;

int cuInit(unsigned flags) {
    ++calls;
    return (int)flags;
}

// The forwarders do not have this one.
int cuMemAllocPitch_v2(void *address, void *pitch, size_t width, size_t height, unsigned size) {
    (void)address, (void)pitch, (void)width, (void)height, (void)size;
    ++calls;
    return 226;
}

int cuDeviceGetCount(int *count) {
    ++calls;
    *count = 0;
    return 0;
}

int stand_in_calls(void) {
    return calls;
}
