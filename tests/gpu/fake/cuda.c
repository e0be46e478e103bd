/* cuda.c - the driver's calls that gpu_check makes, with bounds that are checked and failures on demand.
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---- */

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int fake_capability(void) { return number_from("FAKE_CUDA_CAPABILITY", 90); }

/* The error that this call is to give, or 0. */
static int failing(const char *call)
{
    static int seen;
    const char *wanted = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(call);
    if (!wanted || strncmp(wanted, call, length) != 0 || (wanted[length] && wanted[length] != ':')) return 0;
    const int which = wanted[length] ? atoi(wanted + length + 1) : 1;
    return ++seen == which ? number_from("FAKE_CUDA_ERROR", 999) : 0;
}

#define MAY_FAIL(call)                                                                                                 \
    do {                                                                                                               \
        const int error = failing(call);                                                                               \
        if (error) return error;                                                                                       \
    } while (0)

/* ---- memory ---- */

enum { BLOCKS = 16 };
static const uint64_t first_address = 0x700000000, apart = 0x100000000;
static struct block {
    unsigned char *data;
    size_t bytes;
} block[BLOCKS];

unsigned char *fake_memory(uint64_t address, size_t bytes)
{
    if (address < first_address) return NULL;
    const uint64_t which = (address - first_address) / apart, at = (address - first_address) % apart;
    if (which >= BLOCKS || !block[which].data) return NULL;
    return at <= block[which].bytes && bytes <= block[which].bytes - at ? block[which].data + at : NULL;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    MAY_FAIL("cuMemAlloc_v2");
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (block[i].data) continue;
        block[i].data = malloc(bytes);
        if (!block[i].data) return 2;
        memset(block[i].data, 0xa5, bytes);
        block[i].bytes = bytes;
        *address = first_address + i * apart;
        return 0;
    }
    return 2;
}

int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address)
{
    MAY_FAIL("cuMemFree_v2");
    const uint64_t which = (address - first_address) / apart;
    if (address < first_address || which >= BLOCKS || !block[which].data) return 1;
    free(block[which].data);
    block[which].data = NULL;
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    MAY_FAIL("cuMemcpyHtoD_v2");
    unsigned char *memory = fake_memory(to, bytes);
    if (!memory) return 1;
    memcpy(memory, from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    MAY_FAIL("cuMemcpyDtoH_v2");
    const unsigned char *memory = fake_memory(from, bytes);
    if (!memory) return 1;
    memcpy(to, memory, bytes);
    return 0;
}

/* ---- the device ---- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    MAY_FAIL("cuInit");
    return flags ? 1 : 0;
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    MAY_FAIL("cuDriverGetVersion");
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    MAY_FAIL("cuDeviceGetCount");
    *count = number_from("FAKE_CUDA_DEVICES", 1);
    return 0;
}

int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    MAY_FAIL("cuDeviceGet");
    *device = 7 + ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int length, int device);
int cuDeviceGetName(char *name, int length, int device)
{
    MAY_FAIL("cuDeviceGetName");
    snprintf(name, (size_t)length, "Fake, \"%d\"", device - 7);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    MAY_FAIL("cuDeviceGetAttribute");
    if (device < 7 || (attribute != 75 && attribute != 76)) return 1;
    *value = attribute == 75 ? fake_capability() / 10 : fake_capability() % 10;
    return 0;
}

static int context, entered; /* how often it is retained */
static void *current;

int cuDevicePrimaryCtxRetain(void **made, int device);
int cuDevicePrimaryCtxRetain(void **made, int device)
{
    MAY_FAIL("cuDevicePrimaryCtxRetain");
    (void)device;
    entered++;
    *made = &context;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    MAY_FAIL("cuDevicePrimaryCtxRelease_v2");
    (void)device;
    return entered-- > 0 ? 0 : 201;
}

int cuCtxSetCurrent(void *of);
int cuCtxSetCurrent(void *of)
{
    MAY_FAIL("cuCtxSetCurrent");
    current = of;
    return 0;
}

static int late; /* what a kernel did wrong is told when somebody waits for it */

int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
    MAY_FAIL("cuCtxSynchronize");
    const int error = late;
    late = 0;
    return error;
}

/* ---- modules ---- */

int cuModuleLoadDataEx(void **made, const void *image, unsigned count, int *option, void **value);
int cuModuleLoadDataEx(void **made, const void *image, unsigned count, int *option, void **value)
{
    char log[256] = "";
    MAY_FAIL("cuModuleLoadDataEx");
    if (!current) return 201;
    fake_module *m = calloc(1, sizeof *m);
    if (!m) return 2;
    const int error = fake_assemble(m, image, log, sizeof log);
    if (error) {
        free(m);
        if (count == 2 && option[0] == 5 && option[1] == 6) snprintf(value[0], (size_t)(uintptr_t)value[1], "%s", log);
        return error;
    }
    *made = m;
    return 0;
}

int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
    MAY_FAIL("cuModuleUnload");
    free(module);
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    MAY_FAIL("cuModuleGetFunction");
    if (strcmp(((const fake_module *)module)->entry, name) != 0) return 500;
    *function = module;
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    MAY_FAIL("cuLaunchKernel");
    if (!current || x == 0 || y != 1 || z != 1 || tx != FAKE_THREADS || ty != 1 || tz != 1) return 1;
    if (shared || stream || extra) return 1;
    late = fake_execute(function, x, parameters);
    return 0;
}

int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text)
{
    static const struct {
        int error;
        const char *text;
    } row[] = { { 1, "invalid argument" },
                { 2, "out of memory" },
                { 100, "no CUDA-capable device is detected" },
                { 201, "invalid device context" },
                { 218, "a PTX JIT compilation failed" },
                { 500, "named symbol not found" },
                { 700, "an illegal memory access was encountered" },
                { 715, "an illegal instruction was encountered" },
                { 999, "unknown error" } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].error == error) {
            *text = row[i].text;
            return 0;
        }
    return 1;
}
