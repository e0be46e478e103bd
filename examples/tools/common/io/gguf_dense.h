/* gguf_dense.h - a GGUF file's tensors without their blocks, as .safetensors that every other reader takes.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/gguf_dense.h"
 *     gguf_file f;
 *     char why[IO_WHY];
 *     if (!gguf_open("model-Q4_K_M.gguf", &f, why) || !gguf_write_dense(&f, "model.safetensors", why))
 *         return fprintf(stderr, "%s\n", why), 2;
 *     gguf_close(&f);
 *
 * | GGUF                                   | safetensors                                  |
 * |----------------------------------------|----------------------------------------------|
 * | F32, F16, BF16, F64, I8, I16, I32, I64 | the same bytes                               |
 * | blocks that gguf_blocks.h reads        | BF16, the nearest of what the block is worth |
 * | other blocks                           | the file is refused, by name                 |
 *
 * Names, and the order of rows, are llama.cpp's (see the TRAP in gguf.h). Metadata stays behind, but for
 * general.architecture.
 *
 * DOES: everything is looked at before a file exists; row by row, in little memory.
 * DOES NOT: rename tensors, or write a config.json or a tokenizer.
 *
 * CONTENTS
 *     gguf_dense_type           what a tensor becomes
 *     gguf_write_dense          the file
 */
#ifndef IO_GGUF_DENSE_H
#define IO_GGUF_DENSE_H

#include <trnmath/trn_convert.h>

#include "gguf_blocks.h"
#include "safetensors.h"

/* NULL for blocks that cannot be read. What is a type of both stays as it is. */
IO_FN const char *gguf_dense_type(const gguf_tensor *t)
{
    const gguf_type *type = gguf_type_of(t->type);
    if (type->elements == 1) return type->name;
    return gguf_decoder(t->type) ? "BF16" : NULL;
}

IO_FN bool gguf_dense_list(const gguf_file *f, st_tensor *list, char *why)
{
    for (int i = 0; i < f->count; i++) {
        const gguf_tensor *t = &f->tensor[i];
        const char *type = gguf_dense_type(t);
        gguf_matrix m;
        if (!type) return gguf_matrix_open(t, &m, why);
        list[i] = (st_tensor){ .name = t->name, .rank = t->rank, .place = i };
        snprintf(list[i].type, sizeof list[i].type, "%s", type);
        for (int k = 0; k < t->rank; k++) list[i].shape[k] = t->shape[k];
    }
    st_arrange(list, f->count);
    return true;
}

/* A tensor of blocks. */
IO_FN bool gguf_dense_rows(const gguf_tensor *t, st_writer *w, char *why)
{
    gguf_matrix m;
    if (!gguf_matrix_open(t, &m, why)) return false;
    float *x = (float *)malloc(((size_t)m.columns + 1) * sizeof *x);
    unsigned char *out = (unsigned char *)malloc(2 * (size_t)m.columns + 1);
    bool ok = (x && out) || io_fail(why, t->name, "there is not enough memory for a row");
    for (int64_t r = 0; r < m.rows && ok; r++) {
        gguf_row(&m, r, x);
        for (int64_t c = 0; c < m.columns; c++) {
            const uint16_t code = trn_bf16_from_f32(x[c]);
            out[2 * c] = (unsigned char)code;
            out[2 * c + 1] = (unsigned char)(code >> 8);
        }
        ok = st_write(w, out, 2 * (size_t)m.columns, why);
    }
    free(x);
    free(out);
    return ok;
}

IO_FN bool gguf_dense_data(const gguf_file *f, const st_tensor *list, st_writer *w, char *why)
{
    for (int i = 0; i < f->count; i++) {
        const gguf_tensor *t = &f->tensor[list[i].place];
        const bool same = gguf_type_of(t->type)->elements == 1;
        if (!(same ? st_write(w, t->data, (size_t)t->bytes, why) : gguf_dense_rows(t, w, why))) return false;
    }
    return true;
}

/* false with a sentence; there is no new file then. */
IO_FN bool gguf_write_dense(const gguf_file *f, const char *path, char *why)
{
    const char *text = "";
    size_t size = 0;
    char name[256] = "";
    const char *const metadata[4] = { "format", "pt", "general.architecture", name };
    const bool said = gguf_text(gguf_key(f, "general.architecture"), &text, &size) && size < sizeof name &&
                      io_utf8(text, size) && !memchr(text, '\0', size);
    if (said) memcpy(name, text, size);
    st_tensor *list = (st_tensor *)calloc((size_t)f->count + 1, sizeof *list);
    st_writer w;
    bool ok = list || io_fail(why, path, "there is not enough memory for its header");
    ok = ok && gguf_dense_list(f, list, why) && st_create(path, list, f->count, metadata, said ? 2 : 1, &w, why);
    if (ok) {
        ok = gguf_dense_data(f, list, &w, why) && st_finish(&w, why);
        if (!ok) st_abandon(&w);
    }
    free(list);
    return ok;
}

#endif /* IO_GGUF_DENSE_H */
