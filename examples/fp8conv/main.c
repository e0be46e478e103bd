/* main.c - converts FP8 checkpoints between OCP's range and Trainium's, and proves what changed.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <stdio.h>

const char app_name[] = "fp8conv";

static int run(fc_catalogue *c)
{
    const fc_options *o = c->options;
    char why[IO_WHY] = "";
    if (!fc_assign(c, why)) return app_complain(APP_USAGE, "%s", why);
    fc_measure_work(c, false);
    bool ok = o->check ? fc_tally_all(c, why) : fc_write_all(c, why);
    if (!ok && !why[0]) { /* refused: nothing was written, and the report says why */
        fc_measure_work(c, false);
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
    fc_measure_work(c, true);
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
