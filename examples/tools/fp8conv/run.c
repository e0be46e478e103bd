/* run.c - from one checkpoint to the other: what is opened, done and shown, in which order.
 * SPDX-License-Identifier: MIT
 *
 * Inputs first, then all that is written; then the work. The new checkpoint and the reports lie complete and synced
 * beside their places before the first of them appears: the checkpoint, then the reports.
 */
#include "fp8conv.h"

#include <stdlib.h>
#include <string.h>

/* ---- progress: how many bytes there are to read, and how far we are ---- */

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
    app_progress("[%.*s] %3.0f %%  %s of %s  %s/s  %.0f s left", 20, bar + 20 - filled, 100 * share,
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
        const bool weight = fc_is_weight(item);
        const int reads = weight && !once && (item->role == FC_NUMBERS || fresh) ? 2 : 1;
        const bool read = weight || (item->role == FC_COPIED && !c->options->check && !once);
        if (read) c->work += (uint64_t)reads * fc_size(&item->tensor);
    }
}

/* ---- all that is read and written ---- */

/* What lies beside the weights belongs to the input, whether it will be read or not. */
static bool claim_input(const fc_options *o, char *why)
{
    if (ckpt_folder(o->in)) return true; /* all of it, when it was opened */
    char *config = ckpt_path(o->in, "config.json");
    struct stat s;
    const bool ok = config ? stat(config, &s) != 0 || app_reads(config, why)
                           : io_fail(why, o->in, "there is not enough memory to read it");
    free(config);
    return ok;
}

static bool claim_output(const fc_catalogue *c, char *why)
{
    if (c->options->check) return true;
    char *place = fc_place(c);
    const bool ok =
        place ? app_writes("", place, why) : io_fail(why, c->options->out, "there is not enough memory to write it");
    free(place);
    return ok;
}

static int open_all(fc_catalogue *c, fc_report *r)
{
    char why[IO_WHY] = "";
    const bool ok = claim_input(c->options, why) && fc_assign(c, why) && fc_list_files(c, why) && claim_output(c, why);
    if (!ok) return app_complain(APP_USAGE, "%s", why);
    if (app_open_outputs(r->output, FC_REPORTS) != APP_OK) return APP_USAGE;
    if (c->options->check || fc_open_out(c, why)) return APP_OK;
    return app_complain(APP_USAGE, "%s", why);
}

/* ---- the work ---- */

/* Written, or only counted. Where a finite number was lost, nothing stays of it, and the report says why. */
static int convert(fc_catalogue *c)
{
    char why[IO_WHY] = "";
    measure_work(c, false);
    bool ok = c->options->check ? fc_tally_all(c, why) : fc_write_all(c, why);
    if (!ok && !why[0]) {
        io_stage_discard(&c->stage);
        measure_work(c, false);
        ok = fc_tally_all(c, why);
    }
    app_progress_done();
    return ok ? APP_OK : app_complain(APP_USAGE, "%s", why);
}

static int verify(fc_catalogue *c)
{
    char why[IO_WHY] = "";
    measure_work(c, true);
    const bool ok = fc_verify(c, why);
    const int failed = io_memory_ran_out() ? APP_USAGE : APP_FAILED; /* asked before errno is used again */
    app_progress_done();
    if (ok) return app_flush(APP_OK);
    io_stage_discard(&c->stage);
    return app_complain(failed, "--verify: %s", why);
}

static int run(fc_catalogue *c, fc_report *r)
{
    const fc_options *o = c->options;
    int status = open_all(c, r);
    if (status == APP_OK) status = convert(c);
    if (status == APP_OK) status = fc_report_write(r);
    if (status != APP_OK) return status;
    const int64_t lost = fc_total(c).not_finite;
    const int verified = o->verify && !lost ? verify(c) : APP_OK;
    if (verified == APP_USAGE) return verified;
    status = app_show_staged(c->stage.open ? &c->stage : NULL, r->output, FC_REPORTS);
    if (status != APP_OK || !lost) return status != APP_OK ? status : verified;
    return app_complain(APP_FAILED, "%s: %lld finite numbers would become infinity or NaN%s", o->in, (long long)lost,
                        o->check ? "" : "; nothing was written");
}

int fc_convert_checkpoint(const fc_options *o)
{
    static fc_catalogue c;
    static fc_report r;
    char why[IO_WHY] = "";
    r.catalogue = &c;
    fc_report_files(o, r.output);
    const int status = fc_catalogue_open(o, &c, why) ? run(&c, &r) : app_complain(APP_USAGE, "%s", why);
    app_discard_outputs(r.output, FC_REPORTS);
    io_stage_discard(&c.stage);
    fc_catalogue_close(&c);
    return status;
}
