/* report.c - one self-contained HTML page: achieved against spec, rooflines, and this host beside its peers.
 * SPDX-License-Identifier: MIT
 *
 * Every figure is inline SVG whose colours are CSS variables, so that the page follows the reader's light or dark
 * scheme. Every mark carries a <title> with its numbers. Nothing is loaded from anywhere.
 */
#include "matmul.h"
#include "app/page.h"

#include <math.h>
#include <string.h>

/* ---- text ---- */

static const char *seconds(char *text, size_t size, double value)
{
    const double unit = value >= 1 ? 1 : value >= 1e-3 ? 1e-3 : 1e-6;
    snprintf(text, size, "%.3g %s", value / unit, value >= 1 ? "s" : value >= 1e-3 ? "ms" : "µs");
    return text;
}

static const char *limit_colour(trn_limit limit)
{
    static const char *const colour[] = { "--faint", "--tensor", "--hbm", "--dma", "--startup" };
    return colour[limit];
}

static int format_index(const tb_job *job, const tb_format *format)
{
    for (int i = 0; i < job->formats; i++)
        if (job->format[i] == format) return i;
    return 0;
}

enum { FORMAT_COLOURS = 6 };

/* The four common formats, which open the table of formats, keep their colours whatever else is in the run. */
static int format_colour(const tb_job *job, const tb_format *format)
{
    const int at = tb_format_index(format);
    return at < 4 ? at : 4 + format_index(job, format) % (FORMAT_COLOURS - 4);
}

static void limit_legend(FILE *out)
{
    fputs("<div class=legend>", out);
    for (int i = TRN_LIMIT_TENSOR; i <= TRN_LIMIT_STARTUP; i++)
        fprintf(out, "<span><i style='background:var(%s)'></i>limited by %s</span>", limit_colour((trn_limit)i),
                trn_limit_name((trn_limit)i));
    fputs("</div>\n", out);
}

/* ---- achieved against spec: a row for each system, a column for each format ---- */

enum { BAR_LEFT = 178, BAR_RIGHT = 1080, BAR_ROW = 42, BAR_TOP = 30, BAR_HEIGHT = 10 };

/* Many formats make the picture wider, not the columns narrower than their words. */
static double bar_column(const tb_job *job) { return fmax((double)(BAR_RIGHT - BAR_LEFT) / job->formats, 176); }

static void spec_cell(FILE *out, const tb_cost *c, const tb_format *format, double x, double y, double width)
{
    char share[32], achieved[32], spec[32], time[32];
    if (!c->there || isnan(c->share_of_spec)) {
        fprintf(out, "<text class=tick x='%.1f' y='%.1f'>%s</text>", x, y + 4,
                c->there ? "no published rate" : "no such operands");
        return;
    }
    const double filled = c->share_of_spec > 1 ? width : width * c->share_of_spec;
    app_percent(share, sizeof share, c->share_of_spec);
    fprintf(out, "<g><title>%s: %s of %s (%s), %s a pass; %s for %.0f %% of the time</title>", format->name,
            app_si(achieved, sizeof achieved, c->tflops * 1e12, "flop/s"),
            app_si(spec, sizeof spec, c->spec_tflops * 1e12, "flop/s"), share, seconds(time, sizeof time, c->time_s),
            trn_limit_name(c->limit), 100 * c->limit_share);
    fprintf(out, "<rect x='%.1f' y='%.1f' width='%.1f' height='%d' rx='3' fill='var(--track)'/>", x, y - 4.0, width,
            BAR_HEIGHT);
    fprintf(out, "<rect x='%.1f' y='%.1f' width='%.1f' height='%d' rx='3' fill='var(%s)'/>", x, y - 4.0,
            fmax(filled, 2), BAR_HEIGHT, limit_colour(c->limit));
    fprintf(out, "<text class='num small' x='%.1f' y='%.1f'>%s</text>", x + width + 7, y + 5, share);
    fprintf(out, "<text class=tick x='%.1f' y='%.1f'>%s of %s, %s</text></g>\n", x, y + 21,
            app_si(achieved, sizeof achieved, c->tflops * 1e12, ""),
            app_si(spec, sizeof spec, c->spec_tflops * 1e12, ""), time);
}

static void spec_row(FILE *out, const tb_job *job, int work, trn_system system, double y)
{
    const trn_system_spec *spec = trn_system_spec_of(system);
    const double column = bar_column(job);
    fprintf(out, "<text class=name x='0' y='%.1f'>%s</text>", y + 5, spec->title);
    for (int f = 0; f < job->formats; f++) {
        const tb_cost total = tb_work_total(job, work, job->format[f], system);
        spec_cell(out, &total, job->format[f], BAR_LEFT + f * column, y, column - 74);
    }
}

static void print_spec_bars(FILE *out, const tb_job *job, int work)
{
    const tb_work *w = &job->work[work];
    const double column = bar_column(job);
    int rows = 0;
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) rows += job->system[s];
    fputs("<div class=card><h3>", out);
    app_escape(out, w->name);
    fprintf(out, "%s%s</h3><div class=sub>", *w->phase ? ", " : "", w->phase);
    if (w->model)
        fprintf(out, "%lld token%s through %d linear layers", (long long)w->tokens, w->tokens == 1 ? "" : "s",
                w->products);
    else
        fprintf(out, "%lld × %lld × %lld", (long long)w->product[0].m, (long long)w->product[0].n,
                (long long)w->product[0].k);
    fprintf(out, ". Bars: modelled share of the published rate. Below them: flop/s achieved of published, time of a "
                 "pass.</div>\n");
    app_picture_open(out, BAR_LEFT + column * job->formats, BAR_TOP + rows * BAR_ROW, "achieved against spec",
                     "a row for each system, a column for each format; every bar has its numbers as text");
    for (int f = 0; f < job->formats; f++)
        fprintf(out, "<text class=name x='%.1f' y='14'>%s</text>", BAR_LEFT + f * column, job->format[f]->name);
    for (int s = 0, row = 0; s < TRN_SYSTEM_COUNT; s++)
        if (job->system[s]) spec_row(out, job, work, (trn_system)s, BAR_TOP + 12.0 + BAR_ROW * row++);
    app_picture_close(out);
    fputs("</div>\n", out);
}

/* ---- rooflines ---- */

typedef struct axes {
    double x0, x1, y0, y1; /* powers of ten */
    double left, right, top, bottom;
} axes;

static double at_x(const axes *a, double v)
{
    return a->left + (log10(v) - a->x0) / (a->x1 - a->x0) * (a->right - a->left);
}
static double at_y(const axes *a, double v)
{
    return a->bottom - (log10(v) - a->y0) / (a->y1 - a->y0) * (a->bottom - a->top);
}

typedef struct roof {
    double hbm, dma, peak; /* whole system; peak: the highest of the formats in the run */
} roof;

static roof roof_of(const tb_job *job, const trn_system_spec *spec)
{
    const trn_core_spec *core = spec->server->chip->core;
    const trn_spec_totals t = trn_spec_totals_of(spec);
    roof r = { t.hbm_bytes_per_s, t.dma_engines * core->dma_engine_bytes_per_s, 0 };
    for (int f = 0; f < job->formats; f++) {
        const double flops = 1e12 * tb_format_spec_tflops(job->format[f], spec);
        if (flops > r.peak) r.peak = flops;
    }
    return r;
}

static axes fit_axes(const tb_job *job, trn_system system, const roof *r)
{
    axes a = { 0, 0, 0, 0, 46, 344, 16, 206 };
    double low_x = r->peak / r->hbm, high_x = low_x, low_y = r->peak;
    for (int i = 0; i < job->items; i++) {
        const tb_cost *c = &job->item[i].cost[system];
        if (!c->there || !(c->tflops > 0) || !(c->core.bytes > 0)) continue;
        const double x = c->core.flops / c->core.bytes;
        low_x = fmin(low_x, x), high_x = fmax(high_x, x), low_y = fmin(low_y, c->tflops * 1e12);
    }
    a.x0 = floor(log10(low_x)), a.x1 = log10(high_x);
    a.x1 += 0.5 * (a.x1 - a.x0); /* room on the right for the names of the roofs */
    a.y0 = floor(log10(low_y)), a.y1 = log10(r->peak) + 0.35;
    return a;
}

static void draw_axes(FILE *out, const axes *a)
{
    char text[32];
    for (double e = a->x0; e <= a->x1; e++) {
        const double x = at_x(a, pow(10, e));
        fprintf(out, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='var(--line)'/>", x, x, a->top, a->bottom);
        fprintf(out, "<text class=tick x='%.1f' y='%.1f' text-anchor=middle>%s</text>", x, a->bottom + 15,
                app_si(text, sizeof text, pow(10, e), ""));
    }
    const double every = a->y1 - a->y0 > 5 ? 2 : 1;
    for (double e = a->y0; e <= a->y1; e += every) {
        const double y = at_y(a, pow(10, e));
        fprintf(out, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='var(--line)'/>", a->left, a->right, y, y);
        fprintf(out, "<text class=tick x='%.1f' y='%.1f' text-anchor=end>%s</text>", a->left - 6, y + 4,
                app_si(text, sizeof text, pow(10, e), ""));
    }
    fprintf(out, "<text class=tick x='%.1f' y='%.1f' text-anchor=end>flop/s</text>", a->left - 6, a->top - 4);
    fprintf(out, "<text class=tick x='%.1f' y='%.1f' text-anchor=middle>flop per byte of HBM traffic</text>\n",
            (a->left + a->right) / 2, a->bottom + 31);
}

/* A memory slope, from the left edge up to the roof; its name stands in the empty corner below the roofs. */
static void draw_slope(FILE *out, const axes *a, double bytes_per_s, double peak, const char *name, int line)
{
    const double from = fmax(pow(10, a->x0), pow(10, a->y0) / bytes_per_s), y = a->bottom - 10 - 16 * line;
    const char *const dashed = line ? " stroke-dasharray='3 4'" : " stroke-width='1.6'";
    char rate[32];
    fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='var(--soft)'%s/>", at_x(a, from),
            at_y(a, from * bytes_per_s), at_x(a, peak / bytes_per_s), at_y(a, peak), dashed);
    fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='var(--soft)'%s/>", a->right - 112, y - 4,
            a->right - 94, y - 4, dashed);
    fprintf(out, "<text class='tick halo' x='%.1f' y='%.1f'>%s %s</text>\n", a->right - 88, y, name,
            app_si(rate, sizeof rate, bytes_per_s, "B/s"));
}

/* Formats with the same published rate share one line, which names as many as there is room for. */
enum { NAMES_AT_MOST = 24 };

static void draw_roofs(FILE *out, const tb_job *job, const axes *a, const trn_system_spec *spec, const roof *r)
{
    const double slope = fmin(r->hbm, r->dma);
    for (int f = 0; f < job->formats; f++) {
        const double rate = 1e12 * tb_format_spec_tflops(job->format[f], spec);
        char names[64] = "", rest[24] = "", text[32];
        bool first = rate > 0;
        int more = 0;
        for (int g = 0; g < job->formats; g++) {
            const bool same = 1e12 * tb_format_spec_tflops(job->format[g], spec) == rate;
            if (same && g < f) first = false;
            if (!same) continue;
            if (strlen(names) + strlen(job->format[g]->name) < NAMES_AT_MOST)
                snprintf(names + strlen(names), 32, "%s%s", *names ? " " : "", job->format[g]->name);
            else
                more++;
        }
        if (more) snprintf(rest, sizeof rest, " + %d", more);
        if (!first) continue;
        const double y = at_y(a, rate);
        fprintf(out, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='var(--soft)' stroke-width='1.6'/>",
                at_x(a, rate / slope), a->right, y, y);
        fprintf(out, "<text class='tick halo' x='%.1f' y='%.1f' text-anchor=end>%s%s %s</text>\n", a->right, y - 5,
                names, rest, app_si(text, sizeof text, rate, "flop/s"));
    }
    draw_slope(out, a, slope, r->peak, r->hbm <= r->dma ? "HBM" : "DMA", 0);
    draw_slope(out, a, fmax(r->hbm, r->dma), r->peak, r->hbm <= r->dma ? "DMA" : "HBM", 1);
}

/* Decode is a ring. Formats that cost the same lie on one spot: the later, the smaller, so that all stay visible. */
static void draw_point(FILE *out, const tb_job *job, const axes *a, const tb_item *item, trn_system system)
{
    const tb_cost *c = &item->cost[system];
    const tb_work *w = &job->work[item->work];
    const tb_product *p = &w->product[item->product];
    char achieved[32], share[32];
    if (!c->there || !(c->tflops > 0) || !(c->core.bytes > 0)) return;
    const bool ring = strcmp(w->phase, "decode") == 0;
    fprintf(out, "<circle cx='%.1f' cy='%.1f' r='%.1f' %s='var(--f%d)'%s><title>",
            at_x(a, c->core.flops / c->core.bytes), at_y(a, c->tflops * 1e12),
            fmax(5.2 - 0.9 * format_index(job, item->format), 1.6), ring ? "stroke" : "fill",
            format_colour(job, item->format), ring ? " stroke-width='1.5' fill='var(--card)'" : "");
    app_escape(out, w->name);
    fprintf(out, " %s %s, %s, %lld × %lld × %lld: %s", w->phase, w->model ? p->layer : "", item->format->name,
            (long long)p->m, (long long)p->n, (long long)p->k,
            app_si(achieved, sizeof achieved, c->tflops * 1e12, "flop/s"));
    fprintf(out, " (%s of spec) at %.3g flop/B, limited by %s</title></circle>\n",
            app_percent(share, sizeof share, c->share_of_spec), c->core.flops / c->core.bytes,
            trn_limit_name(c->limit));
}

static void print_roofline(FILE *out, const tb_job *job, trn_system system)
{
    const trn_system_spec *spec = trn_system_spec_of(system);
    const roof r = roof_of(job, spec);
    char chips[32], hbm[32];
    if (!(r.peak > 0)) return;
    const axes a = fit_axes(job, system, &r);
    fprintf(out,
            "<div class=panel><h3>%s</h3><div class=sub>%s chip%s, %s GiB of HBM</div><svg viewBox='0 0 356 246' "
            "role=img style='max-width:400px;margin:0 auto'><title>roofline of %s</title>\n",
            spec->title, app_count(chips, sizeof chips, trn_spec_chips(spec)), trn_spec_chips(spec) == 1 ? "" : "s",
            app_count(hbm, sizeof hbm, (int64_t)(trn_spec_totals_of(spec).hbm_bytes / 0x1p30)), spec->title);
    draw_axes(out, &a);
    draw_roofs(out, job, &a, spec, &r);
    for (int i = 0; i < job->items; i++) draw_point(out, job, &a, &job->item[i], system);
    fputs("</svg></div>\n", out);
}

static void roofline_legend(FILE *out, const tb_job *job)
{
    bool prefill = false, decode = false;
    for (int w = 0; w < job->works; w++) {
        prefill = prefill || !strcmp(job->work[w].phase, "prefill");
        decode = decode || !strcmp(job->work[w].phase, "decode");
    }
    fputs("<div class=legend>", out);
    for (int f = 0; f < job->formats; f++)
        fprintf(out, "<span><i class=o style='background:var(--f%d)'></i>%s</span>", format_colour(job, job->format[f]),
                job->format[f]->name);
    if (prefill && decode)
        fputs("<span><i class=o style='background:var(--soft)'></i>prefill</span><span><i class=ring></i>decode</span>",
              out);
    fputs("</div>\n", out);
}

/* ---- this host ---- */

enum { HOST_LEFT = 250, HOST_RIGHT = 830, HOST_BAR = 17, HOST_GAP = 16, HOST_WIDTH = 1080 };

typedef struct host_scale {
    double most, peak; /* flop/s; peak 0: too far away to be drawn */
} host_scale;

static bool shown(const tb_item *item, int work)
{
    return item->work == work && item->host && item->host->ran && !item->repeated;
}

static double peer_rate(const tb_host *h, int peer) { return h->peer[peer].there ? h->peer[peer].flops_per_s : 0; }

static host_scale scale_of(const tb_job *job, int work)
{
    host_scale s = { 0, 0 };
    for (int i = 0; i < job->items; i++) {
        if (!shown(&job->item[i], work)) continue;
        const tb_host *h = job->item[i].host;
        s.most = fmax(s.most, h->flops_per_s);
        for (int p = 0; p < TB_PEERS; p++) s.most = fmax(s.most, peer_rate(h, p));
        s.peak = fmax(s.peak, h->peak_flops_per_s);
    }
    if (s.peak > 4 * s.most) s.peak = 0;
    s.most = fmax(s.most, s.peak) * 1.02;
    return s;
}

static void host_bar(FILE *out, const host_scale *s, double y, double rate, const char *name, const char *colour,
                     const char *text)
{
    const double width = (HOST_RIGHT - HOST_LEFT) * rate / s->most;
    fprintf(out, "<g><title>%s: %.1f GF/s%s%s</title><text class=small x='%d' y='%.1f' text-anchor=end>%s</text>", name,
            rate / 1e9, *text ? ", " : "", text, HOST_LEFT - 8, y + 11, name);
    fprintf(out, "<rect x='%d' y='%.1f' width='%.1f' height='%d' rx='3' fill='var(%s)'/>", HOST_LEFT, y + 2,
            fmax(width, 2), HOST_BAR - 5, colour);
    fprintf(out, "<text class='num small' x='%.1f' y='%.1f'>%.*f", HOST_LEFT + fmax(width, 2) + 7, y + 11,
            rate < 1e11 ? 1 : 0, rate / 1e9);
    fprintf(out, "<tspan fill='var(--faint)'>%s%s</tspan></text></g>\n", *text ? "  ·  " : "", text);
}

static void host_names(FILE *out, const tb_work *w, const tb_item *head, double y)
{
    const tb_host *h = head->host;
    fprintf(out, "<text class=name x='0' y='%.1f'>%s</text><text class=tick x='0' y='%.1f'>%lld × %lld × %lld</text>",
            y + 12, w->model ? w->product[head->product].layer : "", y + (w->model ? 27 : 12), (long long)h->m,
            (long long)h->n, (long long)h->k);
}

/* All formats of one product, then the peers, each at its best. Returns the height. */
static double host_group(FILE *out, const tb_job *job, const host_scale *s, int first, double y)
{
    static const char *const peer_name[TB_PEERS] = { "OpenBLAS sgemm", "oneDNN f32", "oneDNN f32 packed",
                                                     "oneDNN bf16" };
    const tb_item *head = &job->item[first];
    const double top = y;
    double best[TB_PEERS] = { 0 };
    char text[96], colour[16], share[32];
    host_names(out, &job->work[head->work], head, y);
    for (int i = first; i < job->items && job->item[i].product == head->product && job->item[i].work == head->work;
         i++) {
        const tb_item *item = &job->item[i];
        if (!shown(item, head->work)) continue;
        const tb_host_peer *peer = &item->host->peer[TB_OPENBLAS];
        const int n =
            snprintf(text, sizeof text, "%s of peak", app_percent(share, sizeof share, item->host->share_of_peak));
        if (peer->there) snprintf(text + n, sizeof text - (size_t)n, ", %.2f × OpenBLAS", peer->ratio);
        snprintf(colour, sizeof colour, "--f%d", format_colour(job, item->format));
        host_bar(out, s, y, item->host->flops_per_s, item->format->name, colour, text);
        for (int p = 0; p < TB_PEERS; p++) best[p] = fmax(best[p], peer_rate(item->host, p));
        y += HOST_BAR;
    }
    for (int p = 0; p < TB_PEERS; p++)
        if (best[p] > 0) host_bar(out, s, y, best[p], peer_name[p], "--peer", ""), y += HOST_BAR;
    return y - top;
}

static bool opens_group(const tb_job *job, int i)
{
    for (int j = 0; j < i; j++)
        if (job->item[j].work == job->item[i].work && job->item[j].product == job->item[i].product &&
            shown(&job->item[j], job->item[i].work))
            return false;
    return shown(&job->item[i], job->item[i].work);
}

static double host_height(const tb_job *job, int work)
{
    double y = 0;
    for (int i = 0; i < job->items; i++) {
        if (!shown(&job->item[i], work)) continue;
        y += HOST_BAR;
        if (!opens_group(job, i)) continue;
        y += HOST_GAP;
        for (int p = 0; p < TB_PEERS; p++) y += peer_rate(job->item[i].host, p) > 0 ? HOST_BAR : 0;
    }
    return y;
}

static void print_host_bars(FILE *out, const tb_job *job, int work)
{
    const tb_work *w = &job->work[work];
    const double height = host_height(job, work);
    const host_scale s = scale_of(job, work);
    double y = 24;
    if (height <= 0) return;
    fputs("<div class=card><h3>", out);
    app_escape(out, w->name);
    fprintf(out, "%s%s</h3><div class=sub>GF/s on %d thread%s, best round; sizes are those that were run</div>",
            *w->phase ? ", " : "", w->phase, job->host.threads, job->host.threads == 1 ? "" : "s");
    app_picture_open(out, HOST_WIDTH, height + 30, "flop/s on this host",
                     "a group of bars for each product: formats, then peers; every bar has its numbers as text");
    if (s.peak > 0) {
        const double x = HOST_LEFT + (HOST_RIGHT - HOST_LEFT) * s.peak / s.most;
        fprintf(out, "<line x1='%.1f' x2='%.1f' y1='18' y2='%.1f' stroke='var(--faint)' stroke-dasharray='2 3'/>", x, x,
                height + 22);
        fprintf(out, "<text class=tick x='%.1f' y='12' text-anchor=middle>multiply-add peak %.0f GF/s</text>\n", x,
                s.peak / 1e9);
    }
    for (int i = 0; i < job->items; i++)
        if (job->item[i].work == work && opens_group(job, i)) y += host_group(out, job, &s, i, y) + HOST_GAP;
    app_picture_close(out);
    fputs("</div>\n", out);
}

/* ---- facts, tables, notes ---- */

typedef struct summary {
    int64_t compared, wrong;
    double best_rate, best_share, log_ratio;
    int ratios;
} summary;

static summary summarise(const tb_job *job)
{
    summary s = { 0, 0, 0, 0, 0, 0 };
    for (int i = 0; i < job->items; i++) {
        const tb_host *h = job->item[i].host;
        bool seen = false;
        for (int j = 0; j < i; j++) seen = seen || job->item[j].host == h;
        if (!h || !h->ran || seen) continue;
        s.compared += h->check.compared, s.wrong += h->check.wrong;
        if (h->flops_per_s > s.best_rate) s.best_rate = h->flops_per_s, s.best_share = h->share_of_peak;
        if (h->peer[TB_OPENBLAS].there) s.log_ratio += log(h->peer[TB_OPENBLAS].ratio), s.ratios++;
    }
    return s;
}

static void best_of_systems(FILE *out, const tb_job *job)
{
    tb_cost best;
    int system = 0, work = 0, format = 0;
    char number[64], text[320], rate[32];
    memset(&best, 0, sizeof best);
    for (int w = 0; w < job->works; w++)
        for (int f = 0; f < job->formats; f++)
            for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
                const tb_cost c = tb_work_total(job, w, job->format[f], (trn_system)s);
                if (job->system[s] && c.there && c.share_of_spec > best.share_of_spec)
                    best = c, system = s, work = w, format = f;
            }
    app_percent(number, sizeof number, best.share_of_spec);
    snprintf(text, sizeof text, "of spec at best: %s, %s, %s of %s", trn_system_spec_of((trn_system)system)->title,
             job->format[format]->name, app_si(rate, sizeof rate, best.tflops * 1e12, "flop/s"),
             *job->work[work].phase ? job->work[work].phase : "this product");
    app_fact(out, number, text);
}

static void print_facts(FILE *out, const tb_job *job)
{
    const summary s = summarise(job);
    char number[64], text[160], share[32];
    fputs("<div class=facts>", out);
    best_of_systems(out, job);
    if (s.best_rate > 0) {
        snprintf(number, sizeof number, "%.0f GF/s", s.best_rate / 1e9);
        snprintf(text, sizeof text, "best product on this host, %s of its multiply-add peak",
                 app_percent(share, sizeof share, s.best_share));
        app_fact(out, number, text);
    }
    if (s.ratios) {
        snprintf(number, sizeof number, "%.2f ×", exp(s.log_ratio / s.ratios));
        snprintf(text, sizeof text, "OpenBLAS sgemm, geometric mean of %d measurements", s.ratios);
        app_fact(out, number, text);
    }
    if (s.compared) {
        snprintf(number, sizeof number, s.wrong ? "%lld wrong" : "%lld equal",
                 (long long)(s.wrong ? s.wrong : s.compared));
        app_fact(out, number,
                 s.wrong ? "outputs differ from the definition"
                         : "outputs compared bit for bit with the definition, none differs");
    }
    fputs("</div>\n", out);
}

static void print_tables(FILE *out, const tb_job *job)
{
    app_table totals;
    tb_total_rows(&totals, job);
    fprintf(out, "<details class=card><summary>All %d totals as a table</summary>", totals.rows);
    app_html_table(out, &totals);
    fputs("</details>\n", out);
    app_table_free(&totals);
}

static void print_host_note(FILE *out, const tb_job *job)
{
    const char *isa = app_isa_used(job->host.isa);
    const char *openblas = tb_peer_version(TB_OPENBLAS);
    const double attention = tb_attention(job);
    fputs("<p><b>This host.</b> ", out);
    app_escape(out, tb_host_processor());
    fprintf(out, ", %s kernels, %d thread%s, compiled by ", isa, job->host.threads, job->host.threads == 1 ? "" : "s");
    app_escape(out, TB_COMPILER);
    fprintf(out, "; peer: %s. All candidates run in turn within each round; bars are the best round, ratios the ",
            openblas ? openblas : "none");
    fputs("median over rounds. Large products are timed on a part: all of K, fewer rows and columns.", out);
    if (attention < TB_BUSY)
        fprintf(out, " <b>Other programs had the processors for %.0f %% of the time;</b> ", 100 * (1 - attention));
    fputs(attention < TB_BUSY ? "this host can do more than it shows.</p>\n" : "</p>\n", out);
}

static void print_notes(FILE *out, const tb_job *job)
{
    fputs("<footer><p><b>The model.</b> Spec is what the vendor publishes for the whole system, dense. Achieved is "
          "trnmath's cost model of documented instruction costs, DMA and HBM rates: ",
          out);
    fprintf(out, "%s, operands lie in HBM where they are used, nothing is communicated. ", tb_share_text(job->share));
    fputs("A model, not a measurement on a device.</p>\n", out);
    if (job->run_host) print_host_note(out, job);
    fprintf(out, "<p>trnbench %s · numerics ", TRN_VERSION);
    app_escape(out, job->numerics_text ? job->numerics_text : "default");
    fprintf(out, " · seed %llu · ", (unsigned long long)job->host.seed);
    fputs("Trainium is a trademark of its owner; this page is not affiliated with them.</p></footer>\n", out);
}

void tb_print_report(FILE *out, const void *context)
{
    const tb_job *job = context;
    app_page_open(out, "trnbench matmul");
    fputs("<h1>Matrix products on Trainium: achieved against spec</h1>\n<p class=lead>", out);
    for (int w = 0; w < job->works; w++) {
        if (w && !strcmp(job->work[w].name, job->work[w - 1].name)) continue;
        fputs(w ? ", " : "", out);
        app_escape(out, job->work[w].name);
    }
    fputs(" on every system, by the documented costs of the engines", out);
    if (job->run_host)
        fputs("; and the same products, bit for bit as the tensor engine computes them, on this host", out);
    fputs(".</p>\n", out);
    print_facts(out, job);
    fputs("<h2>Achieved against spec</h2>\n", out);
    limit_legend(out);
    for (int w = 0; w < job->works; w++) print_spec_bars(out, job, w);
    fputs("<h2>Rooflines</h2>\n<p>Each point is one product. A roof is the published rate of a format; a slope is what "
          "HBM, or the DMA engines, can deliver. Points fall short of the roof by short tiles, repeated reads and "
          "start-up.</p>\n",
          out);
    roofline_legend(out, job);
    fputs("<div class=grid>\n", out);
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++)
        if (job->system[s]) print_roofline(out, job, (trn_system)s);
    fputs("</div>\n", out);
    if (job->run_host) fputs("<h2>On this host</h2>\n", out);
    for (int w = 0; w < job->works; w++) print_host_bars(out, job, w);
    print_tables(out, job);
    print_notes(out, job);
    app_page_close(out);
}
