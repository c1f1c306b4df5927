#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {

Launch SuperBlockGemv(Type type, bool words, const GemvArgs& args) {
  return quant::SuperBlockTypes::Call(
      type, [&]<Type kType>() { return FileGemvLaunch<kType>(words, args); });
}

}  // namespace trine::hip
