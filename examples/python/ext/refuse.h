/* refuse.h - how the extension says no: nki.Error with one sentence.
 * Part of core.c. SPDX-License-Identifier: MIT
 */
#ifndef TRNPY_REFUSE_H
#define TRNPY_REFUSE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *nki_error;

static PyObject *refuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyErr_FormatV(nki_error, format, list);
    va_end(list);
    return NULL;
}

#endif /* TRNPY_REFUSE_H */
