/* network.c - networks from files, and faults from the command line.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "network.h"

#include <string.h>

#include "io/mapped.h"

bool app_network_load(app_network *network, const char *path, char *why)
{
    io_map map;
    trn_error error;
    char sentence[IO_WHY];
    if (network->loaded) return app_refuse(why, "one network at a time");
    if (!io_map_open(path, &map, sentence)) { /* whoever refuses an option names the file, too */
        const size_t named = strlen(path) + 2;
        return app_refuse(why, strncmp(sentence, path, named - 2) == 0 ? sentence + named : sentence);
    }
    size_t size;
    const char *text = io_map_text(&map, &size);
    const trn_status status = trn_topology_load(text, size, &network->net, &error);
    io_map_close(&map);
    network->loaded = status == TRN_OK;
    return status == TRN_OK || app_refuse(why, error.text);
}

bool app_network_fault(app_network *network, const char *what, bool slow, char *why)
{
    if (network->faults == TRN_MAX_FAULTS) return app_fail(why, "more than %d faults", (int)TRN_MAX_FAULTS);
    network->fault[network->faults].what = what;
    network->fault[network->faults++].slow = slow;
    return true;
}

bool app_network_break(const app_network *network, trn_topology *net, char *why)
{
    trn_error error;
    for (int i = 0; i < network->faults; i++) {
        const app_fault *f = &network->fault[i];
        if ((f->slow ? trn_topology_slow : trn_topology_down)(net, f->what, &error) != TRN_OK)
            return app_fail(why, "%s \"%.40s\": %.180s", f->slow ? "--slow" : "--down", f->what, error.text);
    }
    return true;
}

void app_network_faults(const trn_topology *net, char *text, size_t size)
{
    char line[128];
    size_t used = 0;
    if (size) text[0] = 0;
    for (int i = 0; i < net->faults && trn_topology_fault_text(net, i, line, sizeof line); i++) {
        const char *rest = strchr(line, '=') + 1;
        const int n = snprintf(text + used, size - used, "%s%.4s%s", i ? ", " : "", line, rest);
        if (n < 0 || (size_t)n >= size - used) break;
        used += (size_t)n;
    }
}
