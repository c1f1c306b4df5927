// Quantises blocks of 32 activations to signed bytes (QuantizeActivation of kernels/quant), laid
// out as in quantized_activations.glsl. The file that includes this one includes math.glsl and
// declares a buffer `uint q[]`.
shared uint block_magnitudes[gl_WorkGroupSize.x];
shared int block_sums[gl_WorkGroupSize.x];

// Returns how many words a column of `blocks` blocks takes.
uint QuantizedWords(uint blocks) { return (blocks + 7u) / 8u * 64u + (blocks + 1u) / 2u * 4u; }

// Writes one block of the column of `blocks` blocks that begins at q[column_at]. Eight neighbouring
// invocations write a block: invocation i passes four values and writes them as word i % 8. All
// invocations of a workgroup must call it; `ours` is false for those that have nothing to write.
void QuantizeBlock(vec4 v, uint column_at, uint blocks, uint block, bool ours) {
  const uint lane = gl_LocalInvocationID.x, word = lane % 8u, first = lane - word;
  uint magnitude = 0u;  // floats that are no NaN compare as integers
  for (uint i = 0u; i < 4u; ++i) {
    magnitude = max(magnitude, floatBitsToUint(v[i]) & 0x7fffffffu);
  }
  block_magnitudes[lane] = magnitude;
  barrier();
  for (uint i = 0u; i < 8u; ++i) magnitude = max(magnitude, block_magnitudes[first + i]);

  precise float d = 0.0;
  uint bytes = 0u;
  int sum = 0;
  if (magnitude >= 0x26800000u) {  // 2^-50
    d = uintBitsToFloat(magnitude) * Bits(0x3c010204u);
    const float inverse = Recip(d);
    for (int i = 0; i < 4; ++i) {
      precise float scaled = v[i] * inverse;
      const int value = clamp(Round(scaled), -127, 127);
      bytes |= (uint(value) & 255u) << (8 * i);
      sum += value;
    }
  }
  block_sums[lane] = sum;
  barrier();  // the sums stay until the next call's first barrier

  const uint at = block + (block & ~7u) + word / 4u * 8u;
  const uint scales_at = column_at + ((blocks + 7u) & ~7u) * 8u;
  if (ours) q[column_at + at * 4u + word % 4u] = bytes;
  if (ours && word == 0u) q[scales_at + block] = floatBitsToUint(d);
  if (ours && word == 1u) {
    int low = 0, high = 0;
    for (uint i = 0u; i < 4u; ++i) {
      low += block_sums[first + i];
      high += block_sums[first + 4u + i];
    }
    q[scales_at + blocks + block] = (uint(low) & 0xffffu) | uint(high) << 16;
  }
}
