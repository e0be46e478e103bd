/* refusal.h - what a call that is refused must do: the right status, its sentence, and not a byte of anything else.
 * SPDX-License-Identifier: MIT
 */
#ifndef REFUSAL_H
#define REFUSAL_H

#include "trnmath/trn_base.h"

/* Memory that a refused call may not touch: named once, compared after each call. */
typedef struct refusal_watch {
    unsigned char *memory;
    size_t bytes;
} refusal_watch;

enum { REFUSAL_FILL = 0x5a };

static inline void refusal_fill(const refusal_watch *w) { memset(w->memory, REFUSAL_FILL, w->bytes); }

static inline bool refusal_untouched(const refusal_watch *w)
{
    for (size_t i = 0; i < w->bytes; i++)
        if (w->memory[i] != REFUSAL_FILL) return false;
    return true;
}

/* `args` has .error; `words` is part of the sentence. */
#define REFUSED(call, args, expected, words, watch)                                                                    \
    do {                                                                                                               \
        trn_error refusal_error = { TRN_OK, "" };                                                                      \
        (args).error = &refusal_error;                                                                                 \
        refusal_fill(watch);                                                                                           \
        const trn_status refusal_status = call(&(args));                                                               \
        if (refusal_status != (expected) || refusal_error.status != refusal_status ||                                  \
            !strstr(refusal_error.text, words))                                                                        \
            fail_msg("%s: status %d and '%s', expected %d and '%s'", #call, (int)refusal_status, refusal_error.text,   \
                     (int)(expected), words);                                                                          \
        if (!refusal_untouched(watch)) fail_msg("%s wrote something and said '%s'", #call, refusal_error.text);        \
        (args).error = NULL;                                                                                           \
        if (call(&(args)) != (expected)) fail_msg("%s: another status without an error", #call);                       \
    } while (0)

#endif /* REFUSAL_H */
