/* notes.c - what a reader of the answer must know beside it: fields that were not counted, heads that are padded or
 * copied, formats of several kinds, numbers of the system that sources disagree about.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <stdarg.h>
#include <string.h>

#include "app/page.h"

enum { NOTES = sizeof((sp_notes *)0)->text / sizeof((sp_notes *)0)->text[0] };

static void add(sp_notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(sp_notes *n, const char *format, ...)
{
    va_list list;
    if (n->count == NOTES) return;
    va_start(list, format);
    vsnprintf(n->text[n->count++], HF_NOTE, format, list);
    va_end(list);
}

/* ---- heads ---- */

static int64_t ranks_of(const sp_job *job, const trn_plan *p)
{
    if (p->tp_cores) return p->tp_cores;
    return (int64_t)p->tp * (job->args.ranks_per_chip ? job->args.ranks_per_chip : 1);
}

static void add_heads(const sp_job *job, sp_notes *n)
{
    const trn_model *m = &job->model;
    if (!job->list.legal || m->tables) return;
    const int64_t t = ranks_of(job, &job->plan[0]), kv = m->kv_heads ? m->kv_heads : m->heads;
    const int64_t padded = (m->heads + t - 1) / t * t;
    if (m->heads % t)
        add(n, "the first plan: %lld heads are padded with zeros to %lld, for %lld ranks of tp", (long long)m->heads,
            (long long)padded, (long long)t);
    if (!m->kv_rank && t > kv)
        add(n, "the first plan: %lld KV heads are replicated, one for each of %lld ranks of tp", (long long)kv,
            (long long)t);
    if (job->args.experts_over > 1 && m->experts)
        add(n, "%lld experts lie over %d of the ranks of tp, %lld each", (long long)m->experts, job->args.experts_over,
            (long long)(m->experts / job->args.experts_over));
}

/* ---- formats ---- */

static void add_formats(const sp_job *job, sp_notes *n)
{
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const struct {
        const char *name;
        trn_format format;
        double bits;
    } row[] = { { "weights", f.weights, f.weights_bits },
                { "attention", f.attention, f.attention_bits },
                { "experts", f.experts, f.experts_bits },
                { "embeddings and head", f.head, f.head_bits },
                { "KV cache", f.kv, f.kv_bits } };
    char text[300] = "";
    size_t used = 0;
    bool several = false;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (i == 2 && !job->model.experts) continue;
        if (i == 4 && !sp_has_cache(job)) continue;
        several = several || row[i].bits > trn_format_bits(row[i].format) ||
                  row[i].bits < trn_format_bits(row[i].format) || (i < 4 && row[i].format != f.weights);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %.4g", used ? ", " : "", row[i].name, row[i].bits);
    }
    if (several) add(n, "bits of an element, scales and exclusions counted: %s", text);
}

/* ---- sources ---- */

/* Fields that times rest on. */
static bool matters(const char *field)
{
    static const char *const name[] = { "bf16_flops_per_s", "f8_flops_per_s", "hbm_bytes_per_s", "efa_bits_per_s",
                                        "neuronlink_chip_bytes_per_s" };
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (strcmp(name[i], field) == 0) return true;
    return false;
}

/* One line for all numbers of this system that some source gives otherwise. */
static void add_disputed(const sp_job *job, sp_notes *n)
{
    const trn_system_spec *own = trn_system_spec_of(job->net.system);
    char text[HF_NOTE - 100] = "";
    size_t used = 0;
    trn_spec_alternative a;
    trn_spec_field f;
    for (int i = 0; own && trn_spec_alternative_at(i, &a); i++) {
        char each[100], one[40], other[40];
        if (!trn_spec_field_named(own, a.chosen.level, a.chosen.field, &f) || strcmp(f.owner, a.chosen.owner) != 0 ||
            strstr(text, a.chosen.field))
            continue;
        if (!matters(a.chosen.field) || (job->options.instance && strcmp(a.chosen.level, "chip") != 0)) continue;
        const int size = snprintf(each, sizeof each, "%s%s %s (also %s)", used ? "; " : "", a.chosen.field,
                                  app_si(one, sizeof one, a.chosen.value, a.chosen.unit),
                                  app_si(other, sizeof other, a.value, a.chosen.unit));
        if (used + (size_t)size >= sizeof text) break;
        memcpy(text + used, each, (size_t)size + 1);
        used += (size_t)size;
    }
    if (used) add(n, "sources disagree (trnbench spec --alternatives, --claims): %s", text);
}

void sp_notes_of(const sp_job *job, sp_notes *n)
{
    n->count = 0;
    for (int i = 0; i < job->config.notes.count; i++) add(n, "%s", job->config.notes.text[i]);
    if (sp_instance_note(job->options.instance)) add(n, "%s", sp_instance_note(job->options.instance));
    add_heads(job, n);
    add_formats(job, n);
    add_disputed(job, n);
}
