/* device.c - the dozen calls of libcuda.so.1 that a kernel of text needs.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the CUDA driver API (documented): names with _v2 are those behind cuda.h's macros, kept by every driver
 *     since CUDA 4; the primary context is that of the runtime.
 */
#define _POSIX_C_SOURCE 200809L

#include "device.h"

#include <dlfcn.h>
#include <string.h>

/* ---- the library ---- */

enum { NO_DEVICE = 100, STUB_LIBRARY = 34, SYSTEM_NOT_READY = 802, OLD_DRIVER = 803 };
enum { MAJOR = 75, MINOR = 76 };              /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_… */
enum { LOG_BUFFER = 5, LOG_BUFFER_SIZE = 6 }; /* CU_JIT_ERROR_LOG_BUFFER… */

static struct calls {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int length, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*current)(void *context);
    int (*load)(void **module, const void *image, unsigned count, int *option, void **value);
    int (*unload)(void *module);
    int (*function)(void **function, void *module, const char *name);
    int (*take)(uint64_t *address, size_t bytes);
    int (*give)(uint64_t address);
    int (*there)(uint64_t to, const void *from, size_t bytes);
    int (*back)(void *to, uint64_t from, size_t bytes);
    int (*launch)(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                  unsigned shared, void *stream, void **parameters, void **extra);
    int (*wait)(void);
    int (*text)(int error, const char **text);
} cu;

#define ROW(field, name) name, offsetof(struct calls, field)
static const struct symbol {
    const char *name;
    size_t at;
} symbol[] = {
    { ROW(init, "cuInit") },
    { ROW(version, "cuDriverGetVersion") },
    { ROW(count, "cuDeviceGetCount") },
    { ROW(get, "cuDeviceGet") },
    { ROW(name, "cuDeviceGetName") },
    { ROW(attribute, "cuDeviceGetAttribute") },
    { ROW(retain, "cuDevicePrimaryCtxRetain") },
    { ROW(release, "cuDevicePrimaryCtxRelease_v2") },
    { ROW(current, "cuCtxSetCurrent") },
    { ROW(load, "cuModuleLoadDataEx") },
    { ROW(unload, "cuModuleUnload") },
    { ROW(function, "cuModuleGetFunction") },
    { ROW(take, "cuMemAlloc_v2") },
    { ROW(give, "cuMemFree_v2") },
    { ROW(there, "cuMemcpyHtoD_v2") },
    { ROW(back, "cuMemcpyDtoH_v2") },
    { ROW(launch, "cuLaunchKernel") },
    { ROW(wait, "cuCtxSynchronize") },
    { ROW(text, "cuGetErrorString") },
};
#undef ROW

static bool open_library(gpu_device *g, char *why)
{
    g->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!g->library) {
        g->none = true;
        return app_refuse(why, "there is no GPU here: NVIDIA's driver (libcuda.so.1) is not installed");
    }
    for (size_t i = 0; i < sizeof symbol / sizeof symbol[0]; i++) {
        void *found = dlsym(g->library, symbol[i].name);
        if (!found) return app_fail(why, "libcuda.so.1 has no %s: the driver is too old", symbol[i].name);
        memcpy((char *)&cu + symbol[i].at, &found, sizeof found); /* POSIX: a function's address fits */
    }
    return true;
}

/* true: the call named so gave 0. */
static bool did(int error, const char *call, char *why)
{
    const char *text = NULL;
    if (error == 0) return true;
    if (cu.text(error, &text) != 0 || !text) text = "an error that the driver has no words for";
    return app_fail(why, "%s: %s (CUDA error %d)", call, text, error);
}

/* ---- the device ---- */

static bool start(gpu_device *g, char *why)
{
    const int error = cu.init(0);
    g->none = error == NO_DEVICE || error == STUB_LIBRARY || error == SYSTEM_NOT_READY || error == OLD_DRIVER;
    if (did(error, "cuInit", why)) return true;
    return g->none ? app_fail(why, "there is no GPU that works here: the driver says CUDA error %d", error) : false;
}

/* "550.54.15": what Linux says of the module; a driver of another system stays without. */
static void ask_version(gpu_device *g)
{
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (!file) return;
    if (!fgets(g->module, sizeof g->module, file)) g->module[0] = '\0';
    g->module[strcspn(g->module, "\r\n")] = '\0';
    fclose(file);
}

static bool choose(gpu_device *g, int number, char *why)
{
    int count = 0, major = 0, minor = 0;
    if (!did(cu.version(&g->driver), "cuDriverGetVersion", why)) return false;
    if (!did(cu.count(&count), "cuDeviceGetCount", why)) return false;
    g->none = count == 0;
    if (count == 0) return app_refuse(why, "there is no GPU here: the driver counts none");
    if (number >= count) return app_fail(why, "--device %d: there are %d, counted from 0", number, count);
    if (!did(cu.get(&g->handle, number), "cuDeviceGet", why)) return false;
    if (!did(cu.name(g->name, sizeof g->name, g->handle), "cuDeviceGetName", why)) return false;
    g->name[sizeof g->name - 1] = '\0';
    if (!did(cu.attribute(&major, MAJOR, g->handle), "cuDeviceGetAttribute", why)) return false;
    if (!did(cu.attribute(&minor, MINOR, g->handle), "cuDeviceGetAttribute", why)) return false;
    g->capability = 10 * major + minor;
    ask_version(g);
    return true;
}

static bool enter(gpu_device *g, char *why)
{
    if (!did(cu.retain(&g->context, g->handle), "cuDevicePrimaryCtxRetain", why)) {
        g->context = NULL;
        return false;
    }
    return did(cu.current(g->context), "cuCtxSetCurrent", why);
}

bool gpu_open(gpu_device *g, int number, char why[APP_WHY])
{
    memset(g, 0, sizeof *g);
    return open_library(g, why) && start(g, why) && choose(g, number, why) && enter(g, why);
}

static void leave(gpu_device *g)
{
    if (!g->context) return;
    (void)cu.current(NULL);
    (void)cu.release(g->handle);
    g->context = NULL;
}

/* (The library stays: drivers have threads of their own.) */
void gpu_close(gpu_device *g) { leave(g); }

bool gpu_renew(gpu_device *g, char why[APP_WHY])
{
    leave(g);
    return enter(g, why);
}

/* ---- kernels ---- */

/* What the driver's compiler complains of, on one line. */
static bool refused(int error, char *log, char *why)
{
    for (char *at = log; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    if (!*log) return did(error, "cuModuleLoadDataEx", why);
    return app_fail(why, "cuModuleLoadDataEx: CUDA error %d, and the driver's compiler says: %.300s", error, log);
}

bool gpu_load(gpu_device *g, const char *text, const size_t words[GPU_ARRAYS], gpu_kernel *k, char why[APP_WHY])
{
    char log[1024] = "";
    int option[2] = { LOG_BUFFER, LOG_BUFFER_SIZE };
    void *value[2] = { log, (void *)(uintptr_t)(sizeof log - 1) };
    memset(k, 0, sizeof *k);
    k->device = g;
    const int error = cu.load(&k->module, text, 2, option, value);
    if (error != 0) {
        k->module = NULL;
        return refused(error, log, why);
    }
    if (!did(cu.function(&k->function, k->module, "unit"), "cuModuleGetFunction", why)) return false;
    for (int i = 0; i < GPU_ARRAYS; i++) {
        k->words[i] = words[i];
        if (words[i] == 0 || did(cu.take(&k->array[i], 4 * words[i]), "cuMemAlloc", why)) continue;
        k->array[i] = 0;
        return false;
    }
    return true;
}

void gpu_unload(gpu_kernel *k)
{
    for (int i = 0; i < GPU_ARRAYS; i++)
        if (k->array[i]) (void)cu.give(k->array[i]);
    if (k->module) (void)cu.unload(k->module);
    memset(k, 0, sizeof *k);
}

bool gpu_run(gpu_kernel *k, uint32_t *const host[GPU_ARRAYS], const size_t words[GPU_ARRAYS], uint32_t threads,
             char why[APP_WHY])
{
    enum { D = GPU_ARRAYS - 1 };
    for (int i = 0; i < D; i++) {
        if (words[i] > k->words[i]) return app_refuse(why, "more operands than the device has memory for");
        if (words[i] && !did(cu.there(k->array[i], host[i], 4 * words[i]), "cuMemcpyHtoD", why)) return false;
    }
    void *parameter[GPU_ARRAYS + 1];
    for (int i = 0; i < GPU_ARRAYS; i++) parameter[i] = &k->array[i];
    parameter[GPU_ARRAYS] = &threads;
    const unsigned blocks = (threads + GPU_THREADS - 1) / GPU_THREADS;
    return did(cu.launch(k->function, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameter, NULL), "cuLaunchKernel",
               why) &&
           did(cu.wait(), "cuCtxSynchronize", why) &&
           did(cu.back(host[D], k->array[D], 4 * words[D]), "cuMemcpyDtoH", why);
}
