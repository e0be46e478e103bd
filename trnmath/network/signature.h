/* network/signature.h - what processes must have been asked alike: one word for each field, and who differs in which.
 * Behind trn_mpi.h. SPDX-License-Identifier: MIT
 *
 * DOES: makes a signature of tables that have one row for each field of the arguments; holds the signatures of all
 *     processes against each other, and says in one sentence, the same everywhere, which field differs, whose it is and
 *     what the others have. A table that lacks a field of its structure does not compile.
 * DOES NOT: send anything, or know what is asked: collective_signature.h and sharded/sharded_signature.h have tables.
 *
 * A number is its own word; what a pointer leads to is a hash of what stands there, field by field, so that padding and
 * addresses play no part. Words before TRNI_SIGNATURE_BODY keep their places in all versions to come, and no version's
 * signature is longer than TRNI_SIGNATURE_WORDS: any two versions can read that they differ.
 */
#ifndef TRNI_NETWORK_SIGNATURE_H
#define TRNI_NETWORK_SIGNATURE_H

#include "../number/format.h"
#include "schedule.h"

/* ---- words ---- */

/* How a word is read to people: printf's conversion, and what of it. From COUNT on no word is UINT64_MAX, which is how
 * a process with nothing to do abstains. */
#define TRNI_SHOW_LIST(X)                                                                                              \
    X(HASH, "%s", "a hash of its content")                                                                             \
    X(INTEGER, "%lld", (long long)word)                                                                                \
    X(WORD, "0x%llx", (unsigned long long)word)                                                                        \
    X(REAL, "%.17g", trni_word_real(word))                                                                             \
    X(VERSION, "%s", trni_word_version(word, version))                                                                 \
    X(COUNT, "%lld", (long long)word)                                                                                  \
    X(FORMAT, "%s", trn_format_name((trn_format)word))                                                                 \
    X(COLLECTIVE, "%s", trn_collective_name((trn_collective)word))                                                     \
    X(ALGORITHM, "%s", trn_algorithm_name((trn_algorithm)word))

typedef enum trni_show {
#define TRNI_X(show, conversion, of) TRNI_SHOW_##show,
    TRNI_SHOW_LIST(TRNI_X)
#undef TRNI_X
} trni_show;

enum {
    TRNI_SIGNATURE_WORDS = 512,
    TRNI_SIGNATURE_MAGIC = 0, /* the words that come first */
    TRNI_SIGNATURE_LAYOUT,
    TRNI_SIGNATURE_LIBRARY,
    TRNI_SIGNATURE_RESULTS,
    TRNI_SIGNATURE_STATUS,
    TRNI_SIGNATURE_CALL,
    TRNI_SIGNATURE_STAGE,
    TRNI_SIGNATURE_FIELDS, /* words of the body */
    TRNI_SIGNATURE_NAMES,  /* hash of their names */
    TRNI_SIGNATURE_BODY,
    TRNI_SIGNATURE_VERSION = 1 /* of the body's layout: what LAYOUT says */
};

#define TRNI_SIGNATURE_SIGN 0x746f6c6c61626e72u /* "rnballot" */
#define TRNI_ABSTAINS UINT64_MAX
#define TRNI_NOT_WRITTEN "; nothing is written"

typedef enum trni_signature_call { TRNI_CALL_COLLECTIVE = 1, TRNI_CALL_PRODUCT } trni_signature_call;
typedef enum trni_signature_stage { TRNI_CALL_BEGINS = 1, TRNI_CALL_ENDS } trni_signature_stage;

typedef struct trni_signature {
    uint64_t word[TRNI_SIGNATURE_WORDS]; /* what is sent: trni_signature_bytes of it */
    int words, derived;                  /* from `derived` on, what follows from the fields before it */
    struct {
        const char *owner, *field; /* "net.level." and "size" */
        trni_show show;
    } row[TRNI_SIGNATURE_WORDS];
} trni_signature;

/* ---- hashes ---- */

/* splitmix64's finaliser: every bit of a word moves every bit of the hash, and two words never meet. */
TRNI_FN uint64_t trni_hash(uint64_t hash, uint64_t word)
{
    uint64_t h = (hash ^ word) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

TRNI_FN uint64_t trni_hash_text(uint64_t hash, const char *text)
{
    const size_t length = strlen(text);
    for (size_t at = 0; at <= length; at += 8) { /* the closing zero, too: "ab" "c" is not "a" "bc" */
        uint64_t word = 0;
        memcpy(&word, text + at, length - at < 8 ? length - at : 8);
        hash = trni_hash(hash, word);
    }
    return hash;
}

TRNI_FN uint64_t trni_real_word(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    return word << 1 ? word : 0; /* -0 is 0 */
}

/* ---- tables: TABLE(X, ARRAY), each row X(field, kind, of), or ARRAY(...) where the field is an array ----
 * kind: how its word is shown, `of` being the word; HERE: each process may have its own, `of` says why; INSIDE: `of` is
 * what puts the rows of a structure into b. `owner` is the text before the names. */

#define TRNI_PUT(field, kind, of) TRNI_PUT_##kind(field, of)
#define TRNI_PUT_HERE(field, of)
#define TRNI_PUT_INSIDE(field, of) of;
#define TRNI_PUT_HASH(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_HASH, of);
#define TRNI_PUT_INTEGER(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_INTEGER, (uint64_t)(int64_t)(of));
#define TRNI_PUT_WORD(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_WORD, of);
#define TRNI_PUT_REAL(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_REAL, trni_real_word(of));
#define TRNI_PUT_COUNT(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_COUNT, (uint64_t)(int64_t)(of));
#define TRNI_PUT_FORMAT(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_FORMAT, (uint64_t)(int64_t)(of));
#define TRNI_PUT_COLLECTIVE(field, of) trni_signature_put(b, owner, #field, TRNI_SHOW_COLLECTIVE, (uint64_t)(of));
#define TRNI_PUT_ALGORITHM(field, of)                                                                                  \
    trni_signature_put(b, owner, #field, TRNI_SHOW_ALGORITHM, (uint64_t)(int64_t)(of));

/* Does a table have every field of its structure? Its rows make a second structure: same sizes, same places. What was
 * put into a hole between two fields would not move them, so the rows also make an initialiser, in order: one that has
 * too few values is an error, and one that has too many always was. */
#if defined(__cplusplus)
#define TRNI_TILE_ARRAY(field, kind, of) {},
#else
#define TRNI_TILE_ARRAY(field, kind, of) { 0 },
#endif
#define TRNI_TILE_VALUE(field, kind, of) s->field,
#define TRNI_TILE_FIELD(field, kind, of) __typeof__(((trni_tiled *)0)->field) field;
#define TRNI_TILE_PLACE(field, kind, of)                                                                               \
    typedef char trni_place_##field[offsetof(trni_tiled, field) == offsetof(trni_mirror, field) ? 1 : -1];
#define TRNI_COVERS(structure, TABLE)                                                                                  \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"")                    \
        _Pragma("GCC diagnostic ignored \"-Wunused-local-typedefs\"")                                                  \
            _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"")                                                     \
                TRNI_FN size_t trni_tiles_##structure(const structure *s)                                              \
    {                                                                                                                  \
        typedef structure trni_tiled;                                                                                  \
        typedef struct trni_rows_of_##structure {                                                                      \
            TABLE(TRNI_TILE_FIELD, TRNI_TILE_FIELD)                                                                    \
        } trni_mirror;                                                                                                 \
        TABLE(TRNI_TILE_PLACE, TRNI_TILE_PLACE)                                                                        \
        typedef char trni_end[sizeof(trni_tiled) == sizeof(trni_mirror) ? 1 : -1];                                     \
        const trni_tiled all = { TABLE(TRNI_TILE_VALUE, TRNI_TILE_ARRAY) };                                            \
        return sizeof all;                                                                                             \
    }                                                                                                                  \
    _Pragma("GCC diagnostic pop")

/* ---- making a signature ---- */

TRNI_FN void trni_signature_put(trni_signature *b, const char *owner, const char *field, trni_show show, uint64_t word)
{
    const int at = b->words++; /* the longest table has a third of the words; tests/unit/test_signature.c counts */
    if (at >= TRNI_SIGNATURE_WORDS) return;
    b->word[at] = word;
    b->row[at].owner = owner;
    b->row[at].field = field;
    b->row[at].show = show;
}

/* The words that come first. */
TRNI_FN void trni_signature_begin(trni_signature *b, trni_signature_call call)
{
    const uint64_t library = (uint64_t)TRN_VERSION_MAJOR << 32 | (uint64_t)TRN_VERSION_MINOR << 16 | TRN_VERSION_PATCH;
    b->words = 0;
    b->derived = TRNI_SIGNATURE_WORDS;
    trni_signature_put(b, "", "the sign of a signature (another version of trnmath?)", TRNI_SHOW_WORD,
                       TRNI_SIGNATURE_SIGN);
    trni_signature_put(b, "", "the signature's layout", TRNI_SHOW_INTEGER, TRNI_SIGNATURE_VERSION);
    trni_signature_put(b, "", "trnmath's version", TRNI_SHOW_VERSION, library);
    trni_signature_put(b, "", "the digest of trnmath's results", TRNI_SHOW_WORD, TRNI_RESULTS_DIGEST);
    trni_signature_put(b, "", "status", TRNI_SHOW_INTEGER, TRN_OK);
    trni_signature_put(b, "", "the call (1: a collective, 2: a product)", TRNI_SHOW_INTEGER, call);
    trni_signature_put(b, "", "the stage of the call (1: its beginning, 2: its end)", TRNI_SHOW_INTEGER,
                       TRNI_CALL_BEGINS);
    trni_signature_put(b, "", "the number of fields", TRNI_SHOW_INTEGER, 0);
    trni_signature_put(b, "", "the names of the fields", TRNI_SHOW_HASH, 0);
}

/* Behind the last field. */
TRNI_FN void trni_signature_close(trni_signature *b)
{
    uint64_t names = 0;
    for (int i = TRNI_SIGNATURE_BODY; i < b->words; i++)
        names = trni_hash_text(trni_hash_text(names, b->row[i].owner), b->row[i].field);
    b->word[TRNI_SIGNATURE_FIELDS] = (uint64_t)(b->words - TRNI_SIGNATURE_BODY);
    b->word[TRNI_SIGNATURE_NAMES] = names;
}

/* How this process fared so far; what it said of a failure goes to the others in the place of the fields. */
TRNI_FN void trni_signature_fared(trni_signature *b, trni_signature_stage stage, trn_status status,
                                  const trn_error *said)
{
    b->word[TRNI_SIGNATURE_STAGE] = stage;
    b->word[TRNI_SIGNATURE_STATUS] = (uint64_t)status;
    if (status == TRN_OK) return;
    memset(&b->word[TRNI_SIGNATURE_BODY], 0, sizeof said->text);
    trni_copy_text((char *)&b->word[TRNI_SIGNATURE_BODY], sizeof said->text, said->text);
}

/* Fields are sent once; at the end of a call it is only said how it went. */
TRNI_FN int64_t trni_signature_bytes(const trni_signature *b)
{
    const size_t head = TRNI_SIGNATURE_BODY * sizeof(uint64_t);
    if (b->word[TRNI_SIGNATURE_STATUS] != TRN_OK) return (int64_t)(head + sizeof(((trn_error *)0)->text));
    return (int64_t)(b->word[TRNI_SIGNATURE_STAGE] == TRNI_CALL_BEGINS ? (size_t)b->words * sizeof(uint64_t) : head);
}

/* ---- reading all of them ---- */

typedef struct trni_signatures {
    const trni_signature *mine; /* for names */
    const uint64_t *word;       /* [processes][TRNI_SIGNATURE_WORDS], this process' own among them */
    int processes;
    const char *what; /* for sentences */
    trn_error *error;
} trni_signatures;

TRNI_FN uint64_t trni_signatures_word(const trni_signatures *all, int process, int at)
{
    return all->word[(size_t)process * TRNI_SIGNATURE_WORDS + (size_t)at];
}

TRNI_FN bool trni_signatures_counts(const trni_signatures *all, int process, int at)
{
    return all->mine->row[at].show < TRNI_SHOW_COUNT || trni_signatures_word(all, process, at) != TRNI_ABSTAINS;
}

/* Who has something else in one word of the signatures. */
typedef struct trni_dissent {
    int odd;      /* the first process that differs from `like`; -1: all are alike */
    int like;     /* of the majority, or the first that votes where no word has more than half of the votes */
    int majority; /* votes that like's word has; 0: it is none */
} trni_dissent;

/* The process whose word more than half share, if there is such a word: what is left when pairs that differ are struck
 * out (Boyer and Moore). */
TRNI_FN int trni_signatures_leader(const trni_signatures *all, int at)
{
    int leader = -1, count = 0;
    for (int p = 0; p < all->processes; p++) {
        if (!trni_signatures_counts(all, p, at)) continue;
        if (count == 0) leader = p;
        count += trni_signatures_word(all, p, at) == trni_signatures_word(all, leader, at) ? 1 : -1;
    }
    return leader;
}

TRNI_FN trni_dissent trni_signatures_dissent(const trni_signatures *all, int at)
{
    trni_dissent s = { -1, trni_signatures_leader(all, at), 0 };
    int first = -1, voters = 0;
    for (int p = 0; p < all->processes; p++) {
        if (!trni_signatures_counts(all, p, at)) continue;
        if (first < 0) first = p;
        voters++;
        s.majority += trni_signatures_word(all, p, at) == trni_signatures_word(all, s.like, at);
    }
    if (2 * s.majority <= voters) {
        s.like = first;
        s.majority = 0;
    }
    for (int p = all->processes - 1; p >= 0; p--)
        if (trni_signatures_counts(all, p, at) &&
            trni_signatures_word(all, p, at) != trni_signatures_word(all, s.like, at))
            s.odd = p;
    return s;
}

TRNI_FN double trni_word_real(uint64_t word)
{
    double x;
    memcpy(&x, &word, sizeof x);
    return x;
}

TRNI_FN const char *trni_word_version(uint64_t word, char *text)
{
    snprintf(text, 24, "%u.%u.%u", (unsigned)(word >> 32 & 0xffff), (unsigned)(word >> 16 & 0xffff),
             (unsigned)(word & 0xffff));
    return text;
}

TRNI_FN void trni_word_show(char *text, size_t capacity, trni_show show, uint64_t word)
{
    char version[24];
    switch (show) {
#define TRNI_X(name, conversion, of)                                                                                   \
    case TRNI_SHOW_##name: trni_print(text, capacity, conversion, of); break;
        TRNI_SHOW_LIST(TRNI_X)
#undef TRNI_X
    }
}

/* The sentence about a word that differs; `more`: so many others do. */
TRNI_FN trn_status trni_signatures_differ(const trni_signatures *all, int at, const trni_dissent *d, int more)
{
    const char *const owner = all->mine->row[at].owner, *const field = all->mine->row[at].field;
    const trni_show show = all->mine->row[at].show;
    char odd[48], like[48], others[48], rest[48] = "";
    if (d->majority > 1)
        snprintf(others, sizeof others, "%d others", d->majority);
    else
        snprintf(others, sizeof others, "process %d", d->like);
    if (more) snprintf(rest, sizeof rest, "; %d more differ%s", more, more == 1 ? "s" : "");
    if (show == TRNI_SHOW_HASH)
        return trni_fail(all->error, TRN_EINVAL, "%s: process %d has something else in %s%s than %s%s%s", all->what,
                         d->odd, owner, field, others, rest, TRNI_NOT_WRITTEN);
    trni_word_show(odd, sizeof odd, show, trni_signatures_word(all, d->odd, at));
    trni_word_show(like, sizeof like, show, trni_signatures_word(all, d->like, at));
    return trni_fail(all->error, TRN_EINVAL, "%s: process %d has %s%s = %s, %s %s %s%s%s", all->what, d->odd, owner,
                     field, odd, others, d->majority > 1 ? "have" : "has", like, rest, TRNI_NOT_WRITTEN);
}

/* Which of two words that differ is told? What was given rather than what follows, and what can be shown rather than a
 * hash, which may only reflect it. */
TRNI_FN int trni_signature_rank(const trni_signature *b, int at)
{
    return at < 0 ? 3 : at >= b->derived ? 2 : b->row[at].show == TRNI_SHOW_HASH ? 1 : 0;
}

/* Words first <= at < end: TRN_OK when all processes have the same. */
TRNI_FN trn_status trni_signatures_alike(const trni_signatures *all, int first, int end)
{
    int told = -1, differing = 0;
    for (int at = first; at < end; at++) {
        if (trni_signatures_dissent(all, at).odd < 0) continue;
        differing++;
        if (trni_signature_rank(all->mine, at) < trni_signature_rank(all->mine, told)) told = at;
    }
    if (told < 0) return TRN_OK;
    const trni_dissent d = trni_signatures_dissent(all, told);
    return trni_signatures_differ(all, told, &d, differing - 1);
}

/* A process that cannot go on, in its own words. */
TRNI_FN trn_status trni_signatures_well(const trni_signatures *all, int process)
{
    const trn_status status = (trn_status)all->word[(size_t)process * TRNI_SIGNATURE_WORDS + TRNI_SIGNATURE_STATUS];
    char said[sizeof(((trn_error *)0)->text)];
    if (status == TRN_OK) return TRN_OK;
    memcpy(said, &all->word[(size_t)process * TRNI_SIGNATURE_WORDS + TRNI_SIGNATURE_BODY], sizeof said);
    said[sizeof said - 1] = 0;
    return trni_fail(all->error, status, "%s: process %d cannot go on (%.170s); nothing is written", all->what, process,
                     said[0] ? said : trn_status_text(status));
}

/* TRN_OK when all are well and were asked the same. Every process says the same sentence. What speaks for another
 * version comes first: the words behind it may mean anything then. */
TRNI_FN trn_status trni_signatures_read(const trni_signatures *all)
{
    const bool begins = trni_signatures_word(all, 0, TRNI_SIGNATURE_STAGE) == TRNI_CALL_BEGINS;
    trn_status status = TRN_OK;
    for (int i = TRNI_SIGNATURE_MAGIC; i < TRNI_SIGNATURE_STATUS && status == TRN_OK; i++)
        status = trni_signatures_alike(all, i, i + 1);
    for (int p = 0; p < all->processes && status == TRN_OK; p++) status = trni_signatures_well(all, p);
    for (int i = TRNI_SIGNATURE_CALL; i < TRNI_SIGNATURE_BODY && status == TRN_OK; i++)
        status = trni_signatures_alike(all, i, i + 1);
    return status == TRN_OK && begins ? trni_signatures_alike(all, TRNI_SIGNATURE_BODY, all->mine->words) : status;
}

#endif /* TRNI_NETWORK_SIGNATURE_H */
