// Reads four values of a cache row, decoded to f32. Each cache has its own binding, so a macro
// defines the function: NAME(row, index) returns values 4 * index to 4 * index + 3 of the row at
// `row`. Beyond the row's end it returns other values of the row, which the caller must multiply by
// zero or ignore. No branch depends on the end, so that many reads can be in flight.
#include "half.glsl"

// How a row is read: the values of CacheForm in attention.cc. `row` is in words, or in halves for
// the last two.
const uint kCacheF32 = 0, kCacheF16 = 1, kCacheBf16 = 2, kCacheQ8 = 3;
const uint kCacheF16Halves = 4, kCacheBf16Halves = 5;

vec4 FromHalves(uvec4 halves, bool brain) {
  if (brain) return uintBitsToFloat(halves << 16);
  return vec4(F16ToF32(halves.x), F16ToF32(halves.y), F16ToF32(halves.z), F16ToF32(halves.w));
}

vec4 FromQ8(float d, uint bytes) {
  const ivec4 q = ivec4(bitfieldExtract(int(bytes), 0, 8), bitfieldExtract(int(bytes), 8, 8),
                        bitfieldExtract(int(bytes), 16, 8), bitfieldExtract(int(bytes), 24, 8));
  precise vec4 values = vec4(d) * vec4(q);
  return values;
}

// Reads elements `index` to `index` + 3. Beyond the end, the last of the `count` elements repeats.
#define READ_FOUR(ARRAY, row, index, count)                                                   \
  uvec4(ARRAY[row + min(index, count - 1u)], ARRAY[row + min(index + 1u, count - 1u)],        \
        ARRAY[row + min(index + 2u, count - 1u)], ARRAY[row + min(index + 3u, count - 1u)])

#define DEFINE_CACHE_READER(NAME, WORDS, HALVES, FORM, WIDTH)                                 \
  vec4 NAME(uint row, uint index) {                                                           \
    if (FORM == kCacheQ8) {                                                                   \
      const uint block = row + index / 8u * 9u;                                               \
      return FromQ8(uintBitsToFloat(WORDS[block]), WORDS[block + 1u + index % 8u]);           \
    }                                                                                         \
    if (FORM == kCacheF16 || FORM == kCacheBf16) {                                            \
      const uint low = WORDS[row + min(2u * index, WIDTH / 2u - 1u)];                         \
      const uint high = WORDS[row + min(2u * index + 1u, WIDTH / 2u - 1u)];                   \
      return FromHalves(uvec4(low & 0xffffu, low >> 16, high & 0xffffu, high >> 16),          \
                        FORM == kCacheBf16);                                                  \
    }                                                                                         \
    if (FORM == kCacheF32) return uintBitsToFloat(READ_FOUR(WORDS, row, 4u * index, WIDTH));  \
    return FromHalves(READ_FOUR(HALVES, row, 4u * index, WIDTH), FORM == kCacheBf16Halves);   \
  }
