/* network.h - the network that a program works on: a file's, and what of it is broken.
 * SPDX-License-Identifier: MIT
 *
 *     static const app_option option[] = { APP_NETWORK_OPTIONS, ... };
 *     ...
 *     if (!app_network_break(&o->network, &net, why)) ...
 */
#ifndef APP_NETWORK_H
#define APP_NETWORK_H

#include "app.h"

#include <trnmath/trn_topology.h>

typedef struct app_fault {
    const char *what; /* as the command line has it */
    bool slow;
} app_fault;

typedef struct app_network {
    bool loaded; /* net is a file's */
    trn_topology net;
    app_fault fault[TRN_MAX_FAULTS];
    int faults;
} app_network;

/* Reads the file ("-": standard input). why: one sentence that names the file. */
bool app_network_load(app_network *network, const char *path, char *why);
bool app_network_fault(app_network *network, const char *what, bool slow, char *why);
/* Adds the faults of the command line to a network; the sentence names the option. */
bool app_network_break(const app_network *network, trn_topology *net, char *why);
/* "down link 3->7, slow chip 5 0.8"; empty: all is well. */
void app_network_faults(const trn_topology *net, char *text, size_t size);

#define APP_NETWORK_TAKE(type, field)                                                                                  \
    static bool take_topology(void *into, const char *value, char *why)                                                \
    {                                                                                                                  \
        return app_network_load(&((type *)into)->field, value, why);                                                   \
    }                                                                                                                  \
    static bool take_down(void *into, const char *value, char *why)                                                    \
    {                                                                                                                  \
        return app_network_fault(&((type *)into)->field, value, false, why);                                           \
    }                                                                                                                  \
    static bool take_slow(void *into, const char *value, char *why)                                                    \
    {                                                                                                                  \
        return app_network_fault(&((type *)into)->field, value, true, why);                                            \
    }

/* clang-format off */
#define APP_NETWORK_OPTIONS                                                                                            \
    { "--topology", "FILE", "a network from a file instead of a system's; examples/topologies/ has some",              \
      .apply = take_topology },                                                                                        \
    { "--down", "WHAT", "what does not work, such as \"chip 17\", \"link 3->7\" or \"link 3<->7\" (repeatable)",       \
      .apply = take_down },                                                                                            \
    { "--slow", "WHAT", "and what works at a share of its rate, such as \"link 3->7 0.5\" (repeatable)",               \
      .apply = take_slow }
/* clang-format on */

#endif /* APP_NETWORK_H */
