/* base/groups.h - the parts of test_base: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_GROUPS_H
#define BASE_GROUPS_H

int base_parse(void);
int base_hosts(void);
int base_fit(void);
int base_workspace(void);

#endif /* BASE_GROUPS_H */
