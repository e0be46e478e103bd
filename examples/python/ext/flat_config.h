/* flat_config.h - the config.json of a model as a row: trn_model's fields, and the formats that it is stored in.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * DOES: asks examples/tools/common/io/hf_config.h, which shardplan asks, where the build has cJSON (HAVE_CJSON).
 * DOES NOT: read anything without it; models that are two are read as shardplan reads them without --part.
 */
#ifndef TRNMATH_FLAT_CONFIG_H
#define TRNMATH_FLAT_CONFIG_H

#include "flat_plan.h"

#if defined(HAVE_CJSON)

#include "io/hf_config.h"

/* In the order of hf_kind. */
static const char *const stored_name[HF_KINDS + 1] = { "attention", "weights", "experts", "head", "kv" };

static void config_head(sheet *s)
{
    static const char *const kind[] = { "integer", "integer", "flag", "number", "text", "text", "text" };
    char column[80];
    for (int i = 0; i < MODEL_FIELDS; i++) {
        snprintf(column, sizeof column, "%s:%s", model_field[i].name, kind[model_field[i].kind]);
        cell(s, column);
    }
    for (int i = 0; i <= HF_KINDS; i++) {
        snprintf(column, sizeof column, "formats/%s:text", stored_name[i]);
        cell(s, column);
        snprintf(column, sizeof column, "formats/%s_bits:number", stored_name[i]);
        cell(s, column);
    }
    end_row(s);
}

/* Numbers up to the last that is not 0, with colons between. */
static void cell_list(sheet *s, const int64_t *list, int count)
{
    char text[TRN_MODEL_TABLES * 21] = "";
    size_t at = 0;
    while (count && list[count - 1] == 0) count--;
    for (int i = 0; i < count && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? ":" : "", (long long)list[i]);
    cell(s, text);
}

static void config_row(sheet *s, const hf_config *config)
{
    for (int i = 0; i < MODEL_FIELDS; i++) {
        const field *f = &model_field[i];
        const void *at = (const char *)&config->model + f->offset;
        if (f->kind == FIELD_FLAG)
            cell_flag(s, *(const bool *)at);
        else if (f->kind == FIELD_LIST)
            cell_list(s, (const int64_t *)at, f->count);
        else
            cell_integer(s, *(const int64_t *)at);
    }
    for (int i = 0; i <= HF_KINDS; i++) {
        const hf_stored *stored = i < HF_KINDS ? &config->quantised.kind[i] : &config->quantised.kv;
        const bool there = config->quantised.any && stored->format != TRN_FORMAT_UNSET;
        cell(s, there ? trn_format_name(stored->format) : "");
        cell_number(s, there && stored->bits > 0 ? stored->bits : (double)NAN);
    }
    end_row(s);
}

static trn_status write_config(sheet *s, const char *text, const char *name, bool decodes, trn_error *error)
{
    char why[HF_WHY];
    const hf_ask ask = { .decodes = decodes };
    hf_config *config = (hf_config *)malloc(sizeof *config);
    if (!config) return failed(error, TRN_ENOSPC, "no memory for the configuration");
    const bool read = hf_config_parse_all(text, strlen(text), name, &ask, config, why);
    if (read) {
        config_head(s);
        config_row(s, config);
    }
    free(config);
    return read ? TRN_OK : failed(error, TRN_EINVAL, "%s", why);
}

#else

static trn_status write_config(sheet *s, const char *text, const char *name, bool decodes, trn_error *error)
{
    (void)s, (void)text, (void)name, (void)decodes;
    return failed(error, TRN_EUNSUPPORTED,
                  "this library was built without cJSON and reads no config.json; give the model's numbers, or ask "
                  "shardplan");
}

#endif

#endif /* TRNMATH_FLAT_CONFIG_H */
