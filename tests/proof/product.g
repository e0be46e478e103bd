# Why a product is exact in binary32 (trni_products_are_exact in trnmath/array/operand_range.h), for Gappa: numbers of
# DA and DB digits, multiples of 2^XX and 2^YY: of the least exponent that is allowed, less the digits behind the first.
@single = float<ieee_32,ne>;
{ @FLT(a,DA) /\ @FLT(b,DB) /\ @FIX(a,XX) /\ @FIX(b,YY) /\ |a * b| <= 0xffffffp104 -> single(a * b) - a * b in [0,0] }
