/* fp_probe [up|down|zero]: prints what trn_fp_check() finds in this build, perhaps with the rounding mode changed. */
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <trnmath/trn_base.h>

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "nearest";
    const int changed = strcmp(mode, "up") == 0     ? fesetround(FE_UPWARD)
                        : strcmp(mode, "down") == 0 ? fesetround(FE_DOWNWARD)
                        : strcmp(mode, "zero") == 0 ? fesetround(FE_TOWARDZERO)
                                                    : 0;
    const unsigned found = trn_fp_check();
    if (changed != 0) return 2;
    fesetround(FE_TONEAREST);
    printf("%02x %s\n", found, trn_fp_check_text(found));
    return 0;
}
