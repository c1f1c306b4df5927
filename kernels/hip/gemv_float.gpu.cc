#include "kernels/hip/gemv_float.h"

#include "kernels/hip/gemv_parts.h"

namespace trine::hip {

using quant::Type;

Launch FloatGemv(Type type, bool wide, const GemvArgs& args) {
  switch (type) {
    case Type::kF32:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kF32>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kF32>>(args);
    case Type::kF16:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kF16>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kF16>>(args);
    case Type::kBF16:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kBF16>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kBF16>>(args);
    default:
      return {};
  }
}

Launch PackedF16Gemv(const GemvArgs& args) { return FloatGemvLaunch<PackedHalves>(args); }

}  // namespace trine::hip
