// The meaning of a product's specialisation constant TYPE: a number of kernels/quant/block_types.h,
// plus kPacked for weights in the layout of packed_rows.h. Everything here is known when a pipeline
// is made, so one module serves all types and each pipeline holds the code of one.
layout(constant_id = 1) const uint TYPE = 20;

const uint kPacked = 256;
const uint kF32 = 1;
const uint kF16 = 2;
const uint kBF16 = 3;
const uint kQ4_0 = 16;
const uint kQ4_1 = 17;
const uint kQ5_0 = 18;
const uint kQ5_1 = 19;
const uint kQ8_0 = 20;
const uint kQ2_K = 24;
const uint kQ3_K = 25;
const uint kQ4_K = 26;
const uint kQ5_K = 27;
const uint kQ6_K = 28;
const uint kIQ4_NL = 32;
const uint kIQ4_XS = 33;
const uint kTQ1_0 = 40;
const uint kTQ2_0 = 41;
const uint kMXFP4 = 48;

const uint FORMAT = TYPE & 255;
const bool PACKED = (TYPE & kPacked) != 0;

// SCALED: the format has integer scales. HALVES: each half of a block of 32 has its own.
const bool HALVES = FORMAT == kQ2_K || FORMAT == kQ3_K || FORMAT == kQ6_K;
const bool SCALED = HALVES || FORMAT == kQ4_K || FORMAT == kQ5_K || FORMAT == kIQ4_XS;

// HAS_MIN: the format has minimums. They are added once (ADDED_MIN), or subtracted with integer
// factors of their own.
const bool ADDED_MIN = FORMAT == kQ4_1 || FORMAT == kQ5_1;
const bool HAS_MIN = ADDED_MIN || FORMAT == kQ2_K || FORMAT == kQ4_K || FORMAT == kQ5_K;

// Values stay the unsigned numbers that are stored. Instead of subtracting ZERO from each, products
// subtract ZERO times the activations' sum from the dot product.
const int ZERO = FORMAT == kQ4_0                          ? 8
                 : FORMAT == kQ5_0                        ? 16
                 : FORMAT == kQ3_K                        ? 4
                 : FORMAT == kQ6_K                        ? 32
                 : FORMAT == kTQ1_0 || FORMAT == kTQ2_0   ? 1
                                                          : 0;
