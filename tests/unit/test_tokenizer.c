/* test_tokenizer.c - tokenizer.json: what is read, what is refused; patterns; NFC; the classes of all characters.
 * SPDX-License-Identifier: MIT
 *
 * Whole texts are held against tests/cli/lib/tokenizer.py, an independent reading of the definitions.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2) && defined(HAVE_UTF8PROC)

#include "io/tokenizer.h"
#include "scratch.h"

#define MODEL(more)                                                                                                    \
    "\"model\":{\"type\":\"BPE\"," more "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"bc\":5,"          \
    "\"abc\":6,\"\\u00c3\":7,\"\\u00a9\":8,\"\\u00c3\\u00a9\":9,\"e\":10,\"\\u00cc\":11,\"\\u0123\":12},"              \
    "\"merges\":[\"b c\",[\"a\",\"b\"],\"a bc\",\"\\u00c3 \\u00a9\"]}"
#define PLAIN "{" MODEL("")
#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"

static const char *refused(const char *text)
{
    static char why[IO_WHY];
    tok t;
    why[0] = '\0';
    assert_false(tok_parse(text, strlen(text), "t.json", &t, why));
    assert_true(strncmp(why, "t.json: ", 8) == 0);
    return why + 8;
}

/* The text's tokens are these, and they are the text again. */
static void gives(const char *json, bool ends, const char *text, const char *want)
{
    tok t;
    char why[IO_WHY] = "", got[512] = "";
    bpe_ids ids = { NULL, 0, 0 };
    if (!tok_parse(json, strlen(json), "t.json", &t, why)) fail_msg("%s", why);
    if (!tok_encode(&t, text, strlen(text), ends, &ids, why)) fail_msg("%s", why);
    for (size_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), i ? " %d" : "%d", (int)ids.id[i]);
    assert_string_equal(got, want);
    size_t size;
    char *back = tok_decode(&t, ids.id, ids.count, &size, why);
    assert_non_null(back);
    if (!ends && !t.nfc) assert_string_equal(back, text);
    free(back);
    bpe_ids_free(&ids);
    tok_close(&t);
}

static void merges_go_by_rank(void **state)
{
    (void)state;
    gives(PLAIN "," BYTES "}", false, "abc", "6"); /* b c first, then a bc */
    gives(PLAIN "," BYTES "}", false, "ab abab", "4 3 4 4");
    gives(PLAIN "," BYTES "}", false, "", "");
    gives(PLAIN "," BYTES "}", false, "\xc3\xa9", "9");
    gives("{" MODEL("\"ignore_merges\":true,") "," BYTES "}", false, "abcabc abc", "6 6 3 6");
}

static void pieces_come_from_patterns(void **state)
{
    (void)state;
    gives(PLAIN
          ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
          "{\"Regex\":\"b\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":"
          "false,\"use_regex\":false}]}}",
          false, "abc", "0 1 2");
    gives(PLAIN ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                "{\"String\":\"c\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                "false,\"use_regex\":false}]}}",
          false, "abc", "4 2");
}

static void added_tokens_come_first(void **state)
{
    static const char json[] = PLAIN
        "," BYTES ",\"added_tokens\":[{\"id\":20,\"content\":\"ab\",\"single_word\":false},{\"id\":21,"
        "\"content\":\"abca\",\"rstrip\":true},{\"id\":22,\"content\":\"<s>\",\"special\":true}],\"post_processor\":"
        "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":"
        "{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[22],\"tokens\":"
        "[\"<s>\"]}}}}";
    (void)state;
    gives(json, false, "abca", "21"); /* the longest */
    gives(json, false, "cabc<s>bc", "2 20 2 22 5");
    gives(json, true, "bc", "22 5");
}

static void nfc_composes(void **state)
{
    static const char json[] = PLAIN "," BYTES ",\"normalizer\":{\"type\":\"NFC\"}}";
    (void)state;
    gives(json, false, "e\xcc\x81", "9");                       /* U+0065 U+0301 is U+00E9 */
    gives(PLAIN "," BYTES "}", false, "e\xcc\x81", "10 11 12"); /* and stays two without */
}

/* Marks in the order of their classes, syllables, characters that stand for others: as Python's unicodedata has it. */
static void nfc_orders_and_composes(void **state)
{
    static const struct {
        const char *text, *nfc;
    } row[] = {
        { "q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87" },
        { "D\xcc\x87\xcc\xa3", "\xe1\xb8\x8c\xcc\x87" },
        { "s\xcc\x87\xcc\xa3", "\xe1\xb9\xa9" },
        { "\xe1\xb8\x8a\xcc\xa3", "\xe1\xb8\x8c\xcc\x87" },
        { "a\xcc\xa3\xcc\x82\xcc\x82", "\xe1\xba\xad\xcc\x82" },
        { "a\xcc\x95\xcc\x80\xd6\xae\xcc\x80z", "\xc3\xa0\xd6\xae\xcc\x80\xcc\x95z" },
        { "a\xcc\x85\xcc\x81", "a\xcc\x85\xcc\x81" }, /* of the same class: the first is in the way */
        { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c" },
        { "\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81" },
        { "\xe2\x84\xab", "\xc3\x85" },
        { "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc" },
        { "\xcd\x84", "\xcc\x88\xcc\x81" },
        { "\xea\xb0\x80\xe1\x86\xa7", "\xea\xb0\x80\xe1\x86\xa7" }, /* U+11A7 ends no syllable */
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        size_t length = 0;
        unsigned char *nfc = uc_nfc(row[i].text, strlen(row[i].text), &length);
        assert_non_null(nfc);
        if (length != strlen(row[i].nfc) || memcmp(nfc, row[i].nfc, length) != 0) fail_msg("row %zu", i);
        free(nfc);
    }
}

/* A million marks are no more work each than two. */
static void long_runs_of_marks(void **state)
{
    enum { PAIRS = 500000 };
    static char text[4 * PAIRS];
    size_t length;
    (void)state;
    for (int i = 0; i < PAIRS; i++) memcpy(text + 4 * i, "\xcc\x81\xcc\xa3", 4); /* classes 230 and 220 */
    unsigned char *nfc = uc_nfc(text, sizeof text, &length);
    assert_non_null(nfc);
    assert_int_equal(length, sizeof text);
    for (int i = 0; i < 2 * PAIRS; i++)
        if (nfc[2 * i] != 0xcc || nfc[2 * i + 1] != (i < PAIRS ? 0xa3 : 0x81)) fail_msg("mark %d is elsewhere", i);
    free(nfc);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *sentence;
    } row[] = {
        { "[]", "it is not a JSON object: it does not begin with '{'" },
        { "{}", "it has no 'model': it is no tokenizer.json" },
        { PLAIN "}", "its BPE is not byte-level (SentencePiece's are not); give the tokens' numbers instead" },
        { "{\"model\":{\"type\":\"Unigram\"}," BYTES "}",
          "its model is Unigram, not a byte-level BPE; give the tokens' numbers instead" },
        { "{\"model\":{\"type\":\"WordPiece\"}}",
          "its model is WordPiece, not a byte-level BPE; give the tokens' numbers instead" },
        { "{" MODEL("\"byte_fallback\":true,") "}",
          "its 'byte_fallback' is true, which no byte-level BPE has; give the tokens' numbers instead" },
        { PLAIN ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}}",
          "its pre_tokenizer has Metaspace, which no byte-level BPE has; give the tokens' numbers instead" },
        { PLAIN "," BYTES ",\"normalizer\":{\"type\":\"Lowercase\"}}",
          "its normalizer is Lowercase, not NFC or none; give the tokens' numbers instead" },
        { PLAIN ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?<=a)b\"},\"behavior\":"
                "\"Isolated\"}}",
          "the pattern \"(?<=a)b\": '(?<=' is not known here" },
        { PLAIN ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":"
                "\"MergedWithNext\"}}",
          "a Split is MergedWithNext; known are Isolated and, with 'invert', Removed" },
        { "{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}," BYTES "}", "two tokens have the number 0" },
        { "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}," BYTES "}",
          "the number of 'a' is -1; expected 0 to 2097151" },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}," BYTES "}",
          "merge 0 is of tokens, or makes one, that its vocabulary does not have" },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}," BYTES "}", "merge 0 is not two tokens" },
        { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}," BYTES "}", "merge 0 is not two tokens" },
        { PLAIN "," BYTES ",\"post_processor\":{\"type\":\"BertProcessing\"}}",
          "its post_processor is BertProcessing, which no byte-level BPE has" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) assert_string_equal(refused(row[i].text), row[i].sentence);
}

static void texts_that_cannot_be(void **state)
{
    static const char json[] = PLAIN "," BYTES "}";
    tok t;
    char why[IO_WHY] = "";
    bpe_ids ids = { NULL, 0, 0 };
    size_t size;
    const int32_t none = 13;
    (void)state;
    assert_true(tok_parse(json, strlen(json), "t.json", &t, why));
    assert_false(tok_encode(&t, "x", 1, false, &ids, why));
    assert_string_equal(why, "t.json: the text has the byte 0x78, for which its vocabulary has no token");
    assert_false(tok_encode(&t, "\xff", 1, false, &ids, why));
    assert_string_equal(why, "t.json: the text is not UTF-8");
    assert_null(tok_decode(&t, &none, 1, &size, why));
    assert_string_equal(why, "t.json: it has no token 13");
    bpe_ids_free(&ids);
    tok_close(&t);
    tok_close(&t); /* does nothing */
}

static void patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        size_t end; /* of the match at 0 */
    } row[] = {
        { "a|ab", "ab", 1 },
        { "(?:a|ab)c", "abc", 3 },
        { "a{2,3}", "aaaa", 3 },
        { "a{2}", "a", 0 },
        { "\\s+(?!\\S)", "   x", 2 },
        { "\\s+(?!\\S)", "   ", 3 },
        { "a*+a", "aaa", 0 },
        { "a*a", "aaa", 3 },
        { "(?i:'s)", "'S", 2 },
        { "(?i:'s)", "'\xc5\xbf", 3 },
        { "[^a-c]+", "dea", 2 },
        { "(?i:x)y", "XY", 0 },
        { "\\p{Lu}\\p{Ll}", "\xc4\x8c\xc4\x8d", 4 }, /* a capital and its small letter */
        { "\\P{L}*\\P{M}", "--", 2 },
        { "(?=b) *b", "b", 1 },
        { "(?:ab)+", "abab", 4 },
        { "a+?", "aa", 1 },
        { "\\s", "\xc2\x85", 2 },
        { "\\s", "\xe1\xa0\x8e", 0 }, /* U+0085 is a space, U+180E is none any more */
        { "\\P{L}", "1", 1 },
        { "(ab)?c", "abc", 3 },
        { "(ab)?c", "c", 1 },
        { "(?=ab)a", "ac", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cut_pattern p;
        char wrong[CUT_WRONG];
        uint64_t steps = 1000;
        if (!cut_compile(row[i].pattern, &p, wrong)) fail_msg("%s: %s", row[i].pattern, wrong);
        const size_t end = cut_match(&p, row[i].text, strlen(row[i].text), 0, &steps);
        if (end != row[i].end) fail_msg("%s on %s: %d", row[i].pattern, row[i].text, (int)end);
        cut_free(&p);
    }
}

static void what_is_no_pattern(void **state)
{
    static const struct {
        const char *pattern, *wrong;
    } row[] = {
        { "a|*", "'*' is not known here" },
        { "a**", "'**' is not known here" },
        { "[a&&b]", "'&&' is not known here" },
        { "[[a]]", "'[a' is not known here" },
        { "\\p{Han}", "'\\p{Han}' is not known here" },
        { "\\h", "'\\h' is not known here" },
        { "\xc3\xa9$", "'$' is not known here" },
        { "[]", "']' is not known here" },
        { "(?<x>a)", "'(?<x' is not known here" },
        { "(a", "a group that does not close" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cut_pattern p;
        char wrong[CUT_WRONG];
        assert_false(cut_compile(row[i].pattern, &p, wrong));
        assert_string_equal(wrong, row[i].wrong);
    }
}

static void no_pattern_runs_for_ever(void **state)
{
    cut_pattern p;
    char wrong[CUT_WRONG];
    uint64_t steps = 10000;
    (void)state;
    assert_true(cut_compile("a*a*a*a*a*a*a*a*b", &p, wrong));
    assert_int_equal(cut_match(&p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 44, 0, &steps), 0);
    assert_int_equal(steps, 0);
    cut_free(&p);
}

/* ---- whole texts, as Python cuts and merges them ---- */

/* The tokens of NAME.txt are the numbers in NAME.ids. */
static void same_as_python(const char *name)
{
    char file[64], why[IO_WHY] = "";
    tok t;
    io_map text;
    bpe_ids ids = { NULL, 0, 0 };
    int want = 0;
    snprintf(file, sizeof file, "%s.json", name);
    if (!tok_open(scratch(file), &t, why)) fail_msg("%s", why);
    snprintf(file, sizeof file, "%s.txt", name);
    if (!io_map_open(scratch(file), &text, why)) fail_msg("%s", why);
    if (!tok_encode(&t, text.bytes, text.size, true, &ids, why)) fail_msg("%s", why);
    snprintf(file, sizeof file, "%s.ids", name);
    FILE *in = fopen(scratch(file), "r");
    assert_non_null(in);
    for (size_t i = 0; i < ids.count; i++)
        if (fscanf(in, "%d", &want) != 1 || want != ids.id[i])
            fail_msg("%s: token %d is %d, and Python has %d", name, (int)i, (int)ids.id[i], want);
    assert_true(ids.count > 1000 && fscanf(in, "%d", &want) != 1);
    fclose(in);
    io_map_close(&text);
    bpe_ids_free(&ids);
    tok_close(&t);
}

static bool python(void)
{
    const bool there = system("python3 -c '' 2>/dev/null") == 0;
    if (!there) print_message("SKIP unicode: no python3\n");
    return there;
}

static void texts_as_python_has_them(void **state)
{
    static const char *const name[] = { "gpt2", "llama3", "qwen2", "o200k", "tekken", "deepseek" };
    char command[1024];
    (void)state;
    if (!python()) return;
    snprintf(command, sizeof command, "python3 '%s/tests/cli/lib/tokenizer.py' '%s'", TRN_SOURCE_DIR, folder);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) same_as_python(name[i]);
}

/* ---- all characters, as Python has them ---- */

enum { CLASSES = 11 };
static const char *const class_name[CLASSES] = { "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S", "Z", "C" };

static void check_character(cut_pattern *classes, unsigned code, const char *class, const char *nfc)
{
    unsigned char text[4];
    char got[32] = "";
    size_t length;
    uint64_t steps = UINT32_MAX;
    const size_t size = (size_t)utf8proc_encode_char((int32_t)code, text);
    for (int i = 0; i < CLASSES; i++) {
        const bool expected = strcmp(class, class_name[i]) == 0;
        if (!expected && code % CLASSES != (unsigned)i) continue; /* one of the others, each in its turn */
        if ((cut_match(&classes[i], text, size, 0, &steps) == size) != expected)
            fail_msg("U+%04X is %s, \\p{%s} says otherwise", code, class, class_name[i]);
    }
    unsigned char *made = uc_nfc(text, size, &length);
    assert_non_null(made);
    for (size_t i = 0; i < length; i++) snprintf(got + 2 * i, 3, "%02x", made[i]);
    free(made);
    if (strcmp(got, nfc) != 0) fail_msg("U+%04X becomes %s, expected %s", code, got, nfc);
}

static void characters_as_python_has_them(void **state)
{
    char command[1024], version[64] = "", line[128], wrong[CUT_WRONG];
    cut_pattern classes[CLASSES];
    (void)state;
    if (!python()) return;
    assert_true(pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0);
    for (int i = 0; i < CLASSES; i++) {
        snprintf(line, sizeof line, "\\p{%s}", class_name[i]);
        assert_true(cut_compile(line, &classes[i], wrong));
    }
    snprintf(command, sizeof command, "python3 '%s/tests/cli/lib/characters.py' %s", TRN_SOURCE_DIR, version);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    int count = 0;
    for (; fgets(line, sizeof line, in); count++) {
        unsigned code;
        char class[3], nfc[32];
        assert_int_equal(sscanf(line, "%x %2s %31s", &code, class, nfc), 3);
        check_character(classes, code, class, nfc);
    }
    assert_int_equal(pclose(in), 0);
    assert_true(count > 150000);
    for (int i = 0; i < CLASSES; i++) cut_free(&classes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_go_by_rank),
        cmocka_unit_test(pieces_come_from_patterns),
        cmocka_unit_test(added_tokens_come_first),
        cmocka_unit_test(nfc_composes),
        cmocka_unit_test(nfc_orders_and_composes),
        cmocka_unit_test(long_runs_of_marks),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(texts_that_cannot_be),
        cmocka_unit_test(patterns),
        cmocka_unit_test(what_is_no_pattern),
        cmocka_unit_test(no_pattern_runs_for_ever),
        cmocka_unit_test(characters_as_python_has_them),
        WRITES(texts_as_python_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON, PCRE2 or utf8proc is not installed: tokenizers are not read\n");
    return 0;
}

#endif
