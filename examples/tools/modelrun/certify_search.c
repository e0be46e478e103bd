/* certify_search.c - the arrangements that are tried: how many sequences, where the prompt is cut, how many cores.
 * SPDX-License-Identifier: MIT
 *
 * One sequence is the probe. Others, of one token or as long, are computed beside it, before and after its rows; its
 * prompt is cut in two at every place, and into pieces of one length; its layers are shared by other numbers of cores.
 * Each arrangement is held against the plain one with the same pieces: alone, or whole.
 */
#include "certify.h"

#include <stdlib.h>

enum {
    TOKENS = 16,     /* of the probe, unless --context says another number */
    FINE = 20,       /* a prompt of up to so many tokens is cut at every place */
    MOST_BATCH = 65, /* one more than a message has */
    HEAD_ROWS = 128, /* a step's last rows, whose logits are computed */
    ARRANGEMENTS = 160
};

typedef struct arrangement {
    mr_dim dim;
    int64_t batch, place; /* sequences, and which of them is the probe */
    bool decode;          /* together for the last token alone; else all of the prompt */
    int64_t cut, each;    /* the prompt's first piece; or pieces of that length; 0: whole */
    int tp;               /* 0: the setting's */
} arrangement;

typedef struct search {
    mr_model *model;
    const mr_text *text;
    int64_t tokens;
    uint32_t dims;
    mr_run run;
    mr_watcher *watcher;
    mr_searched *result;
    arrangement list[ARRANGEMENTS];
    int count;
    /* a step */
    int32_t *token;
    int64_t *probe;
    mr_span *span;
    float *h, *logits;
} search;

int64_t mr_search_tokens(const mr_model *model, const mr_options *o, const mr_text *text)
{
    const int64_t there = text->first[1] - text->first[0], asked = o->context ? o->context : TOKENS;
    const int64_t most = asked < model->config.positions ? asked : model->config.positions;
    return there < most ? there : most;
}

/* ---- what is tried ---- */

static void add(search *s, arrangement a)
{
    if (s->count < ARRANGEMENTS && s->dims >> a.dim & 1) s->list[s->count++] = a;
}

/* As the first of them and as the last; of many that are decoded together only where it is another message. */
static void add_batches(search *s)
{
    static const int64_t alone[] = { 2, 3, 4, 5, 6, 8, 16, MR_MESSAGE_ROWS, MOST_BATCH }, whole[] = { 2, 3 };
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        for (int last = alone[i] == 16; last < 2; last++)
            add(s, (arrangement){
                       .dim = MR_DIM_BATCH, .batch = alone[i], .place = last ? alone[i] - 1 : 0, .decode = true });
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        for (int last = 0; last < 2; last++)
            add(s, (arrangement){ .dim = MR_DIM_BATCH, .batch = whole[i], .place = last ? whole[i] - 1 : 0 });
}

/* At every place, or on both sides of those where something may begin anew. */
static bool is_tried(int64_t cut, int64_t tokens)
{
    static const int64_t near[] = { 1, 2, 3, 4, 8, 16, 32, 64, 128, 256 };
    bool is = tokens <= FINE || cut == tokens - 1 || cut == tokens / 2;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) is |= cut >= near[i] - 1 && cut <= near[i] + 1;
    return is;
}

static void add_chunks(search *s)
{
    for (int64_t cut = 1; cut < s->tokens; cut++)
        if (is_tried(cut, s->tokens)) add(s, (arrangement){ .dim = MR_DIM_CHUNKS, .batch = 1, .cut = cut });
    for (int64_t each = 1; each < s->tokens; each *= 2)
        add(s, (arrangement){ .dim = MR_DIM_CHUNKS, .batch = 1, .each = each });
}

static bool is_possible(search *s, const mr_setting *setting)
{
    char why[IO_WHY];
    mr_run run;
    const bool is = mr_run_start(&run, s->model, setting, 0, 1, why);
    mr_run_end(&run);
    return is;
}

static void add_cores(search *s, const mr_setting *setting)
{
    for (int tp = 1; tp <= 64; tp++) {
        mr_setting other = *setting;
        other.tp = tp;
        const bool usual = (tp & (tp - 1)) == 0 || tp == 3 || tp == 6 || tp == 12;
        if (usual && tp != setting->tp && is_possible(s, &other))
            add(s, (arrangement){ .dim = MR_DIM_CORES, .batch = 1, .tp = tp });
    }
}

/* ---- their names ---- */

static void name_of(const arrangement *a, char *name, size_t size)
{
    if (a->dim == MR_DIM_CORES)
        snprintf(name, size, "%d core%s", a->tp, a->tp == 1 ? "" : "s");
    else if (a->dim == MR_DIM_BATCH)
        snprintf(name, size, "%lld sequences%s, the %s of them", (long long)a->batch, a->decode ? " decode" : "",
                 a->place ? "last" : "first");
    else if (a->each)
        snprintf(name, size, "in pieces of %lld token%s", (long long)a->each, a->each == 1 ? "" : "s");
    else
        snprintf(name, size, "cut after %lld token%s", (long long)a->cut, a->cut == 1 ? "" : "s");
}

/* ---- running one ---- */

/* Other sequences take up the text where the probe ends, each a little further on. */
static int32_t other_token(const search *s, int64_t sequence, int64_t i)
{
    return s->text->token[(s->tokens + 7 * sequence + i) % s->text->tokens];
}

/* The probe's tokens [from, from + count), and `batch` - 1 others' [0, others) beside them. */
static void step(search *s, int64_t from, int64_t count, int64_t batch, int64_t place, int64_t others)
{
    const mr_config *c = &s->model->config;
    int64_t rows = 0;
    for (int64_t b = 0; b < batch; b++) {
        const bool probe = b == place;
        const int64_t n = probe ? count : others, at = probe ? from : 0;
        s->span[b] = (mr_span){ rows, n, at, probe ? 0 : (int)(b < place ? b + 1 : b) };
        for (int64_t i = 0; i < n; i++, rows++) {
            s->token[rows] = probe ? s->text->token[at + i] : other_token(s, b, i);
            s->probe[rows] = probe ? at + i : -1 - rows;
        }
    }
    mr_watcher_rows(s->watcher, s->probe, rows);
    mr_forward(&s->run, s->token, s->span, (int)batch, rows, s->h);
    const int64_t last = rows < HEAD_ROWS ? rows : HEAD_ROWS, skip = rows - last;
    mr_watcher_rows(s->watcher, s->probe + skip, last);
    mr_logits(&s->run, s->h + skip * c->hidden, last, s->logits);
}

/* Decoding, all but the last token is in the probe's cache already, where the plain arrangement ran before; but a state
 * has gone on. */
static void run_one(search *s, const arrangement *a, bool plain)
{
    const int64_t n = s->tokens;
    const bool fresh = plain || s->model->config.recurrence.rule != MR_NO_RULE;
    if (a->dim == MR_DIM_CORES && a->tp) s->run.setting.tp = a->tp;
    if (a->decode) {
        if (n > 1 && fresh) step(s, 0, n - 1, 1, 0, 0);
        step(s, n - 1, 1, a->batch, a->place, 1);
    } else if (a->cut) {
        step(s, 0, a->cut, 1, 0, 0);
        step(s, a->cut, n - a->cut, 1, 0, 0);
    } else
        for (int64_t at = 0, each = a->each ? a->each : n; at < n; at += each)
            step(s, at, n - at < each ? n - at : each, a->batch, a->place, n);
}

/* All arrangements that are held against this plain one. */
static void run_group(search *s, const arrangement *plain, mr_numbers numbers, const char *name)
{
    const int tp = s->run.setting.tp;
    char label[80];
    bool recorded[2] = { false, false }; /* without and with other cores: what a cut product is called */
    for (int i = 0; i < s->count; i++) {
        const arrangement *a = &s->list[i];
        const bool recut = a->dim == MR_DIM_CORES;
        if (a->decode != plain->decode) continue;
        if (!recorded[recut]) {
            if (recut) snprintf(label, sizeof label, "%d core%s", tp, tp == 1 ? "" : "s");
            mr_watcher_record(s->watcher, numbers, recut ? label : name, recut);
            run_one(s, plain, true);
            recorded[recut] = true;
        }
        name_of(a, label, sizeof label);
        mr_watcher_compare(s->watcher, s->result->tally[a->dim], label);
        run_one(s, a, false);
        s->run.setting.tp = tp;
        app_progress("%s: %s, %d of %d", s->run.setting.name, mr_dim_name(a->dim), i + 1, s->count);
    }
}

static void run_all(search *s)
{
    static const arrangement alone = { .dim = MR_DIM_BATCH, .batch = 1, .decode = true }, whole = { .batch = 1 };
    for (mr_numbers n = MR_NUMBERS_MODEL; n <= MR_NUMBERS_FREE; n++) {
        run_group(s, &alone, n, "1 sequence decodes");
        run_group(s, &whole, n, "1 sequence, its prompt whole");
    }
    for (int i = 0; i < s->count; i++) s->result->arrangements[s->list[i].dim]++;
    for (int k = 0; k < MR_KINDS; k++) s->result->saw[k] = mr_watcher_saw(s->watcher, (mr_kind)k);
}

/* ---- the search ---- */

static void *memory_of(int64_t count, size_t size) { return app_memory((size_t)(count > 0 ? count : 1), size); }

bool mr_search(mr_model *model, const mr_setting *setting, const mr_text *text, int64_t tokens, uint32_t dims,
               mr_searched *result, char *why)
{
    const mr_config *c = &model->config;
    const int64_t rows = 3 * tokens > MOST_BATCH ? 3 * tokens : MOST_BATCH;
    search s = { .model = model, .text = text, .tokens = tokens, .dims = dims, .result = result };
    memset(result, 0, sizeof *result);
    if (!mr_run_start(&s.run, model, setting, MOST_BATCH, tokens, why)) {
        mr_run_end(&s.run);
        return false;
    }
    s.watcher = mr_watcher_new(model, tokens);
    s.run.keep = true;
    add_batches(&s);
    add_chunks(&s);
    add_cores(&s, setting);
    s.run.watch = mr_watch;
    s.run.watcher = s.watcher;
    s.token = memory_of(rows, sizeof *s.token);
    s.probe = memory_of(rows, sizeof *s.probe);
    s.span = memory_of(MOST_BATCH, sizeof *s.span);
    s.h = memory_of(rows * c->hidden, sizeof *s.h);
    s.logits = memory_of((rows < HEAD_ROWS ? rows : HEAD_ROWS) * c->vocab, sizeof *s.logits);
    run_all(&s);
    app_progress_done();
    free(s.token);
    free(s.probe);
    free(s.span);
    free(s.h);
    free(s.logits);
    mr_watcher_free(s.watcher);
    mr_run_end(&s.run);
    return true;
}
