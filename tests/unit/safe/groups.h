/* safe/groups.h - the parts of test_safe: each runs its tests and returns how many failed.
 * SPDX-License-Identifier: MIT
 */
#ifndef TAME_GROUPS_H
#define TAME_GROUPS_H

int safe_join(void);

#endif /* TAME_GROUPS_H */
