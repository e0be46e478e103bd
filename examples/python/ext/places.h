/* places.h - which line of the kernel made a tile or a tensor, for sentences.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: finds the innermost line that lies outside of this package; keeps it for every allocation of a core, with its
 *     shape; puts both behind a core's sentence about an operand.
 * DOES NOT: know the line that a sentence is raised at (simulator.py has it from the traceback).
 */
#ifndef TRNPY_PLACES_H
#define TRNPY_PLACES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "refuse.h"

#include <trnmath/trn_tensor.h>

typedef struct place {
    char file[48];
    int line; /* 0: not known */
    trn_tensor shape;
    char name[64];
} place;

enum { PLACE_TEXT = 256 };

static PyObject *places_inside; /* a tuple: what the names of this package's files begin with */

static bool place_is_inside(PyObject *file)
{
    Py_ssize_t bytes, length;
    const char *name = PyUnicode_AsUTF8AndSize(file, &bytes);
    for (Py_ssize_t i = 0; name && places_inside && i < PyTuple_GET_SIZE(places_inside); i++) {
        const char *prefix = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(places_inside, i), &length);
        if (prefix && length <= bytes && !memcmp(prefix, name, (size_t)length)) return true;
    }
    return false;
}

/* The line of a frame. Python walks a table of the whole function for it; a place is asked for again in each turn of a
 * loop, so that lines are kept, and the code that they are of with them. */
static int place_line(PyFrameObject *f, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030b0000
    static struct {
        PyCodeObject *code;
        int at, line;
    } known[512];
    const int at = PyFrame_GetLasti(f);
    const size_t i = ((uintptr_t)code / 64 + (size_t)at / 2) % (sizeof known / sizeof *known);
    if (known[i].code != code || known[i].at != at) {
        Py_INCREF(code);
        Py_XSETREF(known[i].code, code);
        known[i].at = at;
        known[i].line = PyFrame_GetLineNumber(f);
    }
    return known[i].line;
#else
    (void)code;
    return PyFrame_GetLineNumber(f);
#endif
}

/* Where the kernel is now. */
static void place_now(place *p)
{
    PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
    p->line = 0;
    p->file[0] = 0;
    while (f) {
        PyCodeObject *code = PyFrame_GetCode(f);
        const bool inside = place_is_inside(code->co_filename);
        if (!inside) {
            const char *name = PyUnicode_AsUTF8(code->co_filename), *last = name ? strrchr(name, '/') : NULL;
            snprintf(p->file, sizeof p->file, "%s", last ? last + 1 : name ? name : "");
            p->line = place_line(f, code);
        }
        Py_DECREF(code);
        PyFrameObject *back = inside ? PyFrame_GetBack(f) : NULL;
        Py_DECREF(f);
        f = back;
    }
}

/* "float32 [128, 64]" */
static int shape_text(char *text, size_t capacity, const trn_tensor *t)
{
    int used = snprintf(text, capacity, "%s [", trn_format_name(t->format));
    for (int i = 0; i < t->rank && used < (int)capacity; i++)
        used += snprintf(text + used, capacity - (size_t)used, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (used < (int)capacity) used += snprintf(text + used, capacity - (size_t)used, "]");
    return used;
}

/* "; 'tile' is float32 [128, 64], made in kernel.py, line 12" */
static void place_text(char text[PLACE_TEXT], const place *p)
{
    char shape[96];
    text[0] = 0;
    if (!p || !p->shape.rank) return;
    shape_text(shape, sizeof shape, &p->shape);
    if (p->line)
        snprintf(text, PLACE_TEXT, "; '%s' is %s, made in %s, line %d", p->name, shape, p->file, p->line);
    else
        snprintf(text, PLACE_TEXT, "; '%s' is %s", p->name, shape);
}

#endif /* TRNPY_PLACES_H */
