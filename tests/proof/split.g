# Why FP32 in halves loses nothing (trni_split in trnmath/array/systolic.h), for Gappa. x: a significand, 24 bits; of
# another exponent all is scaled by a power of two. high: without its last KEPT bits, low: these. Products of halves
# have 24 bits at most.
x = fixed<-23,dn>(X);
y = fixed<-23,dn>(Y);
high = fixed<-HH,zr>(x);
low = x - high;
high2 = fixed<-HH,zr>(y);
low2 = y - high2;
@single = float<ieee_32,ne>;
{ x in [1,2] /\ y in [1,2] ->
  @FIX(low,-23) /\ low in [0,1b-HH] /\ single(high * high2) - high * high2 in [0,0] /\
  single(low * high2) - low * high2 in [0,0] /\ single(low * low2) - low * low2 in [0,0] }
