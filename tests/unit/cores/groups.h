/* cores/groups.h - the parts of test_cores: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_GROUPS_H
#define CORES_GROUPS_H

int cores_memory(void);
int cores_races(void);
int cores_clocks(void);
int cores_hosts(void);

#endif /* CORES_GROUPS_H */
