/* base/pthreads.h - threads of the host, where it has POSIX's.
 * A room of all that start them or have to know of them. SPDX-License-Identifier: MIT
 *
 * DOES: includes <pthread.h>, and says whether there is one: TRNI_PTHREADS is 1 or 0.
 * DOES NOT: start any.
 *
 * KNOWN FROM: POSIX; mingw-w64 comes with winpthreads.
 */
#ifndef TRNI_BASE_PTHREADS_H
#define TRNI_BASE_PTHREADS_H

#include "base.h"

#if defined(__has_include)
#if __has_include(<pthread.h>)
#define TRNI_PTHREADS 1
#endif
#elif defined(__unix__) || defined(__APPLE__)
#define TRNI_PTHREADS 1
#endif

#if defined(TRNI_PTHREADS)
#include <pthread.h>
#else
#define TRNI_PTHREADS 0
#endif

#endif /* TRNI_BASE_PTHREADS_H */
