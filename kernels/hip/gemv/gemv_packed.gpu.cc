#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {

Launch PackedGemv(Type type, const GemvArgs& args) {
  return quant::PackedBlockTypes::Call(type, [&]<Type kType>() {
    return QuantizedGemvLaunch<Weights<kType, Layout::kPacked>>(args);
  });
}

}  // namespace trine::hip
