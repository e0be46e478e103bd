/* test_trnbench_convert.c - the parts of `trnbench convert` that have an answer: lists, files, streams, verdicts.
 * SPDX-License-Identifier: MIT
 *
 * The program's files are compiled in here, so that a part can be asked without running the whole.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "app/cli.c"
#include "app/completion.c"
#include "app/suggest.c"
#include "app/table.c"
#include "bench/trnbench/convert/answers.c"
#include "bench/trnbench/convert/list.c"
#include "bench/trnbench/convert/makers.c"
#include "bench/trnbench/convert/rows.c"
#include "bench/trnbench/convert/streams.c"
#include "bench/common/golden.c"
#include "bench/peers/peers.c"

#if defined(HAVE_CJSON)
#include <cjson/cJSON.h>

const char app_name[] = "trnbench";
#endif

/* What the rows ask about this host. */
const char *tb_host_processor(void) { return "a \"processor\""; }
const char *tb_memory_name(double bytes) { return bytes > 1e6 ? "DRAM" : "L2"; }

/* ---- the list ---- */

static bool has(const tb_conversion *list, int n, const char *name)
{
    bool found = false;
    for (int i = 0; i < n; i++) found = found || strcmp(list[i].name, name) == 0;
    return found;
}

static void the_usual_conversions(void **state)
{
    const tb_conversion_filter all_usual = { 0 };
    int n;
    (void)state;
    tb_conversion *list = tb_conversions(&all_usual, &n);
    static const char *const wanted[] = {
        "f32->bf16", "f32->e4m3",  "f32->e4m3fn sat", "f32->e5m2 SR16", "f32->bf16 SR32 xorwow",
        "e3m4->f32", "bf16->e4m3", "e5m2->f16",       "f32->mxfp4",     "mxint8->f32"
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!has(list, n, wanted[i])) fail_msg("%s is missing", wanted[i]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(list[i].name, list[j].name);
    free(list);
}

static void filters_choose(void **state)
{
    tb_conversion_filter f = { 0 };
    int usual, all;
    (void)state;
    f.to = tb_number_bit(tb_number_find("e5m2"));
    f.from = tb_number_bit(tb_number_find("f32"));
    f.rounding = 1u << TRN_STOCHASTIC;
    tb_conversion *list = tb_conversions(&f, &usual);
    assert_true(usual >= 2);
    for (int i = 0; i < usual; i++)
        assert_true(list[i].rounding == TRN_STOCHASTIC && list[i].to->format == TRN_F8_E5M2);
    free(list);

    f.rounding = 1u << TRN_TO_ODD; /* not a usual one: found among all */
    list = tb_conversions(&f, &all);
    assert_int_equal(all, 1);
    assert_string_equal(list[0].name, "f32->e5m2 RO");
    free(list);

    f = (tb_conversion_filter){ .to = tb_number_bit(tb_number_find("mxfp4")), .from = f.to };
    list = tb_conversions(&f, &all); /* FP8 does not become MXFP4 */
    assert_int_equal(all, 0);
    free(list);
}

static void names_are_understood(void **state)
{
    (void)state;
    assert_int_equal(tb_number_find("e4m3")->format, TRN_F8_E4M3);
    assert_int_equal(tb_number_find("float8_e4m3")->format, TRN_F8_E4M3);
    assert_int_equal(tb_number_find("F8_E4M3")->format, TRN_F8_E4M3FN); /* safetensors */
    assert_true(tb_number_find("mxfp8_e5m2")->mx);
    assert_false(tb_number_find("float8_e5m2")->mx);
    assert_null(tb_number_find("fp12"));
    const tb_conversion c = { tb_number_find("f32"), tb_number_find("mxfp4"), 0, 0, 0, false, "" };
    assert_true(tb_bytes_read(&c) == 4 && tb_bytes_written(&c) == 1 + 1.0 / 32);
}

/* ---- files ---- */

static char directory[] = "/tmp/trnbench_convert.XXXXXX";

static void write_text(const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void lines_are_words(void **state)
{
    tb_golden g;
    char why[APP_WHY];
    (void)state;
    write_text("good.txt", "0 ffffffff\n3f800000 38\n7 8");
    assert_true(tb_golden_read(directory, "good.txt", 2, &g, why));
    assert_int_equal(g.rows, 3);
    assert_true(g.cell[1] == 0xffffffffu && g.cell[2] == 0x3f800000 && g.cell[5] == 8);
    tb_golden_free(&g);

    static const char *const bad[] = { "1\n", "1 2 3\n", "1 123456789\n", "1 2g\n",     "1  2\n", "1 2 \n",
                                       "\n",  "0x1 2\n", "1 2\n\n",       "1 2\n3 4 5", "-1 2\n", "1\t2\n" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_text("bad.txt", bad[i]);
        if (tb_golden_read(directory, "bad.txt", 2, &g, why)) fail_msg("\"%s\" was read", bad[i]);
    }
    write_text("bad.txt", "1 2\n3 4\n5 six\n");
    assert_false(tb_golden_read(directory, "bad.txt", 2, &g, why));
    assert_string_equal(why, "bad.txt: line 3 is not 2 hexadecimal words");
    assert_false(tb_golden_read(directory, "none.txt", 2, &g, why));
    assert_false(tb_golden_there(directory, "none.txt"));
}

static void blocks_are_read(void **state)
{
    tb_golden_block *block;
    char text[256] = "7f ";
    (void)state;
    for (int i = 0; i < 32; i++) snprintf(text + 3 + i, 2, "%x", (unsigned)i % 16);
    strcat(text, "\n00 ");
    for (int i = 0; i < 32; i++) strcat(text, "f");
    write_text("blocks.txt", text);
    assert_int_equal(tb_golden_blocks(directory, "blocks.txt", 1, &block), 2);
    assert_true(block[0].scale == 0x7f && block[0].code[31] == 15 && block[1].scale == 0 && block[1].code[0] == 15);
    free(block);
    assert_int_equal(tb_golden_blocks(directory, "blocks.txt", 2, &block), 0); /* too short for two digits each */
    free(block);
}

/* ---- verdicts ---- */

static tb_conversion conversion(const char *from, const char *to, trn_rounding rounding)
{
    return (tb_conversion){ tb_number_find(from), tb_number_find(to), rounding, TRN_OVERFLOW_DEFAULT, 32, false, "" };
}

static void a_wrong_line_is_found(void **state)
{
    const tb_conversion nearest = conversion("f32", "e4m3", TRN_NEAREST_EVEN),
                        odd = conversion("f32", "e4m3", TRN_TO_ODD), random = conversion("f32", "e4m3", TRN_STOCHASTIC),
                        from_bf16 = conversion("bf16", "e4m3", 0);
    (void)state;
    write_text("encode_float8_e4m3.txt", "3f800000 38\n3f808000 38\n3f810000 39\n"); /* the last one is 38 */
    tb_answers a = tb_check_conversion(&nearest, TB_TRNMATH, TRN_ISA_AUTO, directory, 1);
    assert_true(a.cases == 3 && a.wrong == 1);
    assert_string_equal(a.first, "3f810000 gives 38 and should give 39");
    a = tb_check_conversion(&from_bf16, TB_TRNMATH, TRN_ISA_AUTO, directory, 1); /* holds the first and the third */
    assert_true(a.cases == 2 && a.wrong == 1);

    write_text("bracket_float8_e4m3.txt", "3f800000 38 38 0\n3f810000 38 39 10000000\n"); /* 2^32/16 */
    a = tb_check_conversion(&odd, TB_TRNMATH, TRN_ISA_AUTO, directory, 1);
    assert_true(a.cases == 4 && a.wrong == 0); /* with their negatives */
    a = tb_check_conversion(&random, TB_TRNMATH, TRN_ISA_AUTO, directory, 1000);
    assert_true(a.cases == 4 && a.wrong == 0);
    tb_conversion xorwow = random;
    for (xorwow.xorwow = true, xorwow.sr_bits = 32; xorwow.sr_bits >= 16; xorwow.sr_bits -= 16) {
        a = tb_check_conversion(&xorwow, TB_TRNMATH, TRN_ISA_AUTO, directory, 1000);
        assert_true(a.cases == 4 && a.wrong == 0);
    }
    write_text("bracket_float8_e4m3.txt", "3f810000 38 39 18000000\n"); /* half as often again: seen in 1000 draws */
    a = tb_check_conversion(&random, TB_TRNMATH, TRN_ISA_AUTO, directory, 1000);
    assert_true(a.cases == 2 && a.wrong == 2);
    a = tb_check_conversion(&odd, TB_TRNMATH, TRN_ISA_AUTO, "/nonexistent", 1);
    assert_int_equal(a.cases, 0);
}

/* ---- streams ---- */

/* All that is read ends in what is written, and nothing else is touched. */
static void streams_move_their_bytes(void **state)
{
    enum { ROOM = 3 * 65536, GUARD = 64 };
    static _Alignas(4096) unsigned char src[ROOM], dst[ROOM + GUARD];
    static const size_t bytes[] = { 1, 2, 4 };
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            for (int variant = 0; variant < TB_STREAMS; variant++) {
                const tb_stream s = tb_stream_for(bytes[i], bytes[j], variant);
                if (!s.run) continue;
                assert_int_equal(s.read * bytes[j], s.written * bytes[i]);
                assert_int_equal(TB_STREAM_GRAIN * bytes[i] % s.read, 0); /* shares of threads are whole blocks */
                const size_t blocks = 8192 * bytes[i] / s.read, last = blocks * s.read - 1;
                memset(src, 0, sizeof src);
                memset(dst, 0x55, sizeof dst);
                src[last] = 0x80;
                s.run((char *)dst, (const char *)src, blocks);
                assert_int_equal(dst[blocks * s.written - 1], 0x80);
                assert_int_equal(dst[0], 0);
                assert_int_equal(dst[blocks * s.written], 0x55);
            }
}

static unsigned char touched[40000];

static void touch(void *context, size_t first, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++) touched[first + i]++;
}

static void shares_cover_everything_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads++)
        for (size_t n = 1; n < sizeof touched; n += 4999) {
            memset(touched, 0, sizeof touched);
            tb_split(n, threads, touch, NULL);
            for (size_t i = 0; i < sizeof touched; i++) assert_int_equal(touched[i], i < n);
        }
}

/* ---- rows ---- */

/* One conversion, two sizes, one peer that answers but was not timed. */
static void plan_job(tb_convert_job *job, tb_conversion *c, tb_convert_item *item)
{
    memset(job, 0, sizeof *job);
    memset(item, 0, sizeof *item);
    *c = conversion("f32", "e4m3", TRN_NEAREST_EVEN);
    strcpy(c->name, "f32->e4m3");
    item->conversion = c;
    item->answers[TB_TRNMATH] = (tb_answers){ 4808, 0, "" };
    item->answers[TB_PLAIN_C] = (tb_answers){ 4808, 2, "1 gives 2, \"and\" should give 3" };
    for (int s = 0; s < 2; s++) {
        tb_measured *m = &item->speed[0][s];
        m->maker[TB_TRNMATH] = (tb_speed){ 4e9, 1, 0.8 };
        m->copy = (tb_speed){ 2e9, 2, 0.4 };
        m->stream = (tb_speed){ 5e9, 0.8, 1 };
        m->stream_name = "ordinary stores";
    }
    job->conversion = c, job->item = item, job->items = 1;
    job->size[0] = 32 << 10, job->size[1] = 16 << 20, job->sizes = 2;
    job->threads[0] = 1, job->thread_counts = 1;
    job->timed = job->golden_there = true;
    job->attention = 1;
    job->measure.rounds = 3;
}

static char *printed(void (*print)(FILE *, const void *), const void *context)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(out, context);
    fclose(out);
    return text;
}

static void rows_hold_the_numbers(void **state)
{
    static tb_convert_job job;
    static tb_convert_item item;
    tb_conversion c;
    app_table t;
    (void)state;
    plan_job(&job, &c, &item);
    tb_convert_overview(&t, &job);
    assert_int_equal(t.rows, 1);
    assert_true(app_at(&t, 0, "L2 Gelem/s")->real == 4);
    assert_true(app_at(&t, 0, "GB/s")->real == 20); /* four bytes in, one out */
    assert_true(app_at(&t, 0, "% of stream")->real == 80);
    assert_true(app_at(&t, 0, "% of memcpy")->real == 200);
    assert_string_equal(app_at(&t, 0, "wrong answers")->text, "0 of 4,808");
    assert_true(app_at(&t, 0, "L2 fastest peer")->missing);
    app_table_free(&t);
    tb_convert_columns(&t);
    tb_convert_rows(&t, &job);
    assert_int_equal(t.rows, 2 * 4); /* trnmath, plain C, memcpy, stream */
    assert_true(app_at(&t, 1, "wrong")->integer == 2 && app_at(&t, 1, "gelem_per_s")->missing);
    assert_string_equal(app_at(&t, 7, "detail")->text, "ordinary stores");
    app_table_free(&t);
    char *csv = printed(tb_print_convert_csv, &job);
    int lines = 0;
    for (const char *at = csv; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 1 + 8);
    free(csv);
}

#if defined(HAVE_CJSON)
static void json_reads_back(void **state)
{
    static tb_convert_job job;
    static tb_convert_item item;
    tb_conversion c;
    (void)state;
    plan_job(&job, &c, &item);
    char *text = printed(tb_print_convert_json, &job);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    assert_string_equal(cJSON_GetObjectItem(root, "schema")->valuestring, "trnbench.convert");
    const cJSON *context = cJSON_GetObjectItem(root, "context"), *results = cJSON_GetObjectItem(root, "results");
    assert_string_equal(cJSON_GetObjectItem(context, "processor")->valuestring, "a \"processor\"");
    assert_int_equal(cJSON_GetArraySize(results), 8);
    const cJSON *plain = cJSON_GetArrayItem(results, 1);
    assert_int_equal(cJSON_GetArraySize(plain), sizeof tidy_columns / sizeof tidy_columns[0]);
    assert_string_equal(cJSON_GetObjectItem(plain, "first_wrong")->valuestring, "1 gives 2, \"and\" should give 3");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(plain, "gelem_per_s")));
    assert_true(cJSON_GetObjectItem(cJSON_GetArrayItem(results, 0), "gelem_per_s")->valuedouble == 4);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "makers")), 2);
    cJSON_Delete(root);
    free(text);
}
#endif

static int open_directory(void **state) { return (void)state, mkdtemp(directory) ? 0 : 1; }

static int close_directory(void **state)
{
    static const char *const files[] = { "good.txt", "bad.txt", "blocks.txt", "encode_float8_e4m3.txt",
                                         "bracket_float8_e4m3.txt" };
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        remove(path);
    }
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_conversions),
        cmocka_unit_test(filters_choose),
        cmocka_unit_test(names_are_understood),
        cmocka_unit_test(lines_are_words),
        cmocka_unit_test(blocks_are_read),
        cmocka_unit_test(a_wrong_line_is_found),
        cmocka_unit_test(streams_move_their_bytes),
        cmocka_unit_test(shares_cover_everything_once),
        cmocka_unit_test(rows_hold_the_numbers),
#if defined(HAVE_CJSON)
        cmocka_unit_test(json_reads_back),
#else
        { "json: skipped, cJSON is not installed", NULL, NULL, NULL, NULL },
#endif
    };
    return cmocka_run_group_tests(tests, open_directory, close_directory);
}
