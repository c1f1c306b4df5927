// The runs of a graph's groups, by their names.
#pragma once

#include <string>
#include <vector>

#include "backends/hip/group_runs.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::hip {

class GroupRunsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kWidth = 256;

  uint32_t Temp() { return builder_.Tensor(TRINE_DTYPE_F32, {kWidth, m_}, TRINE_ROLE_TEMP); }
  uint32_t Weights(uint32_t dtype, bool packed) {
    const uint32_t w = builder_.Tensor(dtype, {kWidth, kWidth}, TRINE_ROLE_CONSTANT);
    if (packed) builder_.tensors[w].layout = 1;
    return w;
  }
  uint32_t Norm(uint32_t x) {
    const uint32_t y = Temp();
    builder_.Op(TRINE_OP_RMS_NORM, {x, builder_.Tensor(TRINE_DTYPE_F32, {kWidth})}, {y},
                trine_norm_attr{0, 1e-5f});
    return y;
  }
  void Product(uint32_t x, uint32_t y, uint32_t dtype = TRINE_DTYPE_Q8_0, bool packed = true) {
    builder_.Op(TRINE_OP_MATMUL, {Weights(dtype, packed), x}, {y});
  }
  uint32_t Product(uint32_t x) {
    const uint32_t y = Temp();
    Product(x, y);
    return y;
  }
  uint32_t Glu(uint32_t gate, uint32_t up) {
    const uint32_t y = Temp();
    builder_.Op(TRINE_OP_GLU, {gate, up}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
    return y;
  }

  void Add(uint32_t a, uint32_t b, uint32_t sum) { builder_.Op(TRINE_OP_ADD, {a, b}, {sum}); }

  // Returns the names of the runs, each with where it reads and writes quantised values.
  std::vector<std::string> Runs(int64_t columns = 1, bool join = true) {
    sdk::Graph graph;
    EXPECT_EQ(builder_.Refusal(&graph), "");
    const std::vector<OpGroup> groups = backends::GroupOps(graph, join);
    std::vector<std::string> names;
    uint32_t next = 0;
    for (const GroupRun& run : JoinGroups(graph, groups, &columns, join)) {
      EXPECT_EQ(run.first, next);  // all groups, each once, in order
      next += run.count;
      names.push_back(RunName(graph, groups, run) + std::string(" ") + std::to_string(run.from) +
                      std::to_string(run.to));
    }
    EXPECT_EQ(next, groups.size());
    return names;
  }

  sdk::GraphBuilder builder_;
  const int64_t m_ = builder_.Param(1, 512);
};

}  // namespace trine::hip
