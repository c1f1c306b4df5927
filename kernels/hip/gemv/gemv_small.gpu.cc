#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {

Launch SmallBlockGemv(Type type, bool words, const GemvArgs& args) {
  switch (type) {
    case Type::kQ4_0:
      return QuantizedGemvLaunch<Weights<Type::kQ4_0, Layout::kFile>>(args);
    case Type::kQ4_1:
      return words ? QuantizedGemvLaunch<Weights<Type::kQ4_1, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kQ4_1, Layout::kFile>>(args);
    case Type::kQ5_0:
      return QuantizedGemvLaunch<Weights<Type::kQ5_0, Layout::kFile>>(args);
    case Type::kQ5_1:
      return words ? QuantizedGemvLaunch<Weights<Type::kQ5_1, Layout::kFileWords>>(args)
                   : QuantizedGemvLaunch<Weights<Type::kQ5_1, Layout::kFile>>(args);
    case Type::kQ8_0:
      return QuantizedGemvLaunch<Weights<Type::kQ8_0, Layout::kFile>>(args);
    case Type::kIQ4_NL:
      return QuantizedGemvLaunch<Weights<Type::kIQ4_NL, Layout::kFile>>(args);
    case Type::kMXFP4:
      return QuantizedGemvLaunch<Weights<Type::kMXFP4, Layout::kFile>>(args);
    default:
      return {};
  }
}

}  // namespace trine::hip
