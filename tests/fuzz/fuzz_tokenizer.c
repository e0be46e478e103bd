/* fuzz_tokenizer.c - random bytes as tokenizer.json, and random texts: no crash, one sentence for each refusal, and
 * tokens that are the text again.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_tokenizer [count] [seed]        default: 20000 files, 500000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Files are byte-level vocabularies with random merges, patterns, added tokens and ends, one in three of them spoilt.
 * The first half of the bytes have tokens always, the others often.
 */
#define _POSIX_C_SOURCE 200809L

#include "fuzz/fail.h"

#if defined(HAVE_CJSON) && defined(HAVE_PCRE2) && defined(HAVE_UTF8PROC)

#include "io/tokenizer.h"

enum { ROOM = 60000 };

#include "fuzz/line.h"

/* ---- files ---- */

static const char *const part[] = { "a",      "b",        "\\\\p{L}",     "\\\\s",     "\\\\S",     "[^a]",
                                    "[a-c ]", "\\\\p{N}", "(?i:b)",       "(?:a|b)",   "(?!\\\\S)", "(a)?",
                                    "|",      ".",        "[\\\\r\\\\n]", "\\\\p{Lu}", " ?",        "(?=b)" };
static const char *const often[] = { "", "", "", "+", "*", "?", "{1,2}", "{2,}", "++", "*?" };

#define PICK(list) list[below((int)(sizeof list / sizeof list[0]))]

static void put_pattern(line *l)
{
    put(l, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"");
    for (int n = 1 + below(5); n > 0; n--) {
        put(l, PICK(part));
        put(l, PICK(often));
    }
    put(l, one_in(4) ? "\"},\"behavior\":\"Removed\",\"invert\":true}," : "\"},\"behavior\":\"Isolated\"},");
}

static void put_letter(line *l, int byte)
{
    char text[8];
    snprintf(text, sizeof text, "\\u%04x", (unsigned)tok_code_of(byte));
    put(l, text);
}

/* Words of two letters and of three; merges that make some of them. */
static void put_vocabulary(line *l)
{
    static const char *const word[] = { "ab", "ba", "aa", "abb", "aab", "\\u0120a", "ab\\u0120a" };
    static const char *const merge[] = {
        "\"a b\"", "[\"b\",\"a\"]", "\"a a\"", "\"ab b\"", "[\"a\",\"ab\"]", "\"\\u0120 a\"", "[\"ab\",\"\\u0120a\"]"
    };
    char text[40];
    int id = 0;
    put(l, "\"model\":{\"type\":\"BPE\",\"ignore_merges\":");
    put(l, one_in(3) ? "true" : "false");
    put(l, one_in(4) ? ",\"unk_token\":\"a\"" : "");
    put(l, ",\"vocab\":{");
    const int bytes = one_in(3) ? 128 : 256;
    for (int i = 0; i < bytes; i++) {
        put(l, i ? ",\"" : "\"");
        put_letter(l, i);
        snprintf(text, sizeof text, "\":%d", id++);
        put(l, text);
    }
    for (int i = 0; i < 7; i++) {
        snprintf(text, sizeof text, ",\"%s\":%d", word[i], one_in(200) ? below(1 << 25) : id++);
        put(l, text);
    }
    put(l, "},\"merges\":[");
    for (int i = 0, n = below(8); i < n; i++) {
        put(l, i ? "," : "");
        put(l, PICK(merge));
    }
    put(l, "]}");
}

static void put_file(line *l)
{
    put(l, "{");
    put_vocabulary(l);
    put(l, ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    while (one_in(2)) put_pattern(l);
    if (one_in(6)) put(l, "{\"type\":\"Digits\",\"individual_digits\":true},");
    put(l, one_in(2) ? "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]}"
                     : "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false}]}");
    if (one_in(3)) put(l, ",\"normalizer\":{\"type\":\"NFC\"}");
    if (one_in(2))
        put(l, ",\"added_tokens\":[{\"id\":400,\"content\":\"<s>\"},{\"id\":401,\"content\":\"<s>a\",\"lstrip\":true,"
               "\"rstrip\":true},{\"id\":402,\"content\":\"ab\",\"normalized\":true}],\"post_processor\":{\"type\":"
               "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],"
               "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[400]}}}");
    put(l, "}");
}

static void spoil(line *l)
{
    static const char token[] = "{}[],:\"\\0a1-tfn \x01\xff";
    const size_t at = (size_t)below((int)l->length);
    if (one_in(8))
        l->length = at;
    else
        l->text[at] = token[below((int)sizeof token - 1)];
    l->text[l->length] = '\0';
}

/* ---- texts ---- */

static size_t put_text(char *text, int room)
{
    static const char *const word[] = { "a", "b", "ab", "aab", " ", "  ", "\n", "\r\n", "<s>", "<s>a", "1", "22", "A",
                                        /* characters of several bytes, two that compose, some that are cut */
                                        "\xc3\xa9", "e\xcc\x81", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80", "\xea\xb0\x81",
                                        "\xe1\x84\x80\xe1\x85\xa1", "\xcc\xa3\xcc\x82", "\xff", "\xc2", "!" };
    size_t n = 0;
    for (int words = below(40); words > 0; words--) {
        const char *w = word[below((int)(sizeof word / sizeof word[0]) - (one_in(20) ? 0 : 3))];
        if (n + strlen(w) >= (size_t)room) break;
        memcpy(text + n, w, strlen(w));
        n += strlen(w);
    }
    return n;
}

/* ---- what must hold ---- */

/* Nothing was dropped, put in front or composed: then the bytes come back. */
static bool exact(const tok *t)
{
    bool same = !t->nfc && t->unknown == BPE_NONE;
    for (int i = 0; i < t->steps; i++) same = same && t->step[i].kind != TOK_PREFIX && !t->step[i].only_matches;
    for (int i = 0; i < t->added_count; i++) same = same && !t->added[i].lstrip && !t->added[i].rstrip;
    return same;
}

static void check_text(const tok *t, long *encoded)
{
    char text[512], why[IO_WHY] = "";
    bpe_ids ids = { NULL, 0, 0 };
    size_t size = put_text(text, (int)sizeof text), length = 0;
    char *copy = (char *)malloc(size ? size : 1); /* its own block, so that a sanitizer sees one byte too many */
    if (!copy) abort();
    memcpy(copy, text, size);
    if (!tok_encode(t, copy, size, false, &ids, why)) {
        if (strncmp(why, "fuzz.json: ", 11) != 0 || strlen(why) < 20) fail_msg("\"%s\" is no sentence", why);
    } else {
        char *back = tok_decode(t, ids.id, ids.count, &length, why);
        ++*encoded;
        if (!back) fail_msg("tokens without text: %s", why);
        if (exact(t) && (length != size || memcmp(back, text, size) != 0)) fail_msg("%zu bytes came back apart", size);
        free(back);
    }
    bpe_ids_free(&ids);
    free(copy);
}

int main(int argc, char **argv)
{
    long accepted = 0, refused = 0, encoded = 0;
    fuzzing_start(argc, argv, 10000, 500000);
    while (fuzzing_next(&rng)) {
        static line l;
        tok t;
        char why[IO_WHY] = "";
        l.text[l.length = 0] = '\0';
        put_file(&l);
        for (int wounds = one_in(3) ? 1 + below(3) : 0; wounds > 0 && l.length; wounds--) spoil(&l);
        char *copy = (char *)malloc(l.length ? l.length : 1);
        if (!copy) abort();
        memcpy(copy, l.text, l.length);
        const bool ok = tok_parse(copy, l.length, "fuzz.json", &t, why);
        free(copy);
        accepted += ok;
        refused += !ok;
        if (!ok && (strncmp(why, "fuzz.json: ", 11) != 0 || strlen(why) < 20)) fail_msg("\"%s\" is no sentence", why);
        for (int i = 0; ok && i < 3; i++) check_text(&t, &encoded);
        tok_close(&t);
    }
    const long count = fuzzing_end();
    printf("%ld files refused, %ld accepted, %ld texts encoded\n", refused, accepted, encoded);
    /* A parser that refuses everything, or nothing, is not being tested. */
    return count < 1000 || (refused > count / 20 && accepted > count / 20 && encoded > count / 20) ? 0 : 1;
}

#else

int main(void)
{
    printf("cJSON, PCRE2 or utf8proc is not installed: tokenizers are not read\n");
    return 0;
}

#endif
