#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {

Launch PackedGemv(Type type, const GemvArgs& args) {
  switch (type) {
    case Type::kQ8_0:
      return QuantizedGemvLaunch<Weights<Type::kQ8_0, Layout::kPacked>>(args);
    case Type::kQ4_0:
      return QuantizedGemvLaunch<Weights<Type::kQ4_0, Layout::kPacked>>(args);
    case Type::kQ4_K:
      return QuantizedGemvLaunch<Weights<Type::kQ4_K, Layout::kPacked>>(args);
    case Type::kQ5_K:
      return QuantizedGemvLaunch<Weights<Type::kQ5_K, Layout::kPacked>>(args);
    case Type::kQ6_K:
      return QuantizedGemvLaunch<Weights<Type::kQ6_K, Layout::kPacked>>(args);
    default:
      return {};
  }
}

}  // namespace trine::hip
