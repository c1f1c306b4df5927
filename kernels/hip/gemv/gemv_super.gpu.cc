#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {

Launch SuperBlockGemv(Type type, bool words, const GemvArgs& args) {
  switch (type) {
    case Type::kQ2_K:
      return words ? QuantizedGemvLaunch<Weights<Type::kQ2_K, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kQ2_K, Layout::kFile>>(args);
    case Type::kQ3_K:
      return QuantizedGemvLaunch<Weights<Type::kQ3_K, Layout::kFile>>(args);
    case Type::kQ4_K:
      return words ? QuantizedGemvLaunch<Weights<Type::kQ4_K, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kQ4_K, Layout::kFile>>(args);
    case Type::kQ5_K:
      return words ? QuantizedGemvLaunch<Weights<Type::kQ5_K, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kQ5_K, Layout::kFile>>(args);
    case Type::kQ6_K:
      return QuantizedGemvLaunch<Weights<Type::kQ6_K, Layout::kFile>>(args);
    case Type::kIQ4_XS:
      return words ? QuantizedGemvLaunch<Weights<Type::kIQ4_XS, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kIQ4_XS, Layout::kFile>>(args);
    case Type::kTQ1_0:
      return QuantizedGemvLaunch<Weights<Type::kTQ1_0, Layout::kFile>>(args);
    case Type::kTQ2_0:
      return QuantizedGemvLaunch<Weights<Type::kTQ2_0, Layout::kFile>>(args);
    default:
      return {};
  }
}

}  // namespace trine::hip
