# Why a product of two binary32 numbers is exact in a double (trnmath/array/systolic_lanes.h), for Gappa.
@single = float<ieee_32,ne>;
a = single(A);
b = single(B);
{ |a| <= 1b128 /\ |b| <= 1b128 -> float<FORMAT,ne>(a * b) - a * b in [0,0] }
