/* tokenizer.h - reads a Hugging Face tokenizer.json whose model is a byte-level BPE; text -> tokens, tokens -> text.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/tokenizer.h"
 *     tok t;
 *     char why[IO_WHY];
 *     bpe_ids ids = { NULL, 0, 0 };
 *     if (!tok_open("model/tokenizer.json", &t, why) || !tok_encode(&t, text, size, true, &ids, why))
 *         return fprintf(stderr, "%s\n", why), 2;
 *     ... ids.id[0 .. ids.count - 1] ...
 *     bpe_ids_free(&ids);
 *     tok_close(&t);
 *
 * DOES: what GPT-2, GPT-NeoX, Llama 3 and 4, Qwen 2 and 3, Mistral (tekken), DeepSeek, StarCoder, gpt-oss and models
 *     like them ship: model BPE with merges as texts or as pairs and ignore_merges; pre_tokenizer ByteLevel, Split and
 *     Digits, alone or in a Sequence that ends with ByteLevel, with any pattern that cut.h knows; added tokens, found
 *     in the text first, the longest at the leftmost place, with lstrip and rstrip; normalizer NFC; post_processor
 *     TemplateProcessing (the tokens before and after one text), ByteLevel, RobertaProcessing, alone or in a Sequence.
 * DOES NOT: SentencePiece (Llama 2, Gemma), WordPiece and Unigram models, other normalizers, single_word: refused by a
 *     sentence. truncation, padding and decoder are not read: texts are never cut, and bytes come back as they were.
 *     Text that is not UTF-8 is refused where a pattern or NFC would have to read its characters.
 *
 * CONTENTS
 *     tok, tok_open, tok_parse, tok_close
 *     tok_encode       with `ends`, the post_processor's tokens are put before and after
 *     tok_decode       tokens -> bytes, memory of its own
 *     bpe_bytes(&t.bpe, token, &size)   one token's
 *
 * KNOWN FROM: the format and its meaning: Hugging Face's tokenizers 0.20 (Rust) and its documentation. A byte that the
 *     vocabulary lacks becomes unk_token, and is refused where there is none (tokenizers drops it without a word).
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "alphabet.h"
#include "bpe.h"
#include "cut.h"
#include "json.h"
#include "mapped.h"
#include "unicode.h"

enum { TOK_STEPS = 16, TOK_ENDS = 16, TOK_FILE = 256 << 20 };

typedef enum tok_kind { TOK_SPLIT, TOK_DIGITS, TOK_PREFIX } tok_kind;

typedef struct tok_step { /* of the pre_tokenizer */
    tok_kind kind;
    cut_pattern pattern; /* split */
    bool only_matches;   /* split: what is between matches is dropped */
    bool each;           /* digits one by one */
} tok_step;

typedef struct tok_added {
    int32_t id;
    uint32_t size;
    const char *text; /* memory of its own */
    bool lstrip, rstrip, after_nfc;
} tok_added;

typedef struct tok {
    char *name; /* for sentences */
    bpe bpe;
    int64_t vocab; /* one more than the largest token */
    tok_step step[TOK_STEPS];
    int steps;
    bool nfc, fuse_unknown, bytes; /* bytes: ByteLevel is there */
    int32_t unknown;               /* BPE_NONE: there is none */
    tok_added *added;              /* the longest first within a first byte, these in order */
    int added_count, added_first[257];
    int32_t before[TOK_ENDS], after[TOK_ENDS]; /* the post_processor's */
    int befores, afters;
} tok;

IO_FN void tok_close(tok *t)
{
    for (int i = 0; i < t->steps; i++) cut_free(&t->step[i].pattern);
    for (int i = 0; i < t->added_count; i++) free((void *)(uintptr_t)t->added[i].text);
    free(t->added);
    free(t->name);
    bpe_free(&t->bpe);
    memset(t, 0, sizeof *t);
}

/* ---- the alphabet: each byte as a character that can be seen ---- */

/* In place; false: it is not of the alphabet, and stays as it is. */
IO_FN bool tok_to_bytes(char *text, size_t *size)
{
    unsigned char *at = (unsigned char *)text;
    uint32_t code;
    for (size_t i = 0; i < *size;) {
        i += uc_character(at + i, *size - i, &code);
        if (tok_byte_of(code) < 0) return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < *size;) {
        i += uc_character(at + i, *size - i, &code);
        at[n++] = (unsigned char)tok_byte_of(code);
    }
    *size = n;
    return true;
}

/* ---- JSON ---- */

typedef struct tok_reader {
    tok *t;
    char *why;
} tok_reader;

#define tok_fail(r, ...) io_fail((r)->why, (r)->t->name, __VA_ARGS__)

IO_FN bool tok_memory(const tok_reader *r) { return tok_fail(r, "there is not enough memory"); }

/* A member of an object, of two the last one; false: it is missing or null. */
IO_FN bool tok_member(const io_json *object, const char *name, io_json *value)
{
    return io_json_last(io_json_members(object), name, value) &&
           !(value->value_size >= 4 && memcmp(value->value, "null", 4) == 0);
}

/* NULL when the member is missing, null or no text: free() it. */
IO_FN char *tok_text(const io_json *object, const char *name)
{
    io_json value;
    return tok_member(object, name, &value) ? io_json_text(&value) : NULL;
}

IO_FN bool tok_flag(const tok_reader *r, const io_json *object, const char *name, bool missing, bool *flag)
{
    io_json value;
    *flag = missing;
    if (!tok_member(object, name, &value)) return true;
    *flag = value.value[0] == 't';
    const char *word = *flag ? "true" : "false";
    const size_t n = strlen(word);
    return (value.value_size >= n && memcmp(value.value, word, n) == 0) ||
           tok_fail(r, "its '%s' is neither true nor false", name);
}

IO_FN bool tok_id(const tok_reader *r, const io_json *value, const char *what, int32_t *id)
{
    uint64_t number = 0;
    if (!io_json_whole(value, &number) || number >= BPE_MOST)
        return tok_fail(r, "the number of '%.60s' is %s; expected 0 to %d", what, io_json_show(value).text,
                        BPE_MOST - 1);
    *id = (int32_t)number;
    if ((int64_t)*id >= r->t->vocab) r->t->vocab = (int64_t)*id + 1;
    return true;
}

/* ---- the model ---- */

IO_FN bool tok_add_word(const tok_reader *r, char *text, int32_t id)
{
    size_t size = strlen(text);
    bool twice = false, have;
    size_t was;
    have = bpe_bytes(&r->t->bpe, id, &was) != NULL;
    if (have) return tok_fail(r, "two tokens have the number %d", (int)id);
    const bool alphabet = tok_to_bytes(text, &size);
    if (!bpe_set(&r->t->bpe, id, text, size)) return tok_memory(r);
    if (!alphabet || size == 0) return true; /* an added token's: no merging makes it */
    if (!bpe_index(&r->t->bpe, id, &twice)) return tok_memory(r);
    return !twice || tok_fail(r, "its vocabulary has a token twice, at %d", (int)id);
}

IO_FN bool tok_read_vocab(const tok_reader *r, const io_json *value)
{
    io_json j = io_json_members(value);
    while (io_json_next(&j)) {
        int32_t id = 0;
        char *text = io_json_name(&j);
        if (!text) break;
        const bool ok = tok_id(r, &j, text, &id) && tok_add_word(r, text, id);
        free(text);
        if (!ok) return false;
    }
    return !j.wrong || tok_fail(r, "its 'vocab': %s", j.wrong);
}

IO_FN bool tok_add_merge(const tok_reader *r, char *left, char *right, int rank)
{
    bpe *b = &r->t->bpe;
    size_t n = strlen(left), m = strlen(right);
    unsigned char *whole = (unsigned char *)malloc(n + m + 1);
    if (!whole) return tok_memory(r);
    bpe_pair pair = { BPE_NONE, BPE_NONE, BPE_NONE, rank };
    if (tok_to_bytes(left, &n) && tok_to_bytes(right, &m) && n && m) {
        memcpy(whole, left, n);
        memcpy(whole + n, right, m);
        pair.left = bpe_find(b, left, n);
        pair.right = bpe_find(b, right, m);
        pair.whole = bpe_find(b, whole, n + m);
    }
    free(whole);
    if (pair.left == BPE_NONE || pair.right == BPE_NONE || pair.whole == BPE_NONE)
        return tok_fail(r, "merge %d is of tokens, or makes one, that its vocabulary does not have", rank);
    return bpe_merge_add(b, pair) || tok_memory(r);
}

/* "a b" */
IO_FN bool tok_merge_text(const tok_reader *r, const io_json *value, int rank)
{
    char *text = io_json_text(value), *blank = text ? strchr(text, ' ') : NULL;
    bool ok = text && rank == 0 && strncmp(text, "#version", 8) == 0; /* the first line of a merges.txt */
    if (!ok && (!blank || strchr(blank + 1, ' ')))
        tok_fail(r, "merge %d is not two tokens", rank);
    else if (!ok) {
        *blank = '\0';
        ok = tok_add_merge(r, text, blank + 1, rank);
    }
    free(text);
    return ok;
}

/* ["a", "b"] */
IO_FN bool tok_merge_pair(const tok_reader *r, const io_json *value, int rank)
{
    io_json j = io_json_list(value);
    char *part[2] = { NULL, NULL };
    int n = 0;
    while (n < 2 && io_json_next(&j)) part[n++] = io_json_text(&j);
    const bool two = n == 2 && part[0] && part[1] && !io_json_next(&j) && !j.wrong;
    const bool ok = two ? tok_add_merge(r, part[0], part[1], rank) : tok_fail(r, "merge %d is not two tokens", rank);
    free(part[0]);
    free(part[1]);
    return ok;
}

IO_FN bool tok_read_merges(const tok_reader *r, const io_json *value)
{
    io_json j = io_json_list(value);
    for (int rank = 0; io_json_next(&j); rank++) {
        if (rank == BPE_MOST) return tok_fail(r, "it has more than %d merges", BPE_MOST);
        if (!(j.value[0] == '[' ? tok_merge_pair(r, &j, rank) : tok_merge_text(r, &j, rank))) return false;
    }
    return !j.wrong || tok_fail(r, "its 'merges': %s", j.wrong);
}

/* What only other kinds of BPE have: null, "", 0 or missing. */
IO_FN bool tok_refuse_option(const tok_reader *r, const io_json *model, const char *name)
{
    io_json value;
    const char c = tok_member(model, name, &value) ? value.value[0] : '0';
    if (c == '0' || c == 'f' || (c == '"' && value.value_size >= 2 && value.value[1] == '"')) return true;
    return tok_fail(r, "its '%s' is %s, which no byte-level BPE has; give the tokens' numbers instead", name,
                    io_json_show(&value).text);
}

IO_FN bool tok_read_unknown(const tok_reader *r, const io_json *model)
{
    char *text = tok_text(model, "unk_token");
    r->t->unknown = BPE_NONE;
    if (text) {
        size_t size = strlen(text);
        const bool alphabet = tok_to_bytes(text, &size);
        r->t->unknown = alphabet ? bpe_find(&r->t->bpe, text, size) : BPE_NONE;
    }
    free(text);
    return tok_flag(r, model, "fuse_unk", false, &r->t->fuse_unknown);
}

IO_FN bool tok_read_model(const tok_reader *r, const io_json *model)
{
    static const char *const option[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                          "byte_fallback" };
    io_json vocab, merges;
    char *type = tok_text(model, "type");
    const bool right = !type || strcmp(type, "BPE") == 0; /* older files have no type */
    if (!right) tok_fail(r, "its model is %.40s, not a byte-level BPE; give the tokens' numbers instead", type);
    free(type);
    if (!right) return false;
    for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
        if (!tok_refuse_option(r, model, option[i])) return false;
    const bool has_both = tok_member(model, "vocab", &vocab) && tok_member(model, "merges", &merges);
    if (!has_both || vocab.value[0] != '{' || merges.value[0] != '[')
        return tok_fail(r, "its model lacks 'vocab' or 'merges', so it is no BPE; give the tokens' numbers instead");
    return tok_flag(r, model, "ignore_merges", false, &r->t->bpe.ignore_merges) && tok_read_vocab(r, &vocab) &&
           tok_read_merges(r, &merges) && tok_read_unknown(r, model);
}

/* ---- what comes before the model ---- */

/* One object, or, when it is a Sequence, the list of that name in it. */
IO_FN bool tok_each(const tok_reader *r, const io_json *object, const char *list, int depth,
                    bool (*read)(const tok_reader *r, const io_json *item, const char *type))
{
    io_json items;
    bool ok = true;
    if (depth > 4) return tok_fail(r, "a Sequence is nested too deeply");
    char *type = tok_text(object, "type");
    if (!type) return tok_fail(r, "what has '%s' or stands in it lacks a 'type'", list);
    if (strcmp(type, "Sequence") != 0) {
        ok = read(r, object, type);
        free(type);
        return ok;
    }
    free(type);
    io_json j = tok_member(object, list, &items) ? io_json_list(&items) : io_json_open("[]", 2, true);
    while (ok && io_json_next(&j)) ok = tok_each(r, &j, list, depth + 1, read);
    return ok && (!j.wrong || tok_fail(r, "its '%s': %s", list, j.wrong));
}

IO_FN bool tok_read_normalizer(const tok_reader *r, const io_json *item, const char *type)
{
    (void)item;
    if (strcmp(type, "NFC") != 0)
        return tok_fail(r, "its normalizer is %.40s, not NFC or none; give the tokens' numbers instead", type);
    return r->t->nfc = true;
}

IO_FN tok_step *tok_new_step(const tok_reader *r, tok_kind kind)
{
    if (r->t->steps == TOK_STEPS) return tok_fail(r, "its pre_tokenizer has more than %d steps", TOK_STEPS), NULL;
    tok_step *s = &r->t->step[r->t->steps++];
    memset(s, 0, sizeof *s);
    s->kind = kind;
    return s;
}

IO_FN bool tok_compile(const tok_reader *r, const char *text, bool only_matches)
{
    char wrong[CUT_WRONG];
    tok_step *s = tok_new_step(r, TOK_SPLIT);
    if (!s) return false;
    s->only_matches = only_matches;
    return cut_compile(text, &s->pattern, wrong) || tok_fail(r, "the pattern \"%.80s\": %s", text, wrong);
}

/* A text that is to be found as it is. */
IO_FN bool tok_compile_literal(const tok_reader *r, const char *text, bool only_matches)
{
    char *escaped = (char *)malloc(2 * strlen(text) + 1), *to = escaped;
    if (!escaped) return tok_memory(r);
    for (const char *c = text; *c; c++) {
        if (strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *c)) *to++ = '\\';
        *to++ = *c;
    }
    *to = '\0';
    const bool ok = tok_compile(r, escaped, only_matches);
    free(escaped);
    return ok;
}

IO_FN bool tok_read_split(const tok_reader *r, const io_json *item)
{
    io_json value;
    bool invert, ok = tok_flag(r, item, "invert", false, &invert);
    const bool there = tok_member(item, "pattern", &value), literal = there && value.value[0] == '"';
    char *behavior = tok_text(item, "behavior"), *regex = there && !literal ? tok_text(&value, "Regex") : NULL;
    char *string = literal ? io_json_text(&value) : there ? tok_text(&value, "String") : NULL;
    const bool isolated = behavior && strcmp(behavior, "Isolated") == 0;
    const bool removed = behavior && strcmp(behavior, "Removed") == 0 && invert;
    if (ok && !isolated && !removed)
        ok = tok_fail(r, "a Split is %.40s%s; known are Isolated and, with 'invert', Removed",
                      behavior ? behavior : "of no behavior", ok && invert ? " with 'invert'" : "");
    else if (ok && regex)
        ok = tok_compile(r, regex, removed);
    else if (ok && string && *string)
        ok = tok_compile_literal(r, string, removed);
    else if (ok)
        ok = tok_fail(r, "a Split has no pattern");
    free(behavior);
    free(regex);
    free(string);
    return ok;
}

#define TOK_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

IO_FN bool tok_read_byte_level(const tok_reader *r, const io_json *item)
{
    bool prefix, regex;
    if (!tok_flag(r, item, "add_prefix_space", true, &prefix) || !tok_flag(r, item, "use_regex", true, &regex))
        return false;
    if (prefix && !tok_new_step(r, TOK_PREFIX)) return false;
    r->t->bytes = true;
    return !regex || tok_compile(r, TOK_GPT2, false);
}

IO_FN bool tok_read_step(const tok_reader *r, const io_json *item, const char *type)
{
    if (r->t->bytes) return tok_fail(r, "its pre_tokenizer has %.40s after ByteLevel", type);
    if (strcmp(type, "ByteLevel") == 0) return tok_read_byte_level(r, item);
    if (strcmp(type, "Split") == 0) return tok_read_split(r, item);
    if (strcmp(type, "Digits") != 0)
        return tok_fail(r, "its pre_tokenizer has %.40s, which no byte-level BPE has; give the tokens' numbers instead",
                        type);
    tok_step *s = tok_new_step(r, TOK_DIGITS);
    return s && tok_flag(r, item, "individual_digits", false, &s->each) &&
           cut_compile(s->each ? "\\p{N}" : "\\p{N}+", &s->pattern, r->why);
}

/* ---- added tokens ---- */

IO_FN int tok_by_text(const void *left, const void *right)
{
    const tok_added *a = (const tok_added *)left, *b = (const tok_added *)right;
    const int c = (unsigned char)a->text[0] - (unsigned char)b->text[0];
    if (c) return c;
    return a->size != b->size ? (a->size < b->size ? 1 : -1) : a->id - b->id;
}

IO_FN bool tok_take_added(const tok_reader *r, const io_json *item, tok_added *a, char *text)
{
    io_json number;
    bool single, normalized;
    if (!tok_member(item, "id", &number) || !*text) return tok_fail(r, "an added token lacks its 'id' or 'content'");
    if (!tok_id(r, &number, text, &a->id) || !tok_flag(r, item, "single_word", false, &single) ||
        !tok_flag(r, item, "lstrip", false, &a->lstrip) || !tok_flag(r, item, "rstrip", false, &a->rstrip) ||
        !tok_flag(r, item, "normalized", false, &normalized))
        return false;
    if (single) return tok_fail(r, "its added token '%.60s' is of 'single_word', which is not supported", text);
    a->after_nfc = normalized && r->t->nfc;
    a->size = (uint32_t)strlen(text);
    return bpe_set(&r->t->bpe, a->id, text, a->size) || tok_memory(r);
}

IO_FN bool tok_add_added(const tok_reader *r, const io_json *item)
{
    tok *t = r->t;
    char *text = tok_text(item, "content");
    tok_added a;
    memset(&a, 0, sizeof a);
    if (!text) return tok_fail(r, "an added token lacks its 'id' or 'content'");
    tok_added *more = (tok_added *)realloc(t->added, (size_t)(t->added_count + 1) * sizeof *more);
    if (more) t->added = more;
    if (!more || !tok_take_added(r, item, &a, text)) return free(text), more ? false : tok_memory(r);
    a.text = text;
    t->added[t->added_count++] = a;
    return true;
}

IO_FN bool tok_read_added(const tok_reader *r, const io_json *value)
{
    tok *t = r->t;
    io_json j = io_json_list(value);
    while (io_json_next(&j)) {
        if (t->added_count == 1 << 16) return tok_fail(r, "it has more than %d added tokens", 1 << 16);
        if (!tok_add_added(r, &j)) return false;
    }
    if (j.wrong) return tok_fail(r, "its 'added_tokens': %s", j.wrong);
    if (t->added_count) qsort(t->added, (size_t)t->added_count, sizeof *t->added, tok_by_text);
    for (int c = 0, i = 0; c <= 256; c++) {
        while (i < t->added_count && (unsigned char)t->added[i].text[0] < c) i++;
        t->added_first[c] = i;
    }
    return true;
}

/* ---- what comes after the model ---- */

IO_FN bool tok_put_end(const tok_reader *r, bool after, int32_t id)
{
    int *count = after ? &r->t->afters : &r->t->befores;
    if (*count == TOK_ENDS) return tok_fail(r, "its post_processor adds more than %d tokens", TOK_ENDS);
    (after ? r->t->after : r->t->before)[(*count)++] = id;
    return true;
}

/* "special_tokens": { name: { "ids": [ ... ] } } */
IO_FN bool tok_put_special(const tok_reader *r, const io_json *specials, const char *name, bool after)
{
    io_json special, ids;
    int32_t id = 0;
    if (!tok_member(specials, name, &special) || !tok_member(&special, "ids", &ids))
        return tok_fail(r, "its post_processor does not say what '%.60s' is", name);
    io_json j = io_json_list(&ids);
    while (io_json_next(&j))
        if (!tok_id(r, &j, name, &id) || !tok_put_end(r, after, id)) return false;
    return !j.wrong || tok_fail(r, "its post_processor's '%.60s': %s", name, j.wrong);
}

IO_FN bool tok_read_piece(const tok_reader *r, const io_json *specials, const io_json *piece, bool *after)
{
    io_json special, sequence;
    const bool is_special = tok_member(piece, "SpecialToken", &special);
    const bool is_sequence = tok_member(piece, "Sequence", &sequence);
    if (is_sequence && !is_special && !*after) return *after = true;
    if (!is_special || is_sequence) return tok_fail(r, "its post_processor has a piece that is not understood");
    char *name = tok_text(&special, "id");
    const bool ok = name ? tok_put_special(r, specials, name, *after)
                         : tok_fail(r, "its post_processor has a piece that is not understood");
    free(name);
    return ok;
}

IO_FN bool tok_read_template(const tok_reader *r, const io_json *item)
{
    io_json single, specials;
    bool after = false;
    const bool there = tok_member(item, "single", &single);
    if (!tok_member(item, "special_tokens", &specials))
        specials = *item, specials.value = "{}", specials.value_size = 2;
    io_json j = there ? io_json_list(&single) : io_json_open("", 0, true);
    while (io_json_next(&j))
        if (!tok_read_piece(r, &specials, &j, &after)) return false;
    if (j.wrong) return tok_fail(r, "its post_processor's 'single': %s", j.wrong);
    return after || tok_fail(r, "its post_processor drops the text");
}

/* ["</s>", 2] */
IO_FN bool tok_read_named(const tok_reader *r, const io_json *item, const char *name, bool after)
{
    io_json value;
    int32_t id = 0;
    io_json j = tok_member(item, name, &value) ? io_json_list(&value) : io_json_open("", 0, true);
    if (!io_json_next(&j) || !io_json_next(&j)) return tok_fail(r, "its post_processor lacks '%s'", name);
    return tok_id(r, &j, name, &id) && tok_put_end(r, after, id);
}

IO_FN bool tok_read_post(const tok_reader *r, const io_json *item, const char *type)
{
    if (strcmp(type, "ByteLevel") == 0) return true; /* offsets only */
    if (strcmp(type, "TemplateProcessing") == 0) return tok_read_template(r, item);
    if (strcmp(type, "RobertaProcessing") == 0)
        return tok_read_named(r, item, "cls", false) && tok_read_named(r, item, "sep", true);
    return tok_fail(r, "its post_processor is %.40s, which no byte-level BPE has", type);
}

/* ---- the whole ---- */

IO_FN bool tok_read_parts(const tok_reader *r, const io_json *root)
{
    io_json model, before, normalizer, post, added;
    const bool has_before = tok_member(root, "pre_tokenizer", &before);
    const bool has_normalizer = tok_member(root, "normalizer", &normalizer);
    const bool has_post = tok_member(root, "post_processor", &post),
               has_added = tok_member(root, "added_tokens", &added);
    if (!tok_member(root, "model", &model) || model.value[0] != '{')
        return tok_fail(r, "it has no 'model': it is no tokenizer.json");
    if (has_before && !tok_each(r, &before, "pretokenizers", 0, tok_read_step)) return false;
    if (!tok_read_model(r, &model)) return false;
    if (!r->t->bytes)
        return tok_fail(r, "its BPE is not byte-level (SentencePiece's are not); give the tokens' numbers instead");
    if (has_normalizer && !tok_each(r, &normalizer, "normalizers", 0, tok_read_normalizer)) return false;
    if (has_added && !tok_read_added(r, &added)) return false;
    return !has_post || tok_each(r, &post, "processors", 0, tok_read_post);
}

/* why [IO_WHY]; t is empty when it returns false. */
IO_FN bool tok_parse(const void *text, size_t size, const char *name, tok *t, char *why)
{
    const tok_reader r = { t, why };
    const size_t length = strlen(name);
    io_json whole = io_json_file((const char *)text, size), root = whole;
    memset(t, 0, sizeof *t);
    bpe_start(&t->bpe);
    t->unknown = BPE_NONE;
    if (!(t->name = (char *)malloc(length + 1))) return io_fail(why, name, "there is not enough memory");
    memcpy(t->name, name, length + 1);
    while (io_json_next(&whole)) {}                /* all of it is JSON before any of it is believed */
    root.value = whole.wrong ? NULL : root.at - 1; /* from its bracket on, behind a mark */
    root.value_size = whole.wrong ? 0 : (size_t)(root.end - root.value);
    if (whole.wrong ? tok_fail(&r, "it is not a JSON object: %s", whole.wrong) : tok_read_parts(&r, &root)) return true;
    tok_close(t);
    return false;
}

/* A tokenizer.json. */
IO_FN bool tok_open(const char *path, tok *t, char *why)
{
    io_map map;
    memset(t, 0, sizeof *t);
    if (!io_map_open(path, &map, why)) return false;
    const bool ok = map.size <= TOK_FILE ? tok_parse(map.bytes, map.size, path, t, why)
                                         : io_fail(why, path, "it has more than %d bytes", TOK_FILE);
    io_map_close(&map);
    return ok;
}

/* ---- text -> tokens ---- */

typedef struct tok_run {
    const tok *t;
    bpe_work work;
    bpe_ids *ids;
    uint64_t steps; /* of patterns */
    char *why;
    bool unknown; /* the last token stands for what the vocabulary lacks */
} tok_run;

#define tok_stop(run, ...) io_fail((run)->why, (run)->t->name, __VA_ARGS__)

IO_FN bool tok_no_memory(const tok_run *run) { return tok_stop(run, "there is not enough memory for a text's tokens"); }

IO_FN bool tok_put_unknown(tok_run *run, unsigned char byte)
{
    const tok *t = run->t;
    if (t->unknown == BPE_NONE)
        return tok_stop(run, "the text has the byte 0x%02x, for which its vocabulary has no token", byte);
    if (run->unknown && t->fuse_unknown) return true;
    run->unknown = true;
    return bpe_ids_add(run->ids, t->unknown) || tok_no_memory(run);
}

/* One piece: the model. */
IO_FN bool tok_merge(tok_run *run, const unsigned char *piece, size_t size)
{
    const bpe *b = &run->t->bpe;
    run->unknown = false;
    for (size_t i = 0, end; i < size; i = end) {
        for (end = i; end < size && b->byte[piece[end]] != BPE_NONE; end++) {}
        if (end > i) run->unknown = false;
        if (end > i && !bpe_encode(b, &run->work, piece + i, end - i, run->ids)) return tok_no_memory(run);
        if (end < size && !tok_put_unknown(run, piece[end++])) return false;
    }
    return true;
}

IO_FN bool tok_cut(tok_run *run, int step, const unsigned char *text, size_t size);

IO_FN bool tok_cut_by_pattern(tok_run *run, int step, const unsigned char *text, size_t size)
{
    const tok_step *s = &run->t->step[step];
    size_t gap = 0, at = 0;
    uint32_t code;
    while (at < size) {
        const size_t end = cut_match(&s->pattern, text, size, at, &run->steps);
        if (run->steps == 0)
            return errno == ENOMEM ? tok_no_memory(run)
                                   : tok_stop(run, "one of its patterns takes too many steps on this text");
        if (end == at) {
            at += uc_character(text + at, size - at, &code);
            continue;
        }
        if (gap < at && !s->only_matches && !tok_cut(run, step + 1, text + gap, at - gap)) return false;
        if (!tok_cut(run, step + 1, text + at, end - at)) return false;
        gap = at = end;
    }
    return gap == size || s->only_matches || tok_cut(run, step + 1, text + gap, size - gap);
}

IO_FN bool tok_cut_prefixed(tok_run *run, int step, const unsigned char *text, size_t size)
{
    if (text[0] == ' ') return tok_cut(run, step + 1, text, size);
    unsigned char *copy = (unsigned char *)malloc(size + 1);
    if (!copy) return tok_no_memory(run);
    copy[0] = ' ';
    memcpy(copy + 1, text, size);
    const bool ok = tok_cut(run, step + 1, copy, size + 1);
    free(copy);
    return ok;
}

/* The steps from this one on, then the model. */
IO_FN bool tok_cut(tok_run *run, int step, const unsigned char *text, size_t size)
{
    if (size == 0) return true;
    if (step == run->t->steps) return tok_merge(run, text, size);
    return run->t->step[step].kind == TOK_PREFIX ? tok_cut_prefixed(run, step, text, size)
                                                 : tok_cut_by_pattern(run, step, text, size);
}

/* The added token that begins here; NULL: none. */
IO_FN const tok_added *tok_added_at(const tok *t, const unsigned char *at, size_t size, bool after_nfc)
{
    for (int i = t->added_first[*at]; i < t->added_first[*at + 1]; i++) {
        const tok_added *a = &t->added[i];
        if (a->after_nfc == after_nfc && a->size <= size && memcmp(a->text, at, a->size) == 0) return a;
    }
    return NULL;
}

IO_FN size_t tok_blanks_after(const unsigned char *at, size_t size)
{
    size_t n = 0;
    for (uint32_t code; n < size;) {
        const size_t bytes = uc_character(at + n, size - n, &code);
        if (!uc_is_space(code)) break;
        n += bytes;
    }
    return n;
}

IO_FN size_t tok_blanks_before(const unsigned char *from, size_t size)
{
    size_t n = 0;
    for (uint32_t code; n < size;) {
        size_t bytes = 1;
        while (bytes < 4 && n + bytes < size && (from[size - n - bytes] & 0xc0) == 0x80) bytes++;
        if (uc_character(from + size - n - bytes, bytes, &code) != bytes || !uc_is_space(code)) break;
        n += bytes;
    }
    return n;
}

IO_FN bool tok_between(tok_run *run, const unsigned char *text, size_t size, bool after_nfc);

/* What is between added tokens, and these. */
IO_FN bool tok_find_added(tok_run *run, const unsigned char *text, size_t size, bool after_nfc)
{
    size_t from = 0;
    for (size_t at = 0; at < size;) {
        const tok_added *a = tok_added_at(run->t, text + at, size - at, after_nfc);
        if (!a) {
            at++;
            continue;
        }
        const size_t blanks = a->lstrip ? tok_blanks_before(text + from, at - from) : 0;
        if (!tok_between(run, text + from, at - from - blanks, after_nfc)) return false;
        if (!bpe_ids_add(run->ids, a->id)) return tok_no_memory(run);
        from = at + a->size;
        if (a->rstrip) from += tok_blanks_after(text + from, size - from);
        at = from;
    }
    return tok_between(run, text + from, size - from, after_nfc);
}

IO_FN bool tok_between(tok_run *run, const unsigned char *text, size_t size, bool after_nfc)
{
    if (size == 0) return true;
    if (after_nfc || !run->t->nfc) return tok_cut(run, 0, text, size);
    if (uc_is_nfc(text, size)) return tok_find_added(run, text, size, true);
    size_t length;
    unsigned char *composed = uc_nfc(text, size, &length);
    if (!composed) return tok_no_memory(run);
    const bool ok = tok_find_added(run, composed, length, true);
    free(composed);
    return ok;
}

IO_FN bool tok_put_ends(tok_run *run, const int32_t *id, int count)
{
    for (int i = 0; i < count; i++)
        if (!bpe_ids_add(run->ids, id[i])) return tok_no_memory(run);
    return true;
}

/* Does anything of it read characters? */
IO_FN bool tok_reads_characters(const tok *t)
{
    bool reads = t->nfc;
    for (int i = 0; i < t->steps; i++) reads = reads || t->step[i].kind != TOK_PREFIX;
    for (int i = 0; i < t->added_count; i++) reads = reads || t->added[i].lstrip || t->added[i].rstrip;
    return reads;
}

/* Adds the text's tokens to ids; with `ends`, the post_processor's before and after them. */
IO_FN bool tok_encode(const tok *t, const void *text, size_t size, bool ends, bpe_ids *ids, char *why)
{
    const unsigned char *bytes = (const unsigned char *)text;
    tok_run run = { t, { NULL, NULL, 0, 0 }, ids, 4096 * ((uint64_t)size + 4096), why, false };
    if (tok_reads_characters(t) && !io_utf8(bytes, size)) return tok_stop(&run, "the text is not UTF-8");
    bool ok = !ends || tok_put_ends(&run, t->before, t->befores);
    ok = ok && tok_find_added(&run, bytes, size, false);
    ok = ok && (!ends || tok_put_ends(&run, t->after, t->afters));
    bpe_work_free(&run.work);
    return ok;
}

/* ---- tokens -> text ---- */

/* NULL with a sentence; *size bytes, and a 0 after them. */
IO_FN char *tok_decode(const tok *t, const int32_t *id, size_t count, size_t *size, char *why)
{
    size_t n = 0, one = 0;
    for (size_t i = 0; i < count; i++, n += one)
        if (!bpe_bytes(&t->bpe, id[i], &one)) return io_fail(why, t->name, "it has no token %d", (int)id[i]), NULL;
    char *text = (char *)malloc(n + 1);
    if (!text) return io_fail(why, t->name, "there is not enough memory for a text"), NULL;
    *size = n;
    n = 0;
    for (size_t i = 0; i < count; i++, n += one) {
        const unsigned char *bytes = bpe_bytes(&t->bpe, id[i], &one);
        if (one) memcpy(text + n, bytes, one);
    }
    text[n] = '\0';
    return text;
}

#endif /* TOKENIZER_H */
