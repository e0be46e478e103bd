/* reading.h - fields of a config.json, for config.c and positions.c.
 * SPDX-License-Identifier: MIT
 */
#ifndef MODELRUN_READING_H
#define MODELRUN_READING_H

#include "model.h"

#include "io/hf_config.h"

bool mr_is(const mr_config *c, int flag); /* of its family */

double mr_real(hf_reader *r, const char *field, double low, double high, double missing);
const char *mr_word(hf_reader *r, const char *field, const char *missing);
/* true or false, or a number, which is true unless it is 0. */
bool mr_truth(hf_reader *r, const char *field, bool missing);
/* The field is there and is null. */
bool mr_is_null(const hf_reader *r, const char *field);
/* A list, or NULL when there is none. */
const cJSON *mr_list(hf_reader *r, const char *field);
/* An object of the file, to be read as the file is; false when there is none. */
bool mr_inside(hf_reader *r, const char *field, hf_reader *object);

/* How positions turn heads, layer by layer, and how queries grow with them: positions.c. */
void mr_read_positions(hf_reader *r, mr_config *c);

#endif /* MODELRUN_READING_H */
