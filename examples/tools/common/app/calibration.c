/* calibration.c - calibrations by name, from files, and fitted to what nccom-test printed.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_calibration_fit.h>

#include "files.h"
#include "io/mapped.h"
#include "io/nccom.h"

void app_calibration_start(app_calibration *c)
{
    memset(c, 0, sizeof *c);
    c->now = trn_calibration_default();
}

void app_calibration_free(app_calibration *c)
{
    if (c->table.columns) app_table_free(&c->table);
}

bool app_calibration_release(app_calibration *c, const char *name, char *why)
{
    const trn_release release = trn_release_from_name(name);
    if (release == TRN_RELEASE_COUNT) return app_refuse(why, "expected newer or older");
    if (c->loaded) return app_refuse(why, "--calibration has set all numbers already");
    c->release = release;
    c->now = trn_calibration_of_release(release);
    return true;
}

bool app_calibration_plan(app_calibration *c, const char *name, double value, char *why)
{
    int i = 0;
    while (i < c->planneds && strcmp(c->planned[i].name, name) != 0) i++;
    if (i == APP_PLANNED || strlen(name) >= sizeof c->planned[i].name)
        return app_refuse(why, "more numbers of the planner than it has");
    if (i == c->planneds) c->planneds++;
    snprintf(c->planned[i].name, sizeof c->planned[i].name, "%s", name);
    c->planned[i].value = value;
    return true;
}

/* Lines "plan.NAME = NUMBER # why", which the library has checked. */
static bool load_planned(app_calibration *c, const char *text, size_t size, char *why)
{
    bool ok = true;
    for (size_t at = 0, end; at < size && ok; at = end + 1) {
        char line[160], name[64];
        double value;
        const char *newline = memchr(text + at, '\n', size - at);
        end = newline ? (size_t)(newline - text) : size;
        snprintf(line, sizeof line, "%.*s", (int)(end - at < 159 ? end - at : 159), text + at);
        if (sscanf(line, " plan.%63[^ =\t] = %lf", name, &value) == 2) ok = app_calibration_plan(c, name, value, why);
    }
    return ok;
}

bool app_calibration_load(app_calibration *c, const char *path, char *why)
{
    io_map map;
    trn_error error;
    char sentence[IO_WHY];
    if (!io_map_open(path, &map, sentence)) { /* whoever refuses an option names the file, too */
        const size_t named = strlen(path) + 2;
        return app_refuse(why, strncmp(sentence, path, named - 2) == 0 ? sentence + named : sentence);
    }
    size_t size;
    const char *text = io_map_text(&map, &size);
    const trn_status status = trn_calibration_load(text, size, &c->now, &error);
    const bool ok = status == TRN_OK ? load_planned(c, text, size, why) : app_refuse(why, error.text);
    io_map_close(&map);
    c->loaded = path;
    return ok;
}

/* ---- what was measured ---- */

typedef struct measured {
    io_nccom rows;
    trn_topology *net;              /* [rows] */
    int *chip;                      /* the chips of any group */
    trn_calibration_sample *sample; /* [rows] */
    trn_error error;
} measured;

static void release_rows(measured *m)
{
    free(m->rows.row);
    free(m->net);
    free(m->chip);
    free(m->sample);
}

/* Instances of Trainium1 are joined by EFA; of the others no such pair is among the systems. */
static bool widen(trn_topology *net, int instances, char *why)
{
    if (instances < 2) return true;
    if (net->system != TRN_TRN1_32XLARGE)
        return app_fail(why, "%d instances of %s: no network here joins them; of trn1.32xlarge one does", instances,
                        net->name);
    trn_topology all = trn_topology_of(TRN_TRN1_ULTRACLUSTER);
    all.chips = net->chips * instances;
    all.level[all.levels - 1].size = instances;
    *net = all;
    return trn_topology_check(net, NULL) == TRN_OK || app_fail(why, "%d instances are too many", instances);
}

/* The first chips, as many as the ranks need, on every instance alike. */
static bool ask_row(measured *m, int i, const app_calibration_ask *ask, char *why)
{
    const io_nccom_row *row = &m->rows.row[i];
    trn_collective_args *a = &m->sample[i].ask;
    const int instances = row->instances > 1 ? row->instances : 1, ranks = row->ranks ? row->ranks : ask->ranks;
    trn_topology *net = &m->net[i];
    *net = *ask->net;
    if (!widen(net, instances, why)) return false;
    a->net = net;
    a->op = row->op;
    a->wire = row->wire;
    a->bytes = row->bytes;
    a->error = &m->error;
    a->ranks_per_chip = ask->ranks_per_chip ? ask->ranks_per_chip : net->ranks_per_chip;
    m->sample[i].measured_s = 1e-6 * row->us;
    if (i && memcmp(net, &m->net[i - 1], sizeof *net) == 0) a->net = m->sample[i - 1].ask.net;
    if (!ranks) return true;
    if (ranks / instances < a->ranks_per_chip) a->ranks_per_chip = ranks / instances > 0 ? ranks / instances : 1;
    const int chips = ranks / a->ranks_per_chip, each = chips / instances, unit = net->chips / instances;
    if (ranks % (a->ranks_per_chip * instances) || chips > net->chips)
        return app_fail(why, "%d ranks do not fill chips of %d on %d instance%s of %s", ranks, a->ranks_per_chip,
                        instances, instances > 1 ? "s" : "", ask->net->name);
    if (chips == net->chips) return true;
    a->chips = m->chip;
    a->count = chips;
    for (int k = 0; k < i; k++) { /* the same chips as a row before */
        const trn_collective_args *b = &m->sample[k].ask;
        if (b->count == chips && m->rows.row[k].instances == row->instances && b->chips) a->chips = b->chips;
    }
    if (a->chips != m->chip) return true;
    int *list = m->chip;
    while (*list >= 0) list++; /* the end of what others use */
    a->chips = list;
    for (int k = 0; k < chips; k++) list[k] = k / each * unit + k % each;
    list[chips] = -1;
    return true;
}

static bool ask_rows(measured *m, const app_calibration_ask *ask, char *why)
{
    const size_t rows = (size_t)m->rows.rows;
    size_t room = 1;
    for (size_t i = 0; i < rows; i++) room += (size_t)(m->rows.row[i].ranks ? m->rows.row[i].ranks : ask->ranks) + 1;
    m->net = app_memory(rows, sizeof *m->net);
    m->sample = app_memory(rows, sizeof *m->sample);
    m->chip = app_memory(room, sizeof *m->chip);
    m->chip[0] = -1;
    for (size_t i = 0; i < rows; i++)
        if (!ask_row(m, (int)i, ask, why)) return false;
    return true;
}

/* ---- the answer ---- */

static const app_column columns[] = {
    { "op", APP_TEXT, "", "collective operation" },
    { "ranks", APP_INTEGER, "", "of the group" },
    { "size_b", APP_INTEGER, "B", "buffer of a rank" },
    { "measured_us", APP_REAL, "us", "what nccom-test printed" },
    { "before_us", APP_REAL, "us", "expected before the fit" },
    { "before_ratio", APP_REAL, "", "that over measured" },
    { "after_us", APP_REAL, "us", "expected after the fit" },
    { "after_ratio", APP_REAL, "", "that over measured" },
};

static bool add_rows(app_calibration *c, measured *m, const trn_calibration *before, char *why)
{
    app_table_start(&c->table, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < m->rows.rows; i++) {
        const trn_calibration *with[] = { before, &c->now };
        trn_collective_args ask = m->sample[i].ask;
        app_row(&c->table);
        app_text(&c->table, "%s", trn_collective_name(ask.op));
        app_integer(&c->table, trn_collective_ranks(&ask));
        app_integer(&c->table, ask.bytes);
        app_real(&c->table, 1e6 * m->sample[i].measured_s);
        for (int k = 0; k < 2; k++) {
            trn_cost cost;
            ask.calibration = with[k];
            if (trn_collective_cost(&ask, &cost) != TRN_OK) return app_refuse(why, m->error.text);
            app_real(&c->table, 1e6 * cost.expected_s);
            app_real(&c->table, cost.expected_s / m->sample[i].measured_s);
        }
    }
    return true;
}

static void put(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

static void write_file(FILE *out, const void *context)
{
    const app_calibration *c = context;
    app_say(out, "# fitted to %.400s; read by --calibration and trn_calibration_load\n", c->measured);
    trn_calibration_save(&c->now, put, out, NULL);
    for (int i = 0; i < c->planneds; i++) fprintf(out, "plan.%s = %.17g\n", c->planned[i].name, c->planned[i].value);
}

bool app_calibration_fit(app_calibration *c, const app_calibration_ask *ask, char *why)
{
    measured m;
    const trn_calibration before = c->now;
    char sentence[IO_WHY];
    memset(&m, 0, sizeof m);
    m.rows.defaults.op = ask->op;
    m.rows.defaults.wire = ask->wire;
    if (snprintf(c->written, sizeof c->written, "%s.calibration", c->measured) >= (int)sizeof c->written)
        return app_fail(why, "--calibrate: the name of the file is too long");
    if (!io_nccom_read(c->measured, &m.rows, sentence)) return app_fail(why, "--calibrate %s", sentence);
    bool ok = ask_rows(&m, ask, sentence);
    trn_calibration_fit_args fit = { m.sample, m.rows.rows, &before, NULL, 0, false, &m.error };
    if (ok && trn_calibration_fit(&fit, &c->now) != TRN_OK) ok = app_refuse(sentence, m.error.text);
    ok = ok && add_rows(c, &m, &before, sentence);
    release_rows(&m);
    return ok || app_fail(why, "--calibrate %.200s: %s", c->measured, sentence);
}

int app_calibration_write(const app_calibration *c)
{
    app_output output = { .flag = "--calibrate", .path = c->written, .write = write_file };
    const int status = app_open_outputs(&output, 1);
    return status == APP_OK ? app_write_outputs(&output, 1, c) : status;
}

void app_calibration_print(FILE *out, const app_calibration *c)
{
    trn_spec_field f;
    double value[sizeof c->now / sizeof(double)]; /* a struct of doubles, in the order of its fields */
    const trn_calibration usual = trn_calibration_of_release(c->release);
    double from[sizeof usual / sizeof(double)];
    memcpy(value, &c->now, sizeof value);
    memcpy(from, &usual, sizeof from);
    if (c->table.columns) {
        app_print_table(out, &c->table);
        fputc('\n', out);
    }
    for (int i = 0; trn_calibration_field_at(i, &f); i++)
        if (fabs(value[i] - from[i]) > 1e-9 * from[i])
            fprintf(out, "  %-10s %10.4g, %.4g before  %s\n", f.field, value[i], from[i], f.unit);
    app_say(out, "  %s\n", c->written);
}
