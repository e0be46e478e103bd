/* measure.c - how fast conversions are, beside their peers, memcpy, and loops that only move bytes.
 * SPDX-License-Identifier: MIT
 *
 * Method: one process, one pair of arrays, all candidates in turn within each round. Reported are the best round and
 * the medians of the ratios within a round, because machines are shared and their clocks wander. A thread that works
 * alone is timed by its own processor time, so that what other programs take away does not count. Several threads share
 * an array, and the clock on the wall; or, when it is so small that nobody would share it, each has an array of its
 * own.
 */
#define _POSIX_C_SOURCE 200809L

#include "convert.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/common/host.h"

enum { COPY = TB_MAKERS, STREAM, CANDIDATES = STREAM + TB_STREAMS, PILOT = 16 * TB_STREAM_GRAIN };

/* ---- arrays ---- */

static void *page_aligned(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes)) return NULL;
    return memset(p, 0, bytes);
}

bool tb_buffers_get(tb_buffers *b, size_t elements)
{
    memset(b, 0, sizeof *b);
    b->room = elements;
    b->src = page_aligned(4 * elements);
    b->dst = page_aligned(4 * elements);
    b->src_scale = page_aligned(elements / TB_MX_BLOCK + 1);
    b->dst_scale = page_aligned(elements / TB_MX_BLOCK + 1);
    return b->src && b->dst && b->src_scale && b->dst_scale;
}

void tb_buffers_free(tb_buffers *b)
{
    free(b->src);
    free(b->dst);
    free(b->src_scale);
    free(b->dst_scale);
}

/* From 2^-8 to 2^3: most formats hold them, none in its subnormals alone. Integers get 16 times as much. */
static void fill_f32(float *x, size_t n, bool negative_too, float scale)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t r = (uint32_t)((i + 1) * 0x9E3779B97F4A7C15u >> 32), place = (r >> 23 & 0xffu) * 11 / 256;
        const uint32_t bits = (r & (negative_too ? 0x807fffffu : 0x7fffffu)) | (119u + place) << 23;
        memcpy(x + i, &bits, sizeof bits);
        x[i] *= scale;
    }
}

bool tb_fill_source(tb_buffers *b, const tb_number *from)
{
    const bool integer = !from->mx && tb_is_integer(from->format);
    const bool negative_too = trn_format_limits_of(from->format).lowest < 0;
    fill_f32((float *)(void *)b->dst, b->room, negative_too, integer ? 16.0f : 1.0f);
    if (from->format == TRN_F32) return memcpy(b->src, b->dst, 4 * b->room), true;
    const tb_conversion c = { tb_number_find("f32"), from, TRN_NEAREST_EVEN, TRN_SATURATE, 0, false, "" };
    const tb_arrays arrays = { b->src, b->src_scale, b->dst, NULL, b->room, 1, TRN_ISA_AUTO, 1 };
    void *job = tb_maker_prepare(TB_TRNMATH, &c, &arrays);
    if (job) tb_maker_run(TB_TRNMATH, job);
    tb_maker_release(TB_TRNMATH, job);
    return job != NULL;
}

const char *tb_memory_name(double bytes)
{
    static const char *const name[] = { "L1", "L2", "L3" };
    for (int index = 0; index < 8; index++) {
        char path[96], type[16] = "";
        long level = 0, kib = 0;
        static const char *const field[] = { "level", "size", "type" };
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, field[i]);
            FILE *f = app_open(path);
            const int got = !f       ? 0
                            : i == 0 ? fscanf(f, "%ld", &level)
                            : i == 1 ? fscanf(f, "%ld", &kib)
                                     : fscanf(f, "%15s", type);
            if (f) fclose(f);
            if (got != 1) return bytes > 16e6 ? "DRAM" : "cache"; /* a system that does not tell */
        }
        if (level >= 1 && level <= 3 && strcmp(type, "Instruction") != 0 && bytes <= 1024.0 * (double)kib)
            return name[level - 1];
        if (level >= 3) break;
    }
    return "DRAM";
}

/* ---- candidates ---- */

/* Arrays below this size are not shared by threads: each thread has its own, so that all their caches are at work. */
enum { SHARED = 1 << 17 };

typedef struct lane {
    const struct candidate *candidate;
    tb_arrays arrays;
    void *prepared; /* of a maker */
} lane;

typedef struct candidate {
    void (*run)(lane *lane);
    const tb_conversion *conversion;
    tb_maker_id maker;
    tb_stream stream;
    size_t copy_bytes; /* per two elements */
    lane *lane;        /* one, or one per thread */
    int lanes;
    int64_t calls;
    double rate[TB_CONVERT_ROUNDS]; /* elements per second, of all lanes */
} candidate;

static void run_maker(lane *l) { tb_maker_run(l->candidate->maker, l->prepared); }

static void copy_part(void *context, size_t first, size_t count)
{
    const lane *l = context;
    const size_t bytes = l->candidate->copy_bytes;
    memcpy((char *)l->arrays.dst + first / 2 * bytes, (const char *)l->arrays.src + first / 2 * bytes,
           count / 2 * bytes);
}
static void run_copy(lane *l) { tb_split(l->arrays.n, l->arrays.threads, copy_part, l); }

static void stream_part(void *context, size_t first, size_t count)
{
    const lane *l = context;
    const tb_stream *s = &l->candidate->stream;
    const size_t read = trn_format_bytes(l->candidate->conversion->from->format), per_block = s->read / read;
    s->run((char *)l->arrays.dst + first / per_block * s->written, (const char *)l->arrays.src + first * read,
           count / per_block);
}
static void run_stream(lane *l) { tb_split(l->arrays.n, l->arrays.threads, stream_part, l); }

/* Whose arrays begin where, with n elements each. */
static tb_arrays arrays_of(const tb_buffers *b, int lane, int threads, size_t n, trn_isa isa)
{
    const size_t first = (size_t)lane * n;
    return (tb_arrays){ b->dst + 4 * first,
                        b->dst_scale + first / TB_MX_BLOCK,
                        b->src + 4 * first,
                        b->src_scale + first / TB_MX_BLOCK,
                        n,
                        threads,
                        isa,
                        1 };
}

static void release(candidate *c)
{
    for (int i = 0; i < c->lanes; i++)
        if (c->lane[i].prepared) tb_maker_release(c->maker, c->lane[i].prepared);
    free(c->lane);
    c->lane = NULL;
    c->lanes = 0;
}

/* False: it cannot. */
static bool prepare(candidate *c, const tb_buffers *b, size_t n, int threads, bool apart, trn_isa isa)
{
    const int lanes = apart ? threads : 1;
    release(c);
    c->lane = calloc((size_t)lanes, sizeof *c->lane);
    if (!c->lane) return false;
    for (c->lanes = 0; c->lanes < lanes; c->lanes++) {
        lane *l = &c->lane[c->lanes];
        l->candidate = c;
        l->arrays = arrays_of(b, c->lanes, apart ? 1 : threads, n, isa);
        if (c->run != run_maker) continue;
        l->prepared = tb_maker_prepare(c->maker, c->conversion, &l->arrays);
        if (!l->prepared) return false;
    }
    return true;
}

static void start(candidate *list, const tb_conversion *conversion, const tb_measure_options *options)
{
    const size_t read = trn_format_bytes(conversion->from->format), written = trn_format_bytes(conversion->to->format);
    for (int i = 0; i < CANDIDATES; i++) {
        candidate *c = &list[i];
        memset(c, 0, sizeof *c);
        c->conversion = conversion;
        c->copy_bytes = read + written;
        if (i < TB_MAKERS) {
            c->maker = (tb_maker_id)i;
            c->run = options->maker[i] ? run_maker : NULL;
        } else if (i == COPY) {
            c->run = run_copy;
        } else {
            c->stream = tb_stream_for(read, written, i - STREAM);
            c->run = c->stream.run ? run_stream : NULL;
        }
    }
}

/* ---- time ---- */

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_lane(const candidate *c, lane *l, int64_t calls, clockid_t clock)
{
    const double begin = seconds_of(clock);
    for (int64_t i = 0; i < calls; i++) c->run(l);
    return seconds_of(clock) - begin;
}

/* Idle threads of OpenMP spin for up to 5 ms (measured). On a busy machine that costs them their turn; after a sleep
 * they are served first. */
static void rest(void)
{
    const struct timespec t = { 0, 6000000 };
    nanosleep(&t, NULL);
}

/* Elements per second. A thread that works alone is timed by its own processor time. */
static double rate_of(const candidate *c, int64_t calls, tb_buffers *b)
{
    const double elements = (double)c->lane[0].arrays.n * (double)calls, begin = app_now();
    double rate = 0;
    if (c->lane[0].arrays.threads > 1) return elements / time_lane(c, &c->lane[0], calls, CLOCK_MONOTONIC);
    if (c->lanes == 1) {
        const double took = time_lane(c, &c->lane[0], calls, CLOCK_THREAD_CPUTIME_ID);
        b->busy_s += took, b->wall_s += app_now() - begin;
        return elements / took;
    }
#if defined(_OPENMP)
#pragma omp parallel for schedule(static) num_threads(c->lanes) reduction(+ : rate)
#endif
    for (int i = 0; i < c->lanes; i++) rate += elements / time_lane(c, &c->lane[i], calls, CLOCK_THREAD_CPUTIME_ID);
    return rate;
}

/* A first call on a small part pays for tables and threads; the second says what a call costs. */
static bool warm_up(candidate *c, size_t n, int threads, const tb_measure_options *o, tb_buffers *b, bool *part)
{
    const bool apart = threads > 1 && n < SHARED;
    const size_t pilot = n < PILOT ? n : PILOT;
    if (!prepare(c, b, pilot, 1, false, o->isa)) return false;
    c->run(&c->lane[0]);
    const double rate = rate_of(c, 1, b);
    size_t share = n;
    if ((double)n / rate > o->most_s) {
        share = (size_t)(rate * o->most_s) / TB_STREAM_GRAIN * TB_STREAM_GRAIN;
        share = share < pilot ? pilot : share;
        *part = *part || share < n;
    }
    const double calls = o->call_s * rate / (double)share;
    c->calls = calls < 1 ? 1 : (int64_t)calls;
    if (!prepare(c, b, share, threads, apart, o->isa)) return false;
    return rate_of(c, 1, b) > 0;
}

static void one_round(candidate *list, int round, tb_buffers *b)
{
    for (int k = 0; k < CANDIDATES; k++) {
        candidate *c = &list[(k + round) % CANDIDATES]; /* nobody always follows the same one */
        if (!c->run) continue;
        if (c->lane[0].arrays.threads > 1) rest();
        if (c->calls > 1) rate_of(c, 1, b); /* brings the caches into the state that this candidate leaves behind */
        c->rate[round] = rate_of(c, c->calls, b);
    }
}

/* ---- results ---- */

static tb_speed speed_of(const candidate *list, const candidate *c, const candidate *stream, int rounds)
{
    const candidate *trnmath = &list[TB_TRNMATH];
    tb_speed s = { 0, 0, 0 };
    if (!c->run) return s;
    s.rate = tb_best(c->rate, rounds);
    s.ratio = trnmath->run ? tb_median_ratio(trnmath->rate, c->rate, rounds) : 0;
    s.stream = stream ? tb_median_ratio(c->rate, stream->rate, rounds) : 0;
    return s;
}

/* The variant with the best median: a lucky round of another does not count. Where as many bytes are written as are
 * read, memcpy is one more. */
static const candidate *best_stream(const candidate *list, int rounds)
{
    const candidate *best = NULL;
    for (const candidate *c = &list[COPY]; c < &list[CANDIDATES]; c++)
        if (c->run && (c != &list[COPY] || c->copy_bytes == 2 * trn_format_bytes(c->conversion->from->format)) &&
            (!best || tb_median_ratio(c->rate, best->rate, rounds) > 1))
            best = c;
    return best;
}

size_t tb_measure_room(size_t n, int threads) { return n < SHARED ? n * (size_t)threads : n; }

void tb_measure(const tb_conversion *conversion, tb_buffers *b, size_t n, int threads, const tb_measure_options *o,
                tb_measured *r)
{
    static candidate list[CANDIDATES]; /* large */
    memset(r, 0, sizeof *r);
    start(list, conversion, o);
    for (int i = 0; i < CANDIDATES; i++)
        if (list[i].run && !warm_up(&list[i], n, threads, o, b, &r->part)) list[i].run = NULL;
    for (int round = 0; round < o->rounds; round++) one_round(list, round, b);
    const candidate *stream = best_stream(list, o->rounds);
    for (int i = 0; i < TB_MAKERS; i++) r->maker[i] = speed_of(list, &list[i], stream, o->rounds);
    r->copy = speed_of(list, &list[COPY], stream, o->rounds);
    if (stream) r->stream = speed_of(list, stream, stream, o->rounds);
    r->stream_name = !stream ? NULL : stream == &list[COPY] ? "memcpy" : stream->stream.name;
    for (int i = 0; i < CANDIDATES; i++) release(&list[i]);
}
