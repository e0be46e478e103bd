/* recipe.c - the lists of modules in llm-compressor's recipe.yaml: how a model was quantised, where config.json does
 * not say it.
 * SPDX-License-Identifier: MIT
 *
 * Of YAML this takes what such files are made of: "ignore:" and "targets:" anywhere, followed by one name, by a list in
 * brackets over any number of lines, or by lines that begin with a dash; names plain, in 'quotes' or in "quotes".
 */
#define _POSIX_C_SOURCE 200809L

#include "rules.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 1024 };

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r') at++;
    return at;
}

/* Past a comment, and past the ends of lines where `lines` says so. */
static const char *skip(const char *at, bool lines)
{
    for (;;) {
        at = skip_blanks(at);
        if (*at == '#')
            at += strcspn(at, "\n");
        else if (lines && *at == '\n')
            at++;
        else
            return at;
    }
}

/* A name, which ends where its quotes do, or before one of `ends` or a comment. NULL: it does not end, or is longer. */
static const char *take_name(const char *at, const char *ends, char name[NAME])
{
    const char quote = *at == '\'' || *at == '"' ? *at++ : '\0';
    size_t n = 0;
    while (*at && n < NAME - 1) {
        const bool doubled = quote == '\'' && at[0] == quote && at[1] == quote, escaped = quote == '"' && *at == '\\';
        const bool comment = !quote && *at == '#' && (at[-1] == ' ' || at[-1] == '\t');
        if ((doubled || escaped) && at[1])
            at++;
        else if (quote ? *at == quote : comment || *at == '\n' || strchr(ends, *at) != NULL)
            break;
        name[n++] = *at++;
    }
    while (!quote && n > 0 && strchr(" \t\r", name[n - 1])) n--;
    name[n] = '\0';
    if (n >= NAME - 1 || (quote && *at != quote)) return NULL;
    return at + (quote != '\0');
}

static bool append(cJSON *list, const char *name)
{
    cJSON *item = cJSON_CreateString(name);
    if (item && cJSON_AddItemToArray(list, item)) return true;
    cJSON_Delete(item);
    return false;
}

/* [a, "b", c]; NULL: it does not end. */
static const char *take_bracket(const char *at, cJSON *list)
{
    char name[NAME];
    for (at = skip(at + 1, true); *at && *at != ']';) {
        at = take_name(at, ",]", name);
        if (!at || !append(list, name)) return NULL;
        at = skip(at, true);
        if (*at == ',')
            at = skip(at + 1, true);
        else if (*at != ']')
            return NULL;
    }
    return *at == ']' ? at + 1 : NULL;
}

/* Lines of "- name". */
static const char *take_dashes(const char *at, cJSON *list)
{
    char name[NAME];
    for (const char *next = skip(at, true); next[0] == '-' && next[1] == ' '; next = skip(at, true)) {
        at = take_name(skip_blanks(next + 1), "", name);
        if (!at || !append(list, name)) return NULL;
    }
    return at;
}

static const char *take_value(const char *at, cJSON *list)
{
    char name[NAME];
    at = skip(at, false);
    if (*at == '[') return take_bracket(at, list);
    if (*at == '\n') return take_dashes(at, list);
    at = take_name(at, "", name);
    return at && strcmp(name, "null") != 0 && strcmp(name, "~") != 0 && !append(list, name) ? NULL : at;
}

/* The key that a line begins with, after blanks and a dash; NULL: another one. */
static const char *key_of(const char **line)
{
    static const char *const key[] = { "ignore", "targets" };
    const char *at = skip_blanks(*line);
    if (at[0] == '-' && at[1] == ' ') at = skip_blanks(at + 1);
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        const size_t n = strlen(key[i]);
        if (strncmp(at, key[i], n) == 0 && at[n] == ':') return *line = at + n + 1, key[i];
    }
    return NULL;
}

cJSON *fc_recipe_parse(const char *text)
{
    cJSON *lists = cJSON_CreateObject();
    bool ok = lists != NULL;
    for (const char *at = text; ok && at && *at;) {
        const char *key = key_of(&at);
        cJSON *list = key ? cJSON_GetObjectItemCaseSensitive(lists, key) : NULL;
        if (key && !list) list = cJSON_AddArrayToObject(lists, key);
        if (key) at = list ? take_value(at, list) : NULL;
        ok = at != NULL;
        if (ok) at += strcspn(at, "\n");
        if (ok && *at) at++;
    }
    if (ok) return lists;
    cJSON_Delete(lists);
    return NULL;
}
