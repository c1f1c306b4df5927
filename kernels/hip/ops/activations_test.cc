#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/quant/activation.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using testing::DeviceMemory;
using testing::OnDevice;

TEST(HipActivations, AreTheReferences) {
  quant::Random random(1);
  for (const int64_t k : {32, 96, 896}) {
    reference::Tensor x(quant::Type::kF32, {k, 3, 2}, 4);
    x.FillWith(quant::Fill::kWide, &random);
    // A block of zeros has no scale.
    for (int64_t i = 0; i < 32; ++i) reference::F32Row(x.view(), 1)[i] = 0.0f;
    const OnDevice on_device(x.view());
    const int64_t blocks = k / 32, columns = 6;
    testing::UnderEverySchedule([&] {
      DeviceMemory memory(QuantizedBytes(blocks, columns));
      const QuantizedColumns to = QuantizedAt(memory.data(), blocks, columns);
      testing::RunLaunch(QuantizeLaunch(on_device.tensor(), to));
      std::vector<std::byte> bytes(memory.bytes());
      memory.Read(bytes.data());
      const QuantizedColumns got = QuantizedAt(bytes.data(), blocks, columns);
      for (int64_t column = 0; column < columns; ++column) {
        for (int64_t b = 0; b < blocks; ++b) {
          quant::ActivationBlock want;
          quant::QuantizeActivation(reference::F32Row(x.view(), column) + 32 * b, &want);
          const int64_t at = column * blocks + b;
          ASSERT_EQ(std::memcmp(got.values + at * 8, want.q, 32), 0) << column << " " << b;
          ASSERT_EQ(quant::Bits(got.scales[at]), quant::Bits(want.d));
          ASSERT_EQ(static_cast<int16_t>(got.sums[at]), want.sum[0]);
          ASSERT_EQ(static_cast<int32_t>(got.sums[at]) >> 16, want.sum[1]);
        }
      }
    });
  }
}

}  // namespace
}  // namespace trine::hip
