/* main.c - converts FP8 checkpoints between OCP's range and Trainium's, and proves what changed.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdio.h>
#include <string.h>

const char app_name[] = "fp8conv";

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
static void measure_work(fc_catalogue *c, bool once)
{
    const bool fresh = c->options->mode == FC_REQUANT;
    c->work = c->worked = 0;
    c->started = app_now();
    for (int i = 0; i < c->items; i++) {
        const fc_item *item = &c->item[i];
        const bool weight = item->role == FC_CODES || item->role == FC_NUMBERS;
        const int reads = weight && !once && (item->role == FC_NUMBERS || fresh) ? 2 : 1;
        const bool read = weight || (item->role == FC_COPIED && !c->options->check && !once);
        if (read) c->work += (uint64_t)reads * fc_size(&item->tensor);
    }
}

static int run(fc_catalogue *c)
{
    const fc_options *o = c->options;
    char why[IO_WHY] = "";
    if (!fc_assign(c, why)) return app_complain(APP_USAGE, "%s", why);
    measure_work(c, false);
    bool ok = o->check ? fc_tally_all(c, why) : fc_write_all(c, why);
    if (!ok && !why[0]) { /* refused: nothing was written, and the report says why */
        measure_work(c, false);
        ok = fc_tally_all(c, why);
    }
    app_progress_done();
    if (!ok) return app_complain(APP_USAGE, "%s", why);
    const int status = fc_report(c);
    const int64_t lost = fc_total(c).not_finite;
    if (status != APP_OK) return status;
    if (fflush(stdout) != 0) return app_complain(APP_USAGE, "standard output cannot be written");
    if (lost)
        return app_complain(APP_FAILED, "%s: %lld finite numbers would become infinity or NaN%s", o->in,
                            (long long)lost, o->check ? "" : "; nothing was written");
    if (!o->verify) return APP_OK;
    measure_work(c, true);
    return fc_verify(c);
}

int main(int argc, char **argv)
{
    static fc_options o;
    static fc_catalogue c;
    char why[IO_WHY] = "";
    int status = fc_parse(&o, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    fc_values(TRN_F8_E4M3);
    fc_values(TRN_F8_E4M3FN); /* before there are threads */
    if (o.schema) return fc_report_schema(), APP_OK;
    if (o.about) return fc_about(&o);
    if (fc_catalogue_open(&o, &c, why)) status = run(&c);
    else status = app_complain(APP_USAGE, "%s", why);
    fc_catalogue_close(&c);
    return status;
}
