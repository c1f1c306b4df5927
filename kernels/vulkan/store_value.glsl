// Values as a cache of floats holds them. The includer has exact.glsl and half.glsl.
const uint kStoreF32 = 0, kStoreF16 = 1, kStoreBf16 = 2;  // StoreForm of attention.cc

// f16 has its own floor of 2^-24; the other types are given one of 2^-30.
float AboveFloor(float value) {
  return (floatBitsToUint(value) & 0x7fffffffu) < 0x30800000u ? 0.0 : value;
}

#define STORE_VALUE(WORDS, HALVES, form, to, value)             \
  if (form == kStoreF32) {                                      \
    WORDS[to] = AboveFloor(value);                              \
  } else if (form == kStoreF16) {                               \
    HALVES[to] = uint16_t(F32ToF16Saturated(value));            \
  } else if (form == kStoreBf16) {                              \
    HALVES[to] = uint16_t(F32ToBf16(AboveFloor(value)));        \
  }
