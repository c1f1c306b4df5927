// Computes the term of one block of 32 values in a quantised dot product (docs/numerics.md).

#ifdef INT_DOT
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450)
int SDot(int a, int b, spirv_literal int format);

// Returns the sum of four products of signed bytes.
int Dot4(uint a, uint b) { return SDot(int(a), int(b), 0); }
#else
int Dot4(uint a, uint b) {
  const ivec4 left = ivec4(a << 24, a << 16, a << 8, a) >> 24;
  const ivec4 right = ivec4(b << 24, b << 16, b << 8, b) >> 24;
  const ivec4 product = left * right;
  return product.x + product.y + product.z + product.w;
}
#endif

int Dot16(uvec4 a, uvec4 b) {
  return Dot4(a.x, b.x) + Dot4(a.y, b.y) + Dot4(a.z, b.z) + Dot4(a.w, b.w);
}

// A quantised block of activations.
struct Activation {
  uvec4 low, high;
  float d;
  ivec2 sum;  // the sums of both halves
};

float BlockTerm(Group w, Activation a) {
  const int low = Dot16(w.low, a.low), high = Dot16(w.high, a.high);
  int sum;
  if (HALVES) {
    sum = w.scale.x * (low - ZERO * a.sum.x) + w.scale.y * (high - ZERO * a.sum.y);
  } else {
    sum = low + high - ZERO * (a.sum.x + a.sum.y);
    if (SCALED) sum *= w.scale.x;
  }
  precise float term = (w.d * a.d) * float(sum);
  if (HAS_MIN) {
    const int minimum = HALVES ? w.min.x * a.sum.x + w.min.y * a.sum.y
                               : w.min.x * (a.sum.x + a.sum.y);
    precise float taken = (w.dmin * a.d) * float(minimum);
    term = term - taken;
  }
  return term;
}
