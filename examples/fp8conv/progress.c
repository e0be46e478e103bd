/* progress.c - how many bytes there are to read, and how far we are.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

static const char *human_bytes(char *text, size_t size, double bytes)
{
    static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
    int i = 0;
    for (; bytes >= 1000 && i < 4; i++) bytes /= 1000;
    snprintf(text, size, i ? "%.1f %s" : "%.0f %s", bytes, unit[i]);
    return text;
}

void fc_progress(fc_catalogue *c, uint64_t more)
{
    static const char bar[] = "####################....................";
    char a[32], b[32], d[32];
    const double now = app_now();
    c->worked = c->work - c->worked > more ? c->worked + more : c->work;
    const double share = c->work ? (double)c->worked / (double)c->work : 1, seconds = now - c->started;
    const int filled = share < 1 ? (int)(20 * share) : 20;
    const double rate = seconds > 0 ? (double)c->worked / seconds : 0;
    app_progress("[%.20s] %3.0f %%  %s of %s  %s/s  %.0f s left", bar + 20 - filled, 100 * share,
                 human_bytes(a, sizeof a, (double)c->worked), human_bytes(b, sizeof b, (double)c->work),
                 human_bytes(d, sizeof d, rate), rate > 0 ? ((double)c->work - (double)c->worked) / rate : 0);
}

/* Bytes that will be read: fresh scales need the numbers twice. */
void fc_measure_work(fc_catalogue *c, bool once)
{
    const bool fresh = c->options->mode == FC_REQUANT;
    c->work = c->worked = 0;
    c->started = app_now();
    for (int i = 0; i < c->items; i++) {
        const fc_item *item = &c->item[i];
        const bool weight = fc_is_weight(item);
        const int reads = weight && !once && (item->role == FC_NUMBERS || fresh) ? 2 : 1;
        const bool read = weight || (item->role == FC_COPIED && !c->options->check && !once);
        if (read) c->work += (uint64_t)reads * fc_size(&item->tensor);
    }
}
