/* core_costs/groups.h - the parts of test_core_costs: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_COSTS_GROUPS_H
#define CORE_COSTS_GROUPS_H

int core_costs_products(void);
int core_costs_transfers(void);
int core_costs_sums(void);
int core_costs_paces(void);

#endif /* CORE_COSTS_GROUPS_H */
