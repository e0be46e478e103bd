/* report.h - what the reports share.
 * SPDX-License-Identifier: MIT
 */
#ifndef SRLAB_REPORT_H
#define SRLAB_REPORT_H

#include "srlab.h"

/* "rate 0.001: ...: the published ordering holds", or "" where an arm is missing. */
void sr_say_verdict(char *text, size_t size, const sr_lab *lab, int rate);

app_table sr_shown_table(const sr_lab *lab); /* the summary as people read it; app_table_free it */

#endif /* SRLAB_REPORT_H */
