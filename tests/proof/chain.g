# Why no addition of a certified chain rounds (trnmath/array/unit_words.h), for Gappa. What a chain holds and what joins
# it are multiples of 2^UNIT, and no sum is above TOP = 2^(UNIT + 24).
@single = float<ieee_32,ne>;
s = single(S);
p = single(P);
{ @FIX(s,UNIT) /\ @FIX(p,UNIT) /\ |s + p| <= TOP -> single(s + p) - (s + p) in [0,0] }
