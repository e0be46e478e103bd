# No multiple of 2^-126 lies between 2^-149 and the largest subnormal number of binary32: where all sums are such
# multiples (pairs.g) there is none to be flushed.
{ @FIX(s,-126) /\ |s| in [1b-149, 0x7fffffp-149] -> 1 in [2,2] }
