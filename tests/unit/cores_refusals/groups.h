/* cores_refusals/groups.h - the parts of test_cores_refusals: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_REFUSALS_GROUPS_H
#define CORES_REFUSALS_GROUPS_H

int cores_refusals_pairs(void);
int cores_refusals_meetings(void);
int cores_refusals_strangers(void);

#endif /* CORES_REFUSALS_GROUPS_H */
