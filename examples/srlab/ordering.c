/* ordering.c - does the published ordering hold? Nearest even stalls, stochastic rounding and Kahan's sums follow f32.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>

static double mean_of(const sr_lab *lab, const char *name, int rate)
{
    const int arm = sr_place_of(lab->settings, sr_find_arm(name));
    return arm < 0 ? (double)NAN : sr_spread_of(lab, arm, rate, sr_final_loss).mean;
}

/* It holds when bf16-rne ends above f32, and bf16-sr and bf16-kahan differ from f32 by less than half as much. */
sr_verdict sr_judge_ordering(const sr_lab *lab, int rate)
{
    sr_verdict v;
    v.f32 = mean_of(lab, "f32", rate);
    v.rne = mean_of(lab, "bf16-rne", rate);
    v.sr = mean_of(lab, "bf16-sr", rate);
    v.kahan = mean_of(lab, "bf16-kahan", rate);
    v.known = isfinite(v.f32) && isfinite(v.rne) && isfinite(v.sr);
    const double gap = v.rne - v.f32;
    v.holds = v.known && gap > 0 && fabs(v.sr - v.f32) < gap / 2 &&
              (isnan(v.kahan) || fabs(v.kahan - v.f32) < gap / 2);
    return v;
}
