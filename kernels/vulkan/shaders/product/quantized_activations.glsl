// Reads quantised activations as quantize_activations.comp writes them. A column of `blocks` blocks
// begins at a 16-byte word and holds
//   its values in chunks of eight blocks, as 16-byte words: all first halves, then all second ones;
//   blocks floats: the scales;
//   blocks words: the sums of both halves, 16 bits each.
// The last chunk may be partly unwritten. Eight neighbouring lanes that read a block each read 128
// contiguous bytes.
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
