# Why a dot product of pairs has the bits of two fused multiply-adds (trnmath/array/matmul_pairs.h), for Gappa.
# X, Y: the least exponents of a strip's and a panel's numbers that are no zeros, X + Y the least that is allowed.
# A number of BF16 has 8 bits: it is a multiple of 2^(exponent - 7). c: what a chain holds, a sum of the same kind.
#
# From there: products are multiples of 2^-126, and so are sums before and after they are rounded, of two steps of a
# chain, and of a double row, whose pair begins at zero. What is such a multiple is zero or not subnormal (subnormal.g).
@single = float<ieee_32,ne>;

p = a * b;
q = d * e;
first = single(c + p);
second = single(first + q);
row = single(single(p) + q);
whole = single(c + row);

{ @FIX(a,XX7) /\ @FIX(d,XX7) /\ @FIX(b,YY7) /\ @FIX(e,YY7) /\ @FIX(c,-126) /\
  |a| <= 1b128 /\ |b| <= 1b128 /\ |d| <= 1b128 /\ |e| <= 1b128 /\ |c| <= 1b128
  -> @FIX(p,-126) /\ @FIX(first,-126) /\ @FIX(second,-126) /\ @FIX(row,-126) /\ @FIX(whole,-126) }
