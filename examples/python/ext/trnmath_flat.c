/* trnmath_flat.c - the functions of trnmath_flat.h: names become numbers, views tensors, and trnmath does the rest.
 * SPDX-License-Identifier: MIT
 */
#include "trnmath_flat.h"

#include "flat_config.h"
#include "flat_plan.h"
#include "flat_tables.h"

/* What is too large for an int must not look like something that is not. */
static int narrowed(int64_t n) { return n > INT_MAX ? INT_MAX : n < INT_MIN ? INT_MIN : (int)n; }

static trn_tensor tensor(const trnmath_view *view)
{
    if (!view) return trn_tensor_nd(TRN_FORMAT_UNSET, NULL, 0, NULL);
    const bool known = view->format > 0 && view->format < TRN_CFP8; /* a cFP8 view would need more than a number */
    const trn_format format = known ? (trn_format)view->format : TRN_FORMAT_UNSET;
    trn_tensor t = trn_tensor_nd(format, view->data, narrowed(view->rank), view->shape);
    for (int i = 0; i < t.rank && i < TRN_MAX_RANK; i++) t.stride[i] = view->stride[i];
    return t;
}

/* ---- options ---- */

typedef struct resolved {
    trnmath_options given;
    trn_rounding rounding;
    trn_overflow overflow;
    trn_generation generation;
    trn_numerics numbers;
    const trn_numerics *numerics; /* numbers, or NULL */
} resolved;

static trn_status resolve(const trnmath_options *options, resolved *r, trn_error *error)
{
    static const trn_generation generation[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    memset(r, 0, sizeof *r);
    memset(error, 0, sizeof *error);
    if (!options) return TRN_OK;
    r->given = *options;
    if (options->rounding) r->rounding = trn_round_from_text(options->rounding);
    if ((int)r->rounding == TRN_ROUNDING_COUNT)
        return failed(error, TRN_EINVAL, "rounding \"%.60s\" is unknown", options->rounding);
    r->overflow = options->saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    if (options->generation < 0 || options->generation > 3)
        return failed(error, TRN_EINVAL, "generation is %lld, expected 1, 2 or 3", (long long)options->generation);
    r->generation = generation[options->generation];
    if (options->sr_bits < 0 || options->sr_bits > 32)
        return failed(error, TRN_EINVAL, "sr_bits is %lld, expected 1 to 32", (long long)options->sr_bits);
    if (!options->numerics || !*options->numerics) return TRN_OK;
    r->numerics = &r->numbers;
    return trn_numerics_read(&r->numbers, options->numerics, error);
}

/* These fields of a call's arguments. */
#define ROUNDED_AS_IN(r) .rounding = (r).rounding, .seed = (r).given.seed, .stream = (r).given.stream

/* ---- facts ---- */

const char *trnmath_version(void) { return trn_version(); }
const char *trnmath_isa(void) { return trn_isa_name(); }
int64_t trnmath_format(const char *name)
{
    trn_format format = TRN_FORMAT_UNSET;
    return trn_format_read(&format, name, NULL) == TRN_OK ? (int64_t)format : 0;
}

const char *trnmath_format_name(int64_t format)
{
    return trn_format_name(format > 0 && format <= TRN_CFP8 ? (trn_format)format : TRN_FORMAT_UNSET);
}

int64_t trnmath_format_bytes(int64_t format)
{
    return format > 0 && format <= TRN_CFP8 ? (int64_t)trn_format_bytes((trn_format)format) : 0;
}

/* ---- arrays ---- */

int trnmath_convert(const trnmath_view *dst, const trnmath_view *src, const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    if (status == TRN_OK)
        status = trn_convert(&(trn_convert_args){ .dst = tensor(dst),
                                                  .src = tensor(src),
                                                  ROUNDED_AS_IN(r),
                                                  .overflow = r.overflow,
                                                  .sr_bits = (int)r.given.sr_bits,
                                                  .error = &error });
    return done(why, status, &error);
}

/* The product that both calls below mean. */
static trn_matmul_args product_of(const trnmath_view *dst, const trnmath_view *a, const trnmath_view *b,
                                  const trnmath_view *a_scale, const trnmath_view *b_scale, const resolved *r,
                                  trn_error *error)
{
    return (trn_matmul_args){ .generation = r->generation,
                              .dst = tensor(dst),
                              .a = tensor(a),
                              .b = tensor(b),
                              .a_scale = tensor(a_scale),
                              .b_scale = tensor(b_scale),
                              .accumulate = r->given.accumulate != 0,
                              .double_row = r->given.double_row != 0,
                              ROUNDED_AS_IN(*r),
                              .overflow = r->overflow,
                              .numerics = r->numerics,
                              .error = error };
}

int trnmath_matmul(const trnmath_view *dst, const trnmath_view *a, const trnmath_view *b, const trnmath_view *a_scale,
                   const trnmath_view *b_scale, const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    if (status == TRN_OK) {
        const trn_matmul_args args = product_of(dst, a, b, a_scale, b_scale, &r, &error);
        status = trn_matmul(&args);
    }
    return done(why, status, &error);
}

int trnmath_tolerance(const trnmath_view *worst, const trnmath_view *sigma, const trnmath_view *dst,
                      const trnmath_view *a, const trnmath_view *b, const trnmath_view *a_scale,
                      const trnmath_view *b_scale, const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    if (status == TRN_OK) {
        const trn_matmul_args args = product_of(dst, a, b, a_scale, b_scale, &r, &error);
        status = trn_tolerance(
            &(trn_tolerance_args){ .matmul = &args, .worst = tensor(worst), .sigma = tensor(sigma), .error = &error });
    }
    return done(why, status, &error);
}

int trnmath_activation(const trnmath_view *dst, const trnmath_view *src, const char *f, float scale, float bias,
                       const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    const trn_act op = f ? trn_act_from_name(f) : TRN_ACT_COUNT;
    if (status == TRN_OK && op == TRN_ACT_COUNT)
        status = failed(&error, TRN_EINVAL, "the Scalar engine has no function \"%.60s\"", f ? f : "");
    if (status == TRN_OK && scale == 0) /* which trn_activation takes for 1 */
        status = failed(&error, TRN_EINVAL, "scale is 0, so that no element of the source would count");
    if (status == TRN_OK)
        status = trn_activation(&(trn_activation_args){ .generation = r.generation,
                                                        .unlimited = true,
                                                        ROUNDED_AS_IN(r),
                                                        .numerics = r.numerics,
                                                        .error = &error,
                                                        .dst = tensor(dst),
                                                        .src = tensor(src),
                                                        .op = op,
                                                        .scale = scale,
                                                        .bias = bias });
    return done(why, status, &error);
}

/* ---- blocks with scales ---- */

/* A trn_mx_scale; -1 if there is none of this name. */
static int rule_from_name(const char *name)
{
    static const char *const rules[TRN_MX_SCALE_COUNT] = { "neuron", "ocp_floor", "round_up", "even", "ceil" };
    int rule = 0;
    while (name && rule < TRN_MX_SCALE_COUNT && strcmp(name, rules[rule]) != 0) rule++;
    return rule < TRN_MX_SCALE_COUNT ? rule : -1;
}

int trnmath_mx_quantize(const trnmath_view *dst, const trnmath_view *dst_scale, const trnmath_view *src,
                        const char *rule, int64_t axis, const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    const int chosen = rule_from_name(rule);
    if (status == TRN_OK && chosen < 0) status = failed(&error, TRN_EINVAL, "rule \"%.60s\" is unknown", rule);
    if (status == TRN_OK)
        status = trn_mx_quantize(&(trn_mx_quantize_args){ .dst = tensor(dst),
                                                          .dst_scale = tensor(dst_scale),
                                                          .src = tensor(src),
                                                          .scale = (trn_mx_scale)chosen,
                                                          .axis = narrowed(axis),
                                                          ROUNDED_AS_IN(r),
                                                          .sr_bits = (int)r.given.sr_bits,
                                                          .error = &error });
    return done(why, status, &error);
}

int trnmath_mx_dequantize(const trnmath_view *dst, const trnmath_view *src, const trnmath_view *src_scale, int64_t axis,
                          char *why)
{
    trn_error error = { TRN_OK, "" };
    const trn_status status = trn_mx_dequantize(&(trn_mx_dequantize_args){ .dst = tensor(dst),
                                                                           .src = tensor(src),
                                                                           .src_scale = tensor(src_scale),
                                                                           .axis = narrowed(axis),
                                                                           .error = &error });
    return done(why, status, &error);
}

int trnmath_mx_sbuf(const trnmath_view *words, const trnmath_view *scale_tile, const trnmath_view *codes,
                    const trnmath_view *scales, int64_t scale_offset, int64_t slot_distance, int64_t from, char *why)
{
    trn_error error = { TRN_OK, "" };
    const trn_mx_sbuf_args args = { .words = tensor(words),
                                    .codes = tensor(codes),
                                    .scale_tile = tensor(scale_tile),
                                    .scales = tensor(scales),
                                    .scale_offset = narrowed(scale_offset),
                                    .slot_distance = narrowed(slot_distance),
                                    .error = &error };
    return done(why, from ? trn_mx_from_sbuf(&args) : trn_mx_to_sbuf(&args), &error);
}

int trnmath_mx_fp4_to_fp8(const trnmath_view *dst, const trnmath_view *src, const uint8_t *map, char *why)
{
    trn_error error = { TRN_OK, "" };
    const trn_status status =
        trn_mx_fp4_to_fp8(&(trn_mx_fp4_args){ .dst = tensor(dst), .src = tensor(src), .map = map, .error = &error });
    return done(why, status, &error);
}

/* ---- sparse ---- */

/* What does not fit into an int is no pattern either. */
static trn_sparse_pattern pattern(int64_t m, int64_t n)
{
    const bool fits = m > 0 && n > 0 && m <= 16 && n <= 16;
    const trn_sparse_pattern p = { fits ? (int)m : 0, fits ? (int)n : 0 };
    return p;
}

int trnmath_sparse_pack(const trnmath_view *values, const trnmath_view *tags, const trnmath_view *src, int64_t m,
                        int64_t n, int64_t prune, char *why)
{
    trn_error error = { TRN_OK, "" };
    const trn_status status = trn_sparse_pack(&(trn_sparse_pack_args){ .values = tensor(values),
                                                                       .tags = tensor(tags),
                                                                       .src = tensor(src),
                                                                       .pattern = pattern(m, n),
                                                                       .prune = prune != 0,
                                                                       .error = &error });
    return done(why, status, &error);
}

int trnmath_sparse_unpack(const trnmath_view *dst, const trnmath_view *values, const trnmath_view *tags, int64_t m,
                          int64_t n, char *why)
{
    trn_error error = { TRN_OK, "" };
    const trn_status status = trn_sparse_unpack(&(trn_sparse_unpack_args){ .dst = tensor(dst),
                                                                           .values = tensor(values),
                                                                           .tags = tensor(tags),
                                                                           .pattern = pattern(m, n),
                                                                           .error = &error });
    return done(why, status, &error);
}

int trnmath_sparse_matmul(const trnmath_view *dst, const trnmath_view *values, const trnmath_view *tags,
                          const trnmath_view *b, int64_t m, int64_t n, const trnmath_options *options, char *why)
{
    trn_error error;
    resolved r;
    trn_status status = resolve(options, &r, &error);
    if (status == TRN_OK)
        status = trn_sparse_matmul(&(trn_sparse_matmul_args){ .generation = r.generation,
                                                              .dst = tensor(dst),
                                                              .values = tensor(values),
                                                              .tags = tensor(tags),
                                                              .pattern = pattern(m, n),
                                                              .b = tensor(b),
                                                              .accumulate = r.given.accumulate != 0,
                                                              ROUNDED_AS_IN(r),
                                                              .overflow = r.overflow,
                                                              .numerics = r.numerics,
                                                              .error = &error });
    return done(why, status, &error);
}

/* ---- what is assumed ---- */

int trnmath_explain(const char *numerics, char *lines, size_t lines_room, char *why)
{
    trn_error error = { TRN_OK, "" };
    trn_numerics n;
    sheet s = { 0 };
    if (!lines) return told(why, TRN_EINVAL, "lines is null");
    const trn_status status = trn_numerics_read(&n, numerics ? numerics : "", &error);
    if (status == TRN_OK) trn_numerics_explain(&n, add_line, &s);
    return give(&s, status, &error, lines, lines_room, why);
}

/* ---- what there is ---- */

static const table tables[] = { { "formats", write_formats },
                                { "generations", write_generations },
                                { "systems", write_systems },
                                { "rates", write_rates },
                                { "spec", write_spec },
                                { "alternatives", write_alternatives },
                                { "instructions", write_instructions },
                                { "rules", write_rules },
                                { "activations", write_activations },
                                { "presets", write_presets },
                                { "collectives", write_collectives },
                                { "algorithms", write_algorithms },
                                { "roundings", write_roundings },
                                { "engines", write_engines },
                                { "parts", write_parts },
                                { "model_fields", write_model_fields },
                                { "job_fields", write_job_fields },
                                { "assumptions", write_assumptions } };

int trnmath_table(const char *name, const char *of, char *lines, size_t lines_room, char *why)
{
    trn_error error = { TRN_OK, "" };
    sheet s = { 0 };
    size_t i = 0;
    if (!lines) return told(why, TRN_EINVAL, "lines is null");
    while (i < COUNT(tables) && (!name || strcmp(name, tables[i].name) != 0)) i++;
    const trn_status status = i < COUNT(tables)
                                  ? tables[i].write(&s, of, &error)
                                  : failed(&error, TRN_EINVAL, "there is no table \"%.60s\"", name ? name : "");
    return give(&s, status, &error, lines, lines_room, why);
}

/* ---- plans ---- */

int trnmath_config(const char *text, const char *name, int64_t decodes, char *lines, size_t lines_room, char *why)
{
    trn_error error = { TRN_OK, "" };
    sheet s = { 0 };
    if (!text || !name || !lines) return told(why, TRN_EINVAL, "text, name or lines is null");
    const trn_status status = write_config(&s, text, name, decodes != 0, &error);
    return give(&s, status, &error, lines, lines_room, why);
}

static trn_status find_system(const char *name, trn_topology *net, trn_error *error)
{
    const trn_system system = trn_system_from_name(name);
    if (system == TRN_SYSTEM_COUNT) return failed(error, TRN_EINVAL, "system \"%.60s\" is unknown", name ? name : "");
    *net = trn_topology_of(system);
    return TRN_OK;
}

int trnmath_plans(const char *system, const char *model, const char *job, int64_t most, char *lines, size_t lines_room,
                  char *why)
{
    trn_topology net;
    trn_error error = { TRN_OK, "" };
    trn_model m;
    sheet s = { 0 };
    trn_plan_args args = { .model = &m, .net = &net, .error = &error };
    memset(&m, 0, sizeof m);
    copy_text(m.name, sizeof m.name, "the model");
    if (!lines) return told(why, TRN_EINVAL, "lines is null");
    if (most < 1 || most > PLANS_MOST) return told(why, TRN_EINVAL, "most is not 1 to 20000");
    trn_status status = find_system(system, &net, &error);
    if (status == TRN_OK)
        status = read_fields(model, &(field_set){ model_field, MODEL_FIELDS, &m }, 1, "the model", &error);
    if (status == TRN_OK) status = read_job(job, &args, &error);
    if (status == TRN_OK) status = write_plans(&s, &args, most, &error);
    return give(&s, status, &error, lines, lines_room, why);
}

/* ---- many chips ---- */

/* chips: room for the group when the caller named none of its chips but a count. */
static trn_status find_collective(const trnmath_collective_ask *ask, trn_topology *net, int *chips,
                                  trn_collective_args *args, trn_error *error)
{
    const trn_status status = find_system(ask->system, net, error);
    if (status != TRN_OK) return status;
    args->net = net;
    args->op = trn_collective_from_name(ask->op);
    if (args->op == TRN_COLLECTIVE_COUNT)
        return failed(error, TRN_EINVAL, "collective \"%.60s\" is unknown", ask->op ? ask->op : "");
    args->algorithm = ask->algorithm ? trn_algorithm_from_name(ask->algorithm) : TRN_ALGORITHM_AUTO;
    if (args->algorithm == TRN_ALGORITHM_COUNT)
        return failed(error, TRN_EINVAL, "algorithm \"%.60s\" is unknown", ask->algorithm);
    if (ask->wire && trn_format_read(&args->wire, ask->wire, error) != TRN_OK) return TRN_EFORMAT;
    if (ask->count < 0 || ask->count > net->chips)
        return failed(error, TRN_EINVAL, "count is %lld; %s has %d chips", (long long)ask->count, net->name,
                      net->chips);
    if (ask->ranks_per_chip < 0 || ask->ranks_per_chip > 1024)
        return failed(error, TRN_EINVAL, "ranks_per_chip is %lld", (long long)ask->ranks_per_chip);
    for (int i = 0; i < ask->count; i++) chips[i] = ask->chips ? ask->chips[i] : i;
    args->chips = ask->count ? chips : NULL;
    args->count = (int)ask->count;
    args->ranks_per_chip = (int)ask->ranks_per_chip;
    args->bytes = ask->bytes;
    args->error = error;
    return TRN_OK;
}

static int *chips_room(const trnmath_collective_ask *ask)
{
    const int64_t count = ask && ask->count > 0 && ask->count < 1 << 20 ? ask->count : 1;
    return (int *)malloc(sizeof(int) * (size_t)count);
}

int trnmath_collective_cost(const trnmath_collective_ask *ask, trnmath_collective_answer *answer, char *why)
{
    trn_topology net;
    trn_cost cost;
    trn_error error = { TRN_OK, "" };
    trn_collective_args args = { 0 };
    if (!ask || !answer) return told(why, TRN_EINVAL, "ask or answer is null");
    int *chips = chips_room(ask);
    if (!chips) return told(why, TRN_ENOSPC, "no memory for the group");
    trn_status status = find_collective(ask, &net, chips, &args, &error);
    if (status == TRN_OK) status = trn_collective_cost(&args, &cost);
    free(chips);
    if (status != TRN_OK) return done(why, status, &error);
    memset(answer, 0, sizeof *answer);
    answer->time_s = cost.time_s;
    answer->lower_bound_s = cost.lower_bound_s;
    answer->latency_s = cost.latency_s;
    answer->bytes_per_s = cost.bytes_per_s;
    answer->bus_bytes_per_s = cost.bus_bytes_per_s;
    answer->steps = cost.steps;
    copy_text(answer->algorithm, sizeof answer->algorithm, trn_algorithm_name(cost.algorithm));
    copy_text(answer->bottleneck, sizeof answer->bottleneck, cost.bottleneck);
    return TRN_OK;
}

static trn_status run_collective(trn_collective_args *args, const trnmath_view *dst, const trnmath_view *src,
                                 int64_t ranks)
{
    trn_tensor *views = (trn_tensor *)malloc(sizeof(trn_tensor) * (size_t)ranks * 2);
    if (!views) return failed(args->error, TRN_ENOSPC, "no memory for %lld views", (long long)ranks * 2);
    for (int64_t i = 0; i < ranks; i++) {
        views[i] = tensor(&src[i]);
        views[ranks + i] = tensor(&dst[i]);
    }
    args->src = views;
    args->dst = views + ranks;
    const trn_status status = trn_collective_run(args);
    free(views);
    return status;
}

int trnmath_collective(const trnmath_collective_ask *ask, const trnmath_view *dst, const trnmath_view *src,
                       int64_t ranks, const trnmath_options *options, char *why)
{
    trn_topology net;
    trn_error error;
    resolved r;
    trn_collective_args args = { 0 };
    if (!ask || !dst || !src) return told(why, TRN_EINVAL, "ask, dst or src is null");
    trn_status status = resolve(options, &r, &error);
    int *chips = chips_room(ask);
    if (!chips) return told(why, TRN_ENOSPC, "no memory for the group");
    if (status == TRN_OK) status = find_collective(ask, &net, chips, &args, &error);
    if (status == TRN_OK && trn_collective_ranks(&args) != ranks)
        status = failed(&error, TRN_ESHAPE, "%lld arrays are given, but the group has %d ranks", (long long)ranks,
                        trn_collective_ranks(&args));
    if (status == TRN_OK) {
        args.rounding = r.rounding;
        args.overflow = r.overflow;
        args.seed = r.given.seed;
        args.stream = r.given.stream;
        args.sr_bits = (int)r.given.sr_bits;
        status = run_collective(&args, dst, src, ranks);
    }
    free(chips);
    return done(why, status, &error);
}

/* One line per step; what does not fit is cut off. */
static void write_steps(const trn_reshard_plan *plan, const trn_mesh *mesh, char *text, size_t room)
{
    size_t at = 0;
    if (room) text[0] = 0;
    for (int i = 0; i < plan->steps && at + 1 < room; i++) {
        char line[256];
        trn_reshard_step_format(&plan->step[i], mesh, line, sizeof line);
        const int n = snprintf(text + at, room - at, "%s, %.3g s\n", line, plan->step[i].cost.time_s);
        at += (size_t)n < room - at ? (size_t)n : room - at;
    }
}

int trnmath_redistribute_cost(const char *system, const char *mesh, const char *from, const char *to,
                              const char *format, const int64_t *shape, int64_t rank, double time_s[2], char *steps,
                              size_t steps_room, char *why)
{
    trn_topology net;
    trn_mesh devices;
    trn_reshard_plan plan;
    trn_error error = { TRN_OK, "" };
    trn_redistribute_args args = { .mesh = &devices, .error = &error };
    if (!mesh || !from || !to || !shape || !time_s || rank < 1 || rank > TRN_MAX_RANK)
        return told(why, TRN_EINVAL, "an argument is null, or the rank is not 1 to 6");
    trn_format elements = TRN_FORMAT_UNSET;
    trn_status status = format ? trn_format_read(&elements, format, &error) : TRN_OK;
    args.global = trn_tensor_nd(elements, NULL, (int)rank, shape);
    if (status == TRN_OK) status = find_system(system, &net, &error);
    if (status == TRN_OK)
        status = trn_mesh_make(&(trn_mesh_args){ .mesh = &devices, .net = &net, .axes = mesh, .error = &error });
    if (status == TRN_OK) status = trn_pspec_read(&args.from, &devices, from, &error);
    if (status == TRN_OK) status = trn_pspec_read(&args.to, &devices, to, &error);
    if (status == TRN_OK) status = trn_redistribute_plan(&args, &plan);
    if (status != TRN_OK) return done(why, status, &error);
    time_s[0] = plan.time_s;
    time_s[1] = plan.lower_bound_s;
    if (steps) write_steps(&plan, &devices, steps, steps_room);
    return TRN_OK;
}
