/* run.h - what the command does with its options.
 * SPDX-License-Identifier: MIT
 */
#ifndef MODELRUN_RUN_H
#define MODELRUN_RUN_H

#include "engine.h"

enum { MR_SETTINGS = 64 };

typedef struct mr_options {
    const char *folder, *text, *tokens, *csv, *json, *html, *logits, *random, *write;
    int settings;
    mr_setting setting[MR_SETTINGS];
    int64_t context, limit, generate;
    double threshold, max_kl; /* negative: any */
    bool list, schema, pack, certify;
    trn_system system; /* --certify: what cures cost is modelled on it */
    quant_asked asked;
} mr_options;

/* ---- the text as tokens: tokens.c ---- */

typedef struct mr_text {
    int32_t *token;
    int64_t tokens;
    int64_t *first; /* [sequences + 1]: where each sequence begins, and the last one ends */
    int64_t sequences;
    struct tok *tokenizer; /* NULL: the text was numbers */
} mr_text;

bool mr_text_read(const mr_options *o, int64_t vocab, mr_text *text, char *why);
bool mr_tokens_parse(const char *bytes, size_t size, const char *name, int64_t vocab, mr_text *text, char *why);
void mr_text_free(mr_text *text);
/* What a reader sees of tokens: words where there is a tokenizer, else numbers. */
void mr_text_print(FILE *out, const mr_text *text, const int32_t *token, int64_t count);

/* ---- the comparison: compare.c ---- */

/* All settings on all of the text; logits: NULL, or the last setting's, [tokens, vocab]. */
bool mr_compare(mr_model *model, const mr_options *o, const mr_text *text, mr_result *result, float *logits, char *why);
void mr_result_free(mr_result *result);
uint64_t mr_peak_bytes(void); /* the most memory that this process had, mapped files included */

/* ---- continuing: generate.c ---- */

int mr_generate(mr_model *model, const mr_options *o, const mr_text *text);

/* ---- what a token's bits depend on: certify.c ---- */

int mr_certify(mr_model *model, const mr_options *o, const mr_text *text);
void mr_certified_schema(void);

/* ---- random weights: random.c ---- */

bool mr_write_random(const char *config, const char *folder, char *why);
/* The same in a temporary folder, whose name is written to path [size]; mr_remove_random removes it. */
bool mr_temporary_random(const char *config, char *path, size_t size, char *why);
void mr_remove_random(const char *path);

/* ---- reports: report.c ---- */

void mr_report_text(FILE *out, const mr_result *result);
void mr_report_csv(FILE *out, const void *result);
void mr_report_json(FILE *out, const void *result);
void mr_report_schema(void);
void mr_report_settings(void);

#endif /* MODELRUN_RUN_H */
