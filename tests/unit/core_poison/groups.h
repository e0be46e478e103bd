/* core_poison/groups.h - the parts of test_core_poison: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_POISON_GROUPS_H
#define CORE_POISON_GROUPS_H

int core_poison_classes(void);
int core_poison_culprits(void);

#endif /* CORE_POISON_GROUPS_H */
