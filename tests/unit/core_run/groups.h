/* core_run/groups.h - the parts of test_core_run: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_RUN_GROUPS_H
#define CORE_RUN_GROUPS_H

int core_run_layout(void);
int core_run_unwritten(void);
int core_run_scales(void);
int core_run_clocks(void);
int core_run_registers(void);

#endif /* CORE_RUN_GROUPS_H */
