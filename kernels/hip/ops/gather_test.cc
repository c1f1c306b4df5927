#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/weights.h"
#include "kernels/reference/ops.h"

namespace trine::hip {
namespace {

using quant::Type;
using testing::Form;
using testing::OnDevice;

class HipGatherTest : public ::testing::TestWithParam<Form> {};

TEST_P(HipGatherTest, IsTheReferences) {
  const Form form = GetParam();
  const int64_t block = quant::Traits(form.type).block_values;
  const std::vector<int64_t> lengths = block == 1 ? std::vector<int64_t>{1, 37, 256, 300, 777}
                                                  : std::vector<int64_t>{block, block * 3, 2304};
  for (const int64_t k : lengths) {
    for (const bool gaps : {false, true}) {
      SCOPED_TRACE("k " + std::to_string(k) + (gaps ? ", gaps" : ""));
      quant::Random random(static_cast<uint64_t>(k));
      reference::Tensor table(form.type, {k, 5}, gaps ? testing::BlockAlignment(form.type) : 0);
      table.FillWeights(gaps, &random);
      reference::Tensor ids(Type::kI32, {7}), y(Type::kF32, {k, 7}, 4);
      ids.Set({4, 0, 5, 2, -1, 2, 1});
      const auto fresh = testing::BytesIn(y.view());
      const OnDevice ids_there(ids.view()), y_there(y.view());
      const testing::WeightsOnDevice table_there(table.view(), form.packed, gaps);
      reference::GatherRows(table, ids, y, {0, 7});
      const auto want = testing::BytesIn(y.view());
      const Launch launch =
          GatherRowsLaunch(table_there.tensor(), ids_there.tensor(), y_there.tensor());
      testing::UnderEverySchedule([&] {
        y_there.Write(fresh);
        testing::RunLaunch(launch);
        ASSERT_EQ(y_there.Bytes() == want, true);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, HipGatherTest, ::testing::ValuesIn(testing::AllForms()),
                         testing::NameOf);

TEST(HipGatherTest, NothingToDo) {
  Tensor table, ids, y;
  table.dims = {64, 3, 1, 1};
  ids.dims[0] = 0;
  EXPECT_TRUE(GatherRowsLaunch(table, ids, y).empty());
}

}  // namespace
}  // namespace trine::hip
