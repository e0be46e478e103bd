#include <trnmath/trnmath.h>
