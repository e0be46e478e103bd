#define XXH_INLINE_ALL
#include <stdio.h>
#include <xxhash.h>

int main(void)
{
    printf("%llx\n", (unsigned long long)XXH3_64bits("trnmath", 7));
    return 0;
}
