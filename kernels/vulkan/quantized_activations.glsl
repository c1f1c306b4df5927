// Quantised activations as quantize_activations.comp writes them. A column of `blocks` blocks is
//   its values in chunks of eight blocks, 16-byte words: the first halves of all, then the second;
//   blocks floats: the scales;
//   blocks words: the sums of both halves, 16 bits each;
// and begins at a 16-byte word. What is left of the last chunk is not written. Eight neighbours that
// read a block each read 128 bytes.
layout(set = 0, binding = 1) restrict readonly buffer Activations32 { uint activations32[]; };
layout(set = 0, binding = 1) restrict readonly buffer Activations128 { uvec4 activations128[]; };

Activation LoadActivation(uint column, uint blocks, uint block) {
  const uint at = column + block + (block & ~7u);
  const uint scales = (column + ((blocks + 7) & ~7u) * 2) * 4;
  Activation a;
  a.low = activations128[at];
  a.high = activations128[at + 8];
  a.d = uintBitsToFloat(activations32[scales + block]);
  a.sum = ivec2(0);
  if (ZERO != 0 || HAS_MIN) {
    const int sums = int(activations32[scales + blocks + block]);
    a.sum = ivec2(bitfieldExtract(sums, 0, 16), sums >> 16);
  }
  return a;
}
