/* hf/fields.h - one field of a configuration: a number, a flag, and the sentence when it is neither.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_FIELDS_H
#define HF_FIELDS_H

#include <trnmath/trn_plan.h>

#include "../io.h"
#include "../json.h"
#include "families.h"
#include "names.h"

/* ---- fields ---- */

enum { HF_WHY = 512, HF_KEYS = 512, HF_NOTES = 16, HF_NOTE = 400 };

/* What a reader of the report must know: what was not counted, and which fields say nothing of sizes or times. */
typedef struct hf_notes {
    int count;
    char text[HF_NOTES][HF_NOTE];
} hf_notes;

typedef struct hf_reader {
    const char *name;
    const cJSON *root;
    io_json text; /* of the same object: numbers are read from their digits */
    const hf_family *family;
    char *why; /* [HF_WHY]; empty until something is wrong */
    hf_part part;
    bool decodes;        /* of two halves the decoder is meant, where none is named */
    int64_t positions;   /* of an encoder, that its decoder looks at; 0 = what the file says */
    const cJSON *file;   /* all of it, where root is a part of it */
    const cJSON *beside; /* what hf_quant_config.json says, where the file says nothing of it; NULL: nothing */
    hf_notes *notes;     /* NULL: nobody asks */
    bool *seen;          /* [HF_KEYS], members of root that were asked for, in their order; NULL: nobody asks */
} hf_reader;

__attribute__((unused, format(printf, 2, 3))) static bool hf_fail(hf_reader *r, const char *format, ...)
{
    va_list list;
    if (r->why[0]) return false; /* the first thing wrong is told */
    io_say_in(r->why, HF_WHY, IO_SAID, "%.200s: ", r->name);
    const size_t n = strlen(r->why);
    va_start(list, format);
    io_say_list(r->why + n, HF_WHY - n, IO_SAID, format, list);
    va_end(list);
    return false;
}

/* One more note, as long as there is room. */
__attribute__((unused, format(printf, 2, 3))) static void hf_note_in(hf_notes *notes, const char *format, ...)
{
    va_list list;
    if (!notes || notes->count == HF_NOTES) return;
    va_start(list, format);
    io_say_list(notes->text[notes->count++], HF_NOTE, IO_SAID, format, list);
    va_end(list);
}

#define hf_note(r, ...) hf_note_in((r)->notes, __VA_ARGS__)

HF_FN void hf_mark_seen(hf_reader *r, const char *field)
{
    int i = 0;
    if (!r->seen) return;
    for (const cJSON *item = r->root->child; item && i < HF_KEYS; item = item->next, i++)
        if (item->string && strcmp(item->string, field) == 0) r->seen[i] = true;
}

/* NULL for a field that is missing or null; of two the last one, as the tree has it. */
HF_FN const cJSON *hf_field(hf_reader *r, const char *field, io_json *digits)
{
    hf_mark_seen(r, field);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->root, field);
    return item && io_json_last(r->text, field, digits) && !cJSON_IsNull(item) ? item : NULL;
}

/* What the file calls a field: the family's own name of it, where that is there or the usual one is not. */
HF_FN const char *hf_own_name(hf_reader *r, const char *field)
{
    const hf_alias *alias;
    const char *own = NULL, *found = NULL;
    const bool usual = cJSON_GetObjectItemCaseSensitive(r->root, field) != NULL;
    for (int i = 0; (alias = hf_alias_at(i)) != NULL; i++) {
        if (strcmp(alias->usual, field) != 0 || (alias->type && strcmp(alias->type, r->family->type) != 0)) continue;
        if (!found && cJSON_GetObjectItemCaseSensitive(r->root, alias->own) && (alias->type || !usual))
            found = alias->own;
        if (!own && alias->type) own = alias->own;
        hf_mark_seen(r, alias->own); /* some files have both */
    }
    if (found) hf_mark_seen(r, field);
    return found ? found : usual || !own ? field : own;
}

enum { HF_NEEDED = -1 };

/* A whole number from low to high; where there is none what the family's class takes, else `missing` (HF_NEEDED: that
 * is an error). */
HF_FN int64_t hf_number(hf_reader *r, const char *usually, int64_t low, int64_t high, int64_t missing)
{
    io_json digits;
    uint64_t number = 0;
    const char *field = hf_own_name(r, usually);
    const cJSON *item = hf_field(r, field, &digits);
    if (!item) {
        const long usual = hf_usual(r->family->type, usually, r->file && r->file != r->root);
        if (usual && !cJSON_GetObjectItemCaseSensitive(r->root, field)) { /* null is an answer, too */
            hf_note(r, "the file has no '%s': %ld, as %s's class has it", field, usual, r->family->type);
            return usual;
        }
        if (missing == HF_NEEDED) hf_fail(r, "it has no '%s', which %s needs", field, r->family->type);
        return missing;
    }
    const double x = item->valuedouble;
    if (!cJSON_IsNumber(item))
        hf_fail(r, "its '%s' is not a number", field);
    else if (!(x >= (double)low && x <= (double)high))
        hf_fail(r, "its '%s' is %.17g; expected %lld to %lld", field, x, (long long)low, (long long)high);
    else if (!io_json_whole(&digits, &number))
        hf_fail(r, "its '%s' is %s, not a whole number in plain digits", field, io_json_show(&digits).text);
    else
        return (int64_t)number;
    return low;
}

HF_FN bool hf_flag(hf_reader *r, const char *field, bool missing)
{
    io_json text;
    const cJSON *item = hf_field(r, field, &text);
    if (!item) return missing;
    if (!cJSON_IsBool(item)) hf_fail(r, "its '%s' is neither true nor false", field);
    return cJSON_IsTrue(item);
}

/* A text; NULL when there is none. */
HF_FN const char *hf_text(hf_reader *r, const char *field)
{
    io_json text;
    const cJSON *item = hf_field(r, field, &text);
    if (!item) return NULL;
    if (!cJSON_IsString(item)) return hf_fail(r, "its '%s' is not a name", field), (const char *)NULL;
    return item->valuestring;
}

HF_FN bool hf_is(const hf_reader *r, const char *type) { return strcmp(r->family->type, type) == 0; }

HF_FN bool hf_has(const hf_reader *r, int flag) { return (r->family->flags & flag) != 0; }

HF_FN bool hf_does(const hf_reader *r, int trait) { return (r->family->traits & trait) != 0; }

#endif /* HF_FIELDS_H */
