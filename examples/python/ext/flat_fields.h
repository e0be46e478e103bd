/* flat_fields.h - "layers=32,hidden=4096": the fields of a struct by name, from text.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * DOES: reads each setting into the field of its name; says which setting is wrong, and what would have been taken.
 * DOES NOT: know what a number means (the planner checks that).
 */
#ifndef TRNMATH_FLAT_FIELDS_H
#define TRNMATH_FLAT_FIELDS_H

#include <errno.h>
#include <stdlib.h>

#include "flat_words.h"

typedef enum field_kind {
    FIELD_LONG, /* int64_t */
    FIELD_INT,
    FIELD_FLAG,   /* bool: 0 or 1 */
    FIELD_REAL,   /* double */
    FIELD_FORMAT, /* trn_format, by its name */
    FIELD_LIST,   /* int64_t [count]: "512:256:64" */
    FIELD_CHOICE  /* an enumeration of `count` names */
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t offset;
    int count;
    const char *(*name_of)(int i);
} field;

#define FIELD(type, name, kind)                                                                                        \
    {                                                                                                                  \
#name, kind, offsetof(type, name), 0, NULL                                                                     \
    }
#define FIELD_MANY(type, name, n)                                                                                      \
    {                                                                                                                  \
#name, FIELD_LIST, offsetof(type, name), n, NULL                                                               \
    }

static const char *field_kind_name(field_kind kind)
{
    static const char *const name[] = { "integer", "integer", "flag", "number", "format", "list", "name" };
    return name[kind];
}

static bool read_whole(const char *text, long long low, long long high, long long *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0 && *value >= low && *value <= high;
}

static bool read_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*value);
}

/* Numbers with colons between, at most count of them. */
static bool read_list(char *text, int count, int64_t *to)
{
    long long value;
    for (int i = 0; i < count; i++) {
        const size_t length = strcspn(text, ":");
        const bool last = text[length] == 0;
        text[length] = 0;
        if (!read_whole(text, INT64_MIN, INT64_MAX, &value)) return false;
        to[i] = value;
        if (last) return true;
        text += length + 1;
    }
    return false;
}

static bool read_choice(const char *text, const field *f, void *at)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(text, f->name_of(i)) == 0) return memcpy(at, &i, sizeof i) != NULL; /* enumerations are as wide */
    return false;
}
_Static_assert(sizeof(trn_job) == sizeof(int) && sizeof(trn_format) == sizeof(int), "an enumeration is no int");

static bool read_value(char *text, const field *f, void *base)
{
    void *const at = (char *)base + f->offset;
    long long whole = 0;
    trn_format format;
    bool flag;
    switch (f->kind) {
    case FIELD_LONG: return read_whole(text, INT64_MIN, INT64_MAX, &whole) && ((*(int64_t *)at = whole), true);
    case FIELD_INT: return read_whole(text, INT_MIN, INT_MAX, &whole) && ((*(int *)at = (int)whole), true);
    case FIELD_FLAG:
        if (!read_whole(text, 0, 1, &whole)) return false;
        flag = whole == 1;
        memcpy(at, &flag, sizeof flag);
        return true;
    case FIELD_REAL: return read_real(text, (double *)at);
    case FIELD_FORMAT:
        if (trn_format_read(&format, text, NULL) != TRN_OK) return false;
        memcpy(at, &format, sizeof format);
        return true;
    case FIELD_LIST: return read_list(text, f->count, (int64_t *)at);
    case FIELD_CHOICE: return read_choice(text, f, at);
    default: return false;
    }
}

/* One list of fields, and the struct that has them. */
typedef struct field_set {
    const field *field;
    int count;
    void *base;
} field_set;

static const field *field_of(const field_set *set, int sets, const char *name, void **base)
{
    for (int s = 0; s < sets; s++)
        for (int i = 0; i < set[s].count; i++)
            if (strcmp(set[s].field[i].name, name) == 0) return (*base = set[s].base), &set[s].field[i];
    return NULL;
}

static trn_status read_setting(char *setting, const field_set *set, int sets, const char *what, trn_error *error)
{
    void *base = NULL;
    char *value = strchr(setting, '=');
    if (!value) return failed(error, TRN_EINVAL, "%s: '%.40s' is no setting such as name=value", what, setting);
    *value++ = 0;
    const field *f = field_of(set, sets, setting, &base);
    if (!f) return failed(error, TRN_EINVAL, "%s has no field '%.40s'", what, setting);
    char shown[44];
    copy_text(shown, sizeof shown, value);
    if (read_value(value, f, base)) return TRN_OK;
    return failed(error, TRN_EINVAL, "%s: %s is '%s', expected %s %s", what, f->name, shown,
                  f->kind == FIELD_INT || f->kind == FIELD_LONG ? "an" : "a", field_kind_name(f->kind));
}

/* Settings with commas between; null and "" are none. */
static trn_status read_fields(const char *text, const field_set *set, int sets, const char *what, trn_error *error)
{
    char setting[1200];
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        if (length >= sizeof setting)
            return failed(error, TRN_EINVAL, "%s: a setting has %zu characters", what, length);
        memcpy(setting, text, length);
        setting[length] = 0;
        const trn_status status = read_setting(setting, set, sets, what, error);
        if (status != TRN_OK) return status;
        text += length + (text[length] == ',');
    }
    return TRN_OK;
}

static void write_fields(sheet *s, const field *f, int count)
{
    for (int i = 0; i < count; i++) {
        cell(s, f[i].name);
        cell(s, field_kind_name(f[i].kind));
        end_row(s);
    }
}

#endif /* TRNMATH_FLAT_FIELDS_H */
