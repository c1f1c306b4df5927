#include <tuple>

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::AllRows;
using reference::View;
using testing::BytesIn;
using testing::OnDevice;
using testing::RunLaunch;
using Values = reference::Tensor;  // on the host; a Tensor is on the device

void CheckTopK(const Values& x, int64_t k, size_t offset) {
  const int64_t rows = x.view().dims[1];
  Values ids(Type::kI32, {k, rows}, 8), values(Type::kF32, {k, rows});
  reference::TopK(x, ids, values, AllRows(x));
  testing::UnderEverySchedule([&] {
    const OnDevice in(x, offset);
    const OnDevice got_ids(Values(Type::kI32, {k, rows}, 8)), got(Values(Type::kF32, {k, rows}));
    RunLaunch(TopKLaunch(in.tensor(), got_ids.tensor(), got.tensor()));
    ASSERT_EQ(got_ids.Bytes(), BytesIn(ids)) << x.view().dims[0] << ", " << k;
    ASSERT_EQ(got.Bytes(), BytesIn(values)) << x.view().dims[0] << ", " << k;
  });
}

TEST(HipTopK, IsTheReferences) {
  Random random(1);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1},
                             {17, 3},
                             {64, 64},
                             {300, 300},
                             {1000, 40},
                             {1000, 0},
                             {2000, 1},
                             {20'099, 7},
                             {32'768, 64}}) {
    for (const Fill fill : {Fill::kUniform, Fill::kZero, Fill::kWide}) {
      Values x(Type::kF32, {n, 2}, n % 4 == 0 ? 0 : 4);
      x.FillWith(fill, &random);
      // Equal values, far apart and close.
      for (int64_t i = 0; i + 9 < n; i += 5) x.Row(1)[i] = x.Row(1)[i + 9];
      CheckTopK(x, k, n == 1000 ? 4 : 0);
    }
  }
}

// A few threads have all good values, which are too many to be sorted at once.
TEST(HipTopK, TheBestOfFewThreads) {
  Random random(2);
  const int64_t n = 1024 * 140;
  Values x(Type::kF32, {n, 1});
  for (int64_t i = 0; i < n; ++i) {
    const bool good = i / 4 % 1024 < 40;  // 140 values each
    x.Row(0)[i] = quant::Canon(good ? 2.0f + random.Uniform() : -2.0f + random.Uniform());
  }
  CheckTopK(x, 64, 0);
}

TEST(HipTopK, MoreThanThereAreThreads) {
  Random random(3);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1500, 1100}, {4500, 4500}}) {
    Values x(Type::kF32, {n, 1});
    for (int64_t i = 0; i < n; ++i) x.Row(0)[i] = static_cast<float>(random.Below(40) - 20);
    CheckTopK(x, k, 0);
  }
}

TEST(HipMoe, Route) {
  using reference::MoeScoring;
  Random random(2);
  for (const MoeScoring scoring :
       {MoeScoring::kSoftmax, MoeScoring::kSigmoid, MoeScoring::kSelectedSoftmax}) {
    for (const auto& [experts, used] : {std::pair<int64_t, int64_t>{1, 1},
                                        {8, 2},
                                        {33, 33},
                                        {128, 8},
                                        {256, 8},
                                        {300, 32},
                                        {600, 4}}) {
      for (const Fill fill : {Fill::kUniform, Fill::kZero, Fill::kWide}) {
        for (const int variant : {0, 1, 2, 3}) {
          const bool biased = (variant & 1) != 0;
          const reference::MoeRouteParams params = {scoring, (variant & 2) != 0,
                                                    biased ? 2.5f : 1.0f};
          Values logits(Type::kF32, {experts, 5}, 4), bias(Type::kF32, {experts});
          Values ids(Type::kI32, {used, 5}), weights(Type::kF32, {used, 5}, 12);
          logits.FillWith(fill, &random);
          bias.FillWith(Fill::kUniform, &random);
          reference::MoeRoute(logits, biased ? &bias.view() : nullptr, params, ids, weights,
                              {0, 5});
          testing::UnderEverySchedule([&] {
            const OnDevice in(logits), b(bias, 4);
            const OnDevice got_ids(Values(Type::kI32, {used, 5}));
            const OnDevice got(Values(Type::kF32, {used, 5}, 12), 4);
            RunLaunch(MoeRouteLaunch(in.tensor(), biased ? b.tensor() : Tensor{}, params,
                                     got_ids.tensor(), got.tensor()));
            ASSERT_EQ(got_ids.Bytes(), BytesIn(ids)) << experts;
            ASSERT_EQ(got.Bytes(), BytesIn(weights)) << experts;
          });
        }
      }
    }
  }
}

TEST(HipMoe, NoWeightAtAllIsNoNaN) {
  Values logits(Type::kF32, {45, 1});
  std::fill_n(logits.Row(0), 45, -1000.0f);
  const OnDevice in(logits), ids(Values(Type::kI32, {6, 1})), weights(Values(Type::kF32, {6, 1}));
  RunLaunch(MoeRouteLaunch(in.tensor(), {}, {reference::MoeScoring::kSigmoid, true}, ids.tensor(),
                           weights.tensor()));
  EXPECT_EQ(weights.Bytes(), std::vector<std::byte>(24));
}

TEST(HipMoe, Combine) {
  Random random(3);
  for (const auto& [n, used, tokens, padding] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{1, 1, 1, 0},
        {65, 8, 5, 4},
        {300, 3, 33, 0},
        {1024, 8, 1, 0},
        {64, 2, 0, 0}}) {
    for (const Fill fill : quant::kAllFills) {
      Values x(Type::kF32, {n, used, tokens}, padding), weights(Type::kF32, {used, tokens}, 8);
      Values want(Type::kF32, {n, tokens}, 3 * padding);
      x.FillWith(fill, &random);
      weights.FillWith(Fill::kUniform, &random);
      reference::MoeCombine(x, weights, want, AllRows(want));
      testing::UnderEverySchedule([&] {
        const OnDevice in(x), w(weights, 8), out(Values(Type::kF32, {n, tokens}, 3 * padding));
        RunLaunch(MoeCombineLaunch(in.tensor(), w.tensor(), out.tensor()));
        ASSERT_EQ(out.Bytes(), BytesIn(want)) << n;
      });
    }
  }
}

}  // namespace
}  // namespace trine::hip
