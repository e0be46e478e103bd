/* fuzz_json.c - random bytes as JSON of Python's: config.json, tokenizer.json and the index of a checkpoint begin here.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_json [count] [seed]          default: 200000 texts, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. Texts are put together from JSON's parts and
 * Python's words, and spoiled. What cJSON alone reads must be what is read, but for the first of two equal names; what
 * has Python's words must be read where the same text with other words in their places is.
 */
#define _POSIX_C_SOURCE 200809L

#include "twin/cases.h"

#if defined(HAVE_CJSON)

#include <assert.h>

#include "fuzz/long.h"
#include "fuzz/spoil.h"
#include "io/checkpoint.h"

static uint64_t rng = 1;

static int below(int n) { return cases_below(&rng, n); }

static bool has_twins(const cJSON *object)
{
    const cJSON *a, *b;
    cJSON_ArrayForEach(a, object) {
        for (b = a->next; cJSON_IsObject(object) && b; b = b->next)
            if (strcmp(a->string, b->string) == 0) return true;
        if (has_twins(a)) return true;
    }
    return false;
}

/* As text: an infinity is not equal to itself, says cJSON. */
static void assert_same(const cJSON *a, const cJSON *b)
{
    char *x = cJSON_PrintUnformatted(a), *y = cJSON_PrintUnformatted(b);
    assert(x && y && strcmp(x, y) == 0);
    cJSON_free(x);
    cJSON_free(y);
}

/* The last of each name is what the tree has. */
static void assert_last(const cJSON *tree, const char *text, size_t size)
{
    io_json last;
    for (io_json j = io_json_file(text, size); io_json_next(&j);) {
        char *name = io_json_name(&j);
        if (!name) return; /* the iteration ends there */
        assert(io_json_last(io_json_file(text, size), name, &last) && last.value >= j.value);
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);
        cJSON *value = io_json_value(&last, size);
        if (value && item && !has_twins(value)) assert_same(value, item);
        cJSON_Delete(value);
        free(name);
    }
}

/* Returns whether the text was accepted. */
static bool try_text(const char *bytes, size_t size)
{
    int line = 0;
    char why[IO_WHY] = "";
    ckpt_index index;
    char *text = malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    assert(text);
    memcpy(text, bytes, size);
    cJSON *tree = io_json_tree(text, size, &line), *alone = cJSON_ParseWithLength(text, size);
    assert(line >= 1 && !has_twins(tree));
    if (alone && !has_twins(alone)) assert(tree), assert_same(tree, alone);
    io_json whole = io_json_file(text, size);
    while (io_json_next(&whole)) continue;
    if (tree && cJSON_IsObject(tree) && !whole.wrong) assert_last(tree, text, size);
    if (ckpt_index_parse(text, size, "fuzz.json", &index, why)) {
        assert(index.count > 0);
        for (int i = 1; i < index.count; i++) assert(strcmp(index.link[i - 1].tensor, index.link[i].tensor) < 0);
    } else {
        assert(strncmp(why, "fuzz.json: ", 11) == 0 && strlen(why) > 16);
    }
    free(ckpt_metadata_of(text, size));
    ckpt_index_free(&index);
    cJSON_Delete(tree);
    cJSON_Delete(alone);
    free(text);
    return tree && !whole.wrong;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return (void)try_text((const char *)data, size), 0;
}

#else

enum { ROOM = 2048 };

static const char *const names[] = {
    "\"a\"", "\"b\"", "\"\\u0061\"", "\"weight_map\"", "\"metadata\"", "\"total_size\"", "\"quantization_config\"",
    "\"\""
};
static const char *const values[] = { "1",
                                      "-0.0",
                                      "1e-05",
                                      "1e400",
                                      "123456789012345678901234567890",
                                      "Infinity",
                                      "NaN",
                                      "null",
                                      "true",
                                      "-Infinity",
                                      "\"x\"",
                                      "\"\\ud83d\\ude00\"",
                                      "\"\\ud800\"",
                                      "\"1.safetensors\"",
                                      "\"\\\\\"" };
static const char *const tokens[] = { "{",    "}",     "[",       "]",   ",",   ":", "\"",       "\\",
                                      "\\u",  "\\ud8", "\\udc00", "Inf", "NaN", "-", "Infinity", "\xef\xbb\xbf",
                                      "\xff", "\n",    " ",       "0",   "e" };

#define PICK(list) list[below((int)(sizeof list / sizeof list[0]))]

static size_t put(char *text, size_t n, const char *part)
{
    const size_t length = strlen(part);
    if (n + length >= ROOM) return n;
    memcpy(text + n, part, length);
    return n + length;
}

static size_t put_value(char *text, size_t n, int depth)
{
    const bool list = below(2);
    if (depth == 0 || cases_one_in(&rng, 2)) return put(text, n, PICK(values));
    n = put(text, n, list ? "[" : "{");
    for (int i = below(4); i > 0; i--) {
        if (!list) n = put(text, put(text, n, PICK(names)), cases_one_in(&rng, 2) ? ":" : " : ");
        n = put_value(text, n, depth - 1);
        if (i > 1) n = put(text, n, cases_one_in(&rng, 3) ? ",\n " : ",");
    }
    return put(text, n, list ? "]" : "}");
}

static size_t some_text(char *text)
{
    size_t n = cases_one_in(&rng, 4) ? put(text, 0, "\xef\xbb\xbf") : 0;
    n = put(text, n, "{");
    for (int i = 1 + below(5); i > 0; i--) {
        n = put(text, put(text, n, PICK(names)), ": ");
        n = put_value(text, n, 4);
        if (i > 1) n = put(text, n, ", ");
    }
    return put(text, n, "}");
}

int main(int argc, char **argv)
{
    long accepted = 0;
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        char text[ROOM];
        size_t size = some_text(text);
        for (int wounds = below(4) - 1; wounds > 0; wounds--) size = spoil(&rng, text, size, PICK(tokens));
        accepted += try_text(text, size);
    }
    const long count = fuzzing_end();
    printf("%ld texts, %ld of them accepted\n", count, accepted);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (accepted > count / 20 && accepted < count) ? 0 : 1;
}

#endif

#else

int main(void)
{
    printf("cJSON is not installed: JSON is not read\n");
    return 0;
}

#endif
