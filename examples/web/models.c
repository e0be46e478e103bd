/* models.c - prints models.h, the configurations that the playground's planner offers.
 * SPDX-License-Identifier: MIT
 *
 *     models FILE... >models.h
 *
 * Of a configuration that is two models, each half that can be planned is one. A model is printed as the bytes that it
 * has in memory: they are the same for WebAssembly, and the header does not compile where they cannot be.
 */
#include <stdio.h>

#include "io/hf_config.h"

static void print(const trn_model *m, hf_part part)
{
    unsigned char byte[sizeof *m];
    size_t bytes = sizeof byte;
    memcpy(byte, m, sizeof byte);
    while (bytes && !byte[bytes - 1]) bytes--;
    printf("    { \"%s%s%s\", { {", m->name, part == HF_WHOLE ? "" : ", ", part == HF_WHOLE ? "" : hf_part_name(part));
    for (size_t i = 0; i < bytes; i++) printf("%s%d", i ? "," : "", byte[i]);
    puts("} } },");
}

/* How many models the file is. */
static int print_file(const char *path, char *why)
{
    int found = 0;
    for (int part = HF_WHOLE; part < HF_PARTS; part++) {
        const hf_ask ask = { .part = (hf_part)part };
        hf_config config;
        if (!hf_config_load(path, &ask, &config, why)) continue;
        print(&config.model, (hf_part)part);
        found++;
        if (part == HF_WHOLE) break;
    }
    return found;
}

int main(int argc, char **argv)
{
    char why[HF_WHY];
    int models = 0;
    puts("/* Made by models.c. */\n"
         "#include <trnmath/trn_plan.h>\n"
         "typedef struct web_model_row {\n    const char *name;\n"
         "    union {\n        unsigned char byte[sizeof(trn_model)];\n        trn_model model;\n    } is;\n"
         "} web_model_row;");
    printf(
        "_Static_assert(sizeof(trn_model) == %zu, \"models.h is of a machine that lays out trn_model otherwise\");\n",
        sizeof(trn_model));
    puts("static const web_model_row web_model[] = {");
    for (int i = 1; i < argc; i++) {
        const int found = print_file(argv[i], why);
        if (!found) fprintf(stderr, "models: %s\n", why);
        if (!found) return 2;
        models += found;
    }
    printf("};\nenum { WEB_MODELS = %d };\n", models);
    return ferror(stdout) || fflush(stdout) ? 2 : 0;
}
