// Stores values in a cache of floats. The includer includes exact.glsl and half.glsl.
const uint kStoreF32 = 0, kStoreF16 = 1, kStoreBf16 = 2;  // values of StoreForm of attention.cc

// Returns 0 below 2^-30, the floor of f32 and bf16 caches. f16 has its own floor of 2^-24.
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
