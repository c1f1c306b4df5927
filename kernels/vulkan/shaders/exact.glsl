// Every exact shader includes this file after #version. Declare each computed float `precise`, in
// helpers too: the qualifier does not extend into called functions.
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(capabilities = [4467], 4462, 32);  // RoundingModeRTE, 32 bit

// Makes a float result of an op canonical (docs/numerics.md): +0 below 2^-50 and for NaN, at most
// 2^50. Works on integers, because a driver may assume that no float is NaN.
float Canon(float x) {
  const uint bits = floatBitsToUint(x);
  const uint magnitude = bits & 0x7fffffffu;
  const bool kept = magnitude >= 0x26800000u && magnitude <= 0x7f800000u;
  const uint bounded = (bits & 0x80000000u) | min(magnitude, 0x58800000u);
  return uintBitsToFloat(kept ? bounded : 0u);
}
