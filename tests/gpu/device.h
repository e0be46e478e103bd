/* device.h - one GPU through the driver's library, which is opened at run time: no toolkit, nothing to link.
 * SPDX-License-Identifier: MIT
 *
 * Each call returns true, or false and one sentence in `why`.
 */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include <stdint.h>

#include "app/app.h"
#include "units.h"

typedef struct gpu_device {
    void *library, *context;    /* null: not open */
    int handle, capability;     /* 10 * major + minor */
    int driver;                 /* what CUDA it knows: 1000 * major + 10 * minor */
    char name[128], module[64]; /* of the kernel's part of the driver: its version, if it is known */
    bool none;                  /* gpu_open failed because there is no GPU or no driver, and not because of an error */
} gpu_device;

bool gpu_open(gpu_device *g, int number, char why[APP_WHY]);
void gpu_close(gpu_device *g);

enum { GPU_ARRAYS = 5 }; /* a, b, c, scales, d */

/* A kernel with its arrays on the device. */
typedef struct gpu_kernel {
    gpu_device *device;
    void *module, *function;
    uint64_t array[GPU_ARRAYS]; /* 0: none */
    size_t words[GPU_ARRAYS];   /* of 32 bits */
} gpu_kernel;

/* Compiles text for the device, and takes memory there for so many words. Call gpu_unload in either case. */
bool gpu_load(gpu_device *g, const char *text, const size_t words[GPU_ARRAYS], gpu_kernel *k, char why[APP_WHY]);
void gpu_unload(gpu_kernel *k);

/* Copies `words` of the first four arrays there, runs so many threads, copies the fifth back. A failure may leave the
 * device unusable for this program: gpu_renew. */
bool gpu_run(gpu_kernel *k, uint32_t *const host[GPU_ARRAYS], const size_t words[GPU_ARRAYS], uint32_t threads,
             char why[APP_WHY]);

/* A context without the errors of the last one. */
bool gpu_renew(gpu_device *g, char why[APP_WHY]);

#endif /* GPU_DEVICE_H */
