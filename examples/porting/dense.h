/* dense.h - a linear layer as Trainium's Tensor engine computes it, for programs that keep their weights in float32.
 * SPDX-License-Identifier: MIT
 *
 *     dense(out, x, w, NULL, 1, n, d);       instead of a loop over w[d, n] and x[n]
 *
 * DOES: rounds x and w to BF16, multiplies with trn_matmul (float32 sums in the engine's order), adds the bias. What w
 *     becomes is made once for each address and kept: 2 bytes a weight, and 6 more once it meets several rows.
 * DOES NOT: notice that weights change (dense_changed() says so), or let several threads call at once: a call uses all
 *     threads by itself.
 */
#ifndef DENSE_H
#define DENSE_H

/* out [rows, outs] = x [rows, in] times w [outs, in] transposed, plus bias [outs] (NULL: none). All packed rows. A
 * failure (memory) ends the program after one sentence. */
void dense(float *out, const float *x, const float *w, const float *bias, int rows, int in, int outs);

void dense_changed(void); /* all weights may be others now; their memory is used again */
void dense_free(void);    /* forgets everything */

#endif /* DENSE_H */
