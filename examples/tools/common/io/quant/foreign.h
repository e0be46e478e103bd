/* foreign.h - quantised formats that are not read here, known by a method's name or by a tensor's.
 * SPDX-License-Identifier: MIT
 *
 *     char text[QUANT_FOREIGN];
 *     int place;
 *     if (quant_foreign(&map, &place, text)) printf("%s: it is %s\n", map.tensor[place]->name, text);
 *
 * CONTENTS
 *     quant_is_gguf           a GGUF file, or a directory that has such and no .safetensors
 *     quant_foreign           is there such a thing, of what no matrix that is understood has taken?
 */
#ifndef IO_QUANT_FOREIGN_H
#define IO_QUANT_FOREIGN_H

#include "quant.h"

enum { QUANT_FOREIGN = 128 };
#define QUANT_AUTO_ROUND "AutoRound's own order (exported as auto_round:auto_gptq or :auto_awq it is read)"

/* By its first bytes. What cannot be read is none: whoever reads it in earnest says why. Pipes keep theirs. */
IO_FN bool quant_file_is_gguf(const char *path)
{
    io_map map;
    char why[IO_WHY];
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || !io_map_open(path, &map, why)) return false;
    const bool is = map.size >= 4 && memcmp(map.bytes, "GGUF", 4) == 0;
    io_map_close(&map);
    return is;
}

IO_FN bool quant_is_gguf(const char *path)
{
    bool gguf = false, weights = false;
    DIR *folder = ckpt_folder(path) ? opendir(path) : NULL;
    if (!folder) return !ckpt_folder(path) && quant_file_is_gguf(path);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        gguf = gguf || ckpt_ends(e->d_name, ".gguf");
        weights = weights || ckpt_ends(e->d_name, ".safetensors");
    }
    closedir(folder);
    return gguf && !weights;
}

IO_FN const char *quant_foreign_method(const quant_said *s)
{
    static const struct {
        const char *method, *format;
    } row[] = { { "gptq", "GPTQ" },     { "awq", "AWQ" },          { "bitsandbytes", "bitsandbytes" },
                { "hqq", "HQQ" },       { "aqlm", "AQLM" },        { "quip", "QuIP#" },
                { "exl2", "EXL2" },     { "exl3", "EXL3" },        { "vptq", "VPTQ" },
                { "spqr", "SpQR" },     { "eetq", "EETQ" },        { "auto-round", QUANT_AUTO_ROUND },
                { "quanto", "Quanto" }, { "torchao", "torchao" },  { "intel/auto-round", QUANT_AUTO_ROUND },
                { "higgs", "HIGGS" },   { "bitnet", "BitNet" },    { "quip_sharp", "QuIP#" },
                { "gguf", "GGUF" },     { "fp_quant", "FP-Quant" } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(s->method, row[i].method) == 0) return row[i].format;
    return NULL;
}

typedef struct quant_sign {
    const char *glob, *format;
} quant_sign;

/* A tensor of such a name is in no other format; the surest come first. NULL: there are no more. */
IO_FN const quant_sign *quant_foreign_sign(int i)
{
    static const quant_sign row[] = { { "*.g_idx", "GPTQ" },
                                      { "*.SCB", "bitsandbytes" },
                                      { "*.absmax", "bitsandbytes" },
                                      { "*.quant_state.*", "bitsandbytes" },
                                      { "*.W_q", "HQQ" },
                                      { "*.codebooks", "AQLM" },
                                      { "*.Qidxs", "QuIP#" },
                                      { "*.q_weight", "EXL2" },
                                      { "*.trellis", "EXL3" },
                                      { "*.centroids.weight", "VPTQ" },
                                      { "*.dense_weights", "SpQR" },
                                      { "*.pre_quant_scale", "AWQ of ModelOpt" },
                                      { "*.qzeros", "AWQ" },
                                      { "*.qweight", "integers packed as AWQ and GPTQ have them" },
                                      { "*.weight_shape", "packed integers of compressed-tensors" },
                                      { "*.bitmask", "sparse matrices of compressed-tensors" } };
    return i >= 0 && i < (int)(sizeof row / sizeof row[0]) ? &row[i] : NULL;
}

/* Integers where a layer's weights should be. */
IO_FN bool quant_is_packed_somehow(const st_tensor *t)
{
    static const char *const type[] = { "U8", "I8", "I16", "U16", "I32", "U32", "F4", "F6_E2M3", "F6_E3M2" };
    bool integer = false;
    for (size_t i = 0; i < sizeof type / sizeof type[0]; i++) integer = integer || quant_is(t, type[i]);
    return integer && t->rank >= 2 && !strstr(t->name, "scale") &&
           (ckpt_ends(t->name, ".weight") || ckpt_ends(t->name, "._data") || strstr(t->name, "weight_packed") ||
            strstr(t->name, "qdata") || strstr(t->name, "proj") || strstr(t->name, "experts"));
}

IO_FN bool quant_is_free(const quant_map *m, int i) { return m->owner[i] < 0 && m->number[i] < 0; }

/* text: a phrase that names the format; *place: the tensor that says so. */
IO_FN bool quant_foreign(const quant_map *m, int *place, char text[QUANT_FOREIGN])
{
    const char *method = quant_foreign_method(m->said);
    const quant_sign *sign;
    for (int i = 0; (sign = quant_foreign_sign(i)) != NULL; i++)
        for (*place = 0; *place < m->tensors; ++*place)
            if (quant_is_free(m, *place) && pattern_glob(sign->glob, m->tensor[*place]->name))
                return snprintf(text, QUANT_FOREIGN, "%s", method ? method : sign->format), true;
    for (*place = 0; *place < m->tensors; ++*place) {
        const st_tensor *t = m->tensor[*place];
        if (!quant_is_free(m, *place)) continue;
        if (strstr(t->type, "FNUZ")) return snprintf(text, QUANT_FOREIGN, "FP8 of AMD, FNUZ"), true;
        if (!quant_is_packed_somehow(t)) continue;
        snprintf(text, QUANT_FOREIGN, "%s of a format that is not known%s%.40s", t->type,
                 m->said->method[0] ? ", quant_method " : "", m->said->method);
        if (method) snprintf(text, QUANT_FOREIGN, "%s", method);
        return true;
    }
    return false;
}

#endif /* IO_QUANT_FOREIGN_H */
