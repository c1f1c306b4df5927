// Returns a pair of values rotated by the angle of the given cosine and sine.
vec2 Rotated(float x0, float x1, float cosine, float sine) {
  precise float y0 = x0 * cosine - x1 * sine;
  precise float y1 = x0 * sine + x1 * cosine;
  return vec2(Canon(y0), Canon(y1));
}
