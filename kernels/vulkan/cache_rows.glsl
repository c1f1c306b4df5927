// Four values of a cache row, decoded to f32; zeros beyond the row's end. Each cache has its own
// binding, so the function is made by a macro: NAME(row, index) gives values 4 * index to 4 * index
// + 3 of the row that begins at `row`.
#include "half.glsl"

// CacheForm of attention.cc: how a row is read. `row` is in words but for the forms of halves.
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

// Inside the row element i lies at row + i; `left` is how many of the four there are.
#define READ_FOUR(ARRAY, at, left)                                                          \
  uvec4(left > 0u ? uint(ARRAY[at]) : 0u, left > 1u ? uint(ARRAY[at + 1u]) : 0u,            \
        left > 2u ? uint(ARRAY[at + 2u]) : 0u, left > 3u ? uint(ARRAY[at + 3u]) : 0u)

#define DEFINE_CACHE_READER(NAME, WORDS, HALVES, FORM, WIDTH)                               \
  vec4 NAME(uint row, uint index) {                                                         \
    if (FORM == kCacheQ8) {                                                                 \
      const uint block = row + index / 8u * 9u;                                             \
      return FromQ8(uintBitsToFloat(WORDS[block]), WORDS[block + 1u + index % 8u]);         \
    }                                                                                       \
    const uint left = WIDTH - min(WIDTH, 4u * index);                                       \
    if (FORM == kCacheF16 || FORM == kCacheBf16) {                                          \
      const uint low = left > 0u ? WORDS[row + 2u * index] : 0u;                            \
      const uint high = left > 2u ? WORDS[row + 2u * index + 1u] : 0u;                      \
      return FromHalves(uvec4(low & 0xffffu, low >> 16, high & 0xffffu, high >> 16),        \
                        FORM == kCacheBf16);                                                \
    }                                                                                       \
    const uint at = row + 4u * index;                                                       \
    if (FORM == kCacheF32) return uintBitsToFloat(READ_FOUR(WORDS, at, left));              \
    return FromHalves(READ_FOUR(HALVES, at, left), FORM == kCacheBf16Halves);               \
  }
