#include "kernels/hip/activations.h"

#include <algorithm>

#include "kernels/hip/gpu/device.h"

namespace trine::hip {
namespace {

constexpr int kThreads = 128;

struct QuantizeArgs {
  Rows x;
  int64_t n1, n2;  // dimensions 1 and 2 of x
  int64_t words;   // groups of four values, all columns together
  QuantizedColumns to;
};

TRINE_KERNEL(kThreads) QuantizeKernel(QuantizeArgs args) {
  BeginAfterEarlier();
  const int64_t words = args.to.blocks * 8;  // of a column
  const int64_t step = static_cast<int64_t>(GridX()) * kThreads;
  // All lanes of a group go round equally often.
  const int64_t rounds = (args.words + step - 1) / step;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t at = round * step + static_cast<int64_t>(BlockX()) * kThreads + ThreadX();
    const bool ours = at < args.words;
    const int64_t column = ours ? at / words : 0, word = ours ? at % words : 0;
    const int64_t i1 = column % args.n1, i2 = column / args.n1 % args.n2;
    const int64_t i3 = column / args.n1 / args.n2;
    const auto* row = reinterpret_cast<const float*>(
        args.x.data + i1 * args.x.strides[0] + i2 * args.x.strides[1] + i3 * args.x.strides[2]);
    const float* v = row + word * 4;
    QuantizeBlock(args.to, Float4{v[0], v[1], v[2], v[3]}, column, word / 8,
                  static_cast<uint32_t>(at % 8), ours);
  }
}

}  // namespace

Launch QuantizeLaunch(const Tensor& x, const QuantizedColumns& to) {
  QuantizeArgs args;
  args.x = RowsOf(x);
  args.n1 = x.dims[1];
  args.n2 = x.dims[2];
  args.words = x.elements() / 4;
  args.to = to;
  const int64_t blocks = (args.words + kThreads - 1) / kThreads;
  return MakeLaunch(QuantizeKernel, {static_cast<uint32_t>(std::min<int64_t>(blocks, 65535))},
                    {kThreads}, args);
}

}  // namespace trine::hip
