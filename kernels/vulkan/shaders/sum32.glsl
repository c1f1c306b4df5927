// Sums a row in the contract's order: 32 classes, element k in class k mod 32 by increasing k,
// joined by halves. The workgroup may be any multiple of 32: all invocations fetch, the first 32
// add.
//
// The includer defines `float SumTerm(uint which, uint k)`, which returns term k of sum `which`,
// after this file's declaration. All invocations must call Sum32, and all get the sum.
shared float sum_terms[gl_WorkGroupSize.x * 8];
shared float sum_classes[32];

float SumTerm(uint which, uint k);

float Sum32(uint which, uint n) {
  const uint lane = gl_LocalInvocationID.x;
  const uint tile = gl_WorkGroupSize.x * 8u;
  precise float sum = 0.0;
  for (uint base = 0u; base < n; base += tile) {
    const uint count = min(n - base, tile);
    for (uint k = lane; k < count; k += gl_WorkGroupSize.x) sum_terms[k] = SumTerm(which, base + k);
    barrier();
    if (lane < 32u) {
      for (uint k = lane; k < count; k += 32u) sum = sum + sum_terms[k];
    }
    barrier();
  }
  if (lane < 32u) sum_classes[lane] = sum;
  barrier();
  for (uint half_width = 16u; half_width > 0u; half_width /= 2u) {
    if (lane < half_width) {
      precise float joined = sum_classes[lane] + sum_classes[lane + half_width];
      sum_classes[lane] = joined;
    }
    barrier();
  }
  const float total = sum_classes[0];
  barrier();
  return total;
}
