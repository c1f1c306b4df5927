// Quantised activations as quantize_activations.comp writes them. A column of `blocks` blocks is
//   2 * blocks 16-byte words: in chunks of eight blocks the first halves of all, then the second;
//   blocks floats: the scales;
//   blocks words: the sums of both halves, 16 bits each;
// and begins at a 16-byte word. Eight neighbours that read a block each read 128 bytes.
layout(set = 0, binding = 1) restrict readonly buffer Activations32 { uint activations32[]; };
layout(set = 0, binding = 1) restrict readonly buffer Activations128 { uvec4 activations128[]; };

Activation LoadActivation(uint column, uint blocks, uint block) {
  const uint in_chunk = min(8u, blocks - (block & ~7u));
  const uint at = column + (block & ~7u) * 2 + (block & 7u);
  const uint scales = column * 4 + blocks * 8;
  Activation a;
  a.low = activations128[at];
  a.high = activations128[at + in_chunk];
  a.d = uintBitsToFloat(activations32[scales + block]);
  a.sum = ivec2(0);
  if (ZERO != 0 || HAS_MIN) {
    const int sums = int(activations32[scales + blocks + block]);
    a.sum = ivec2(bitfieldExtract(sums, 0, 16), sums >> 16);
  }
  return a;
}
