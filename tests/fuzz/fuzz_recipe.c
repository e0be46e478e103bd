/* fuzz_recipe.c - recipes of modules, written in every style that is read, and spoilt ones: the lists come back as they
 * were, and whatever the text is, nothing beyond it is read.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_recipe [count] [seed]       default: 50000 texts, 2000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#define _POSIX_C_SOURCE 200809L

#include <assert.h>
#include <stdio.h>

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2)

#include "fp8conv/recipe.c"

/* The lists of a text that lies in a block of its own. */
static cJSON *lists_of(const char *text, size_t size)
{
    char *copy = (char *)malloc(size + 1);
    assert(copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    cJSON *lists = fc_recipe_parse(copy);
    free(copy);
    return lists;
}

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    cJSON_Delete(lists_of((const char *)data, size));
    return 0;
}

#else

enum { ROOM = 900, MOST = 5 };

#include "fuzz/line.h"

static const char *const names[] = { "lm_head", "re:.*mlp.gate$", "Linear", "it's", "a\\.b", "re:^(?!.*x).*", "a b" };

static void put_name(line *l, const char *name, bool plain)
{
    const char quote = plain && !strchr(name, '\'') && !one_in(3) ? '\0' : one_in(2) ? '\'' : '"';
    const char text[2] = { quote, '\0' };
    put(l, text);
    for (; *name; name++) {
        const char one[3] = { *name, quote == '\'' && *name == '\'' ? '\'' : '\0', '\0' };
        if (quote == '"' && *name == '\\') put(l, "\\");
        put(l, one);
    }
    put(l, text);
}

/* `count` names below a key, in brackets, after dashes, or alone. */
static void put_list(line *l, const char *key, const int *name, int count)
{
    const bool dashes = one_in(2) && count > 0, alone = count == 1 && one_in(3);
    put(l, "    "), put(l, key), put(l, ":"), put(l, dashes && !alone ? one_in(2) ? "  # c\n" : "\n" : " ");
    if (!dashes && !alone) put(l, "[");
    for (int i = 0; i < count; i++) {
        if (dashes && !alone)
            put(l, "      - ");
        else if (i)
            put(l, one_in(3) ? ",\n      " : ", ");
        put_name(l, names[name[i]], true);
        if (dashes && !alone) put(l, one_in(4) ? "  # - d\n" : "\n");
    }
    put(l, dashes && !alone ? "" : alone ? "\n" : "]\n");
}

static void check_list(const cJSON *lists, const char *key, const int *name, int count)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(lists, key);
    assert(cJSON_GetArraySize(list) == count);
    for (int i = 0; i < count; i++)
        assert(strcmp(cJSON_GetStringValue(cJSON_GetArrayItem(list, i)), names[name[i]]) == 0);
}

static bool one_recipe(void)
{
    line l = { "", 0 };
    int ignore[MOST], targets[MOST];
    const int some = below(MOST), more = below(MOST);
    for (int i = 0; i < MOST; i++) ignore[i] = below(7), targets[i] = below(7);
    put(&l, "stage:\n  modifier:\n    scheme: FP8 # ignore: x\n");
    put_list(&l, "ignore", ignore, some);
    if (one_in(2)) put(&l, "    other: [1,\n      2]\n");
    put_list(&l, "targets", targets, more);
    cJSON *lists = lists_of(l.text, l.length);
    assert(lists);
    check_list(lists, "ignore", ignore, some);
    check_list(lists, "targets", targets, more);
    cJSON_Delete(lists);
    for (int wounds = below(6); wounds > 0 && l.length > 0; wounds--)
        l.text[below((int)l.length)] = "'\"[],-#:\\\n x\xff"[below(13)];
    lists = lists_of(l.text, l.length);
    const bool taken = lists != NULL;
    cJSON_Delete(lists);
    return taken;
}

int main(int argc, char **argv)
{
    long taken = 0;
    fuzzing_start(argc, argv, 50000, 2000000);
    while (fuzzing_next(&rng)) taken += one_recipe();
    const long count = fuzzing_end();
    printf("%ld recipes, %ld taken although they were spoilt\n", count, taken);
    return count >= 1000 && (taken == 0 || taken == count);
}

#endif

#else

int main(void)
{
    printf("cJSON or PCRE2 is not installed: recipes are not read\n");
    return 0;
}

#endif
