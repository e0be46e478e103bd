/* vector.h - norms, softmax and functions, as the engines have them and as the reference has them: see mr_ops.
 * SPDX-License-Identifier: MIT
 */
#ifndef MODELRUN_VECTOR_H
#define MODELRUN_VECTOR_H

#include "engine.h"

void mr_engine_rms_norm(mr_run *run, const float *x, const float *weight, double eps, int64_t rows, int64_t n,
                        float *y);
void mr_engine_layer_norm(mr_run *run, const float *x, const float *weight, const float *bias, int64_t rows, int64_t n,
                          float *y);
void mr_engine_softmax(mr_run *run, float *x, const float *sink, double scale, int64_t rows, int64_t n);
void mr_engine_function(mr_run *run, trn_act act, float *x, int64_t n);

void mr_reference_rms_norm(mr_run *run, const float *x, const float *weight, double eps, int64_t rows, int64_t n,
                           float *y);
void mr_reference_layer_norm(mr_run *run, const float *x, const float *weight, const float *bias, int64_t rows,
                             int64_t n, float *y);
void mr_reference_softmax(mr_run *run, float *x, const float *sink, double scale, int64_t rows, int64_t n);
void mr_reference_function(mr_run *run, trn_act act, float *x, int64_t n);

#endif /* MODELRUN_VECTOR_H */
