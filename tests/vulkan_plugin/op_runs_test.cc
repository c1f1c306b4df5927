#include "backends/vulkan/ops/op_runs.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::vulkan {
namespace {

using sdk::GraphBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Words of a product's push constants, in the order of kernels/vulkan/runs/products.cc.
enum ProductWord { kRows = 1, kColumns = 2, kWeights = 3, kBias = 7, kHasBias = 8, kResult = 9 };

class OpRunsTest : public ::testing::Test {
 protected:
  OpRunsTest() { caps_.storage_alignment = 16; }

  RunChoices Choices() const {
    RunChoices choices;
    choices.caps = &caps_;
    choices.tuning = ChooseTuning(caps_);
    if (submit_operations_ != 0) choices.tuning.submit_operations = submit_operations_;
    choices.products = ChooseProductTuning(caps_, choices.tuning);
    return choices;
  }

  void Copy() { ASSERT_EQ(builder_.Refusal(&graph_), ""); }
  std::string WhyNot(size_t op = 0) {
    Copy();
    EXPECT_EQ(sdk::CheckOp(graph_, op), "");
    return WhyNotOp(Choices(), graph_, op);
  }

  // Returns all runs of the graph, by op or by group. `misaligned` says how far off their alignment
  // tensors begin.
  std::vector<std::vector<OpRun>> Runs(Misalignment misaligned = {},
                                       std::vector<int64_t> params = {}, bool fuse = false) {
    Copy();
    const RunChoices choices = Choices();
    misaligned.resize(graph_.tensors.size());
    if (params.empty()) params = graph_.MaxParams();
    const RunScratch scratch = ScratchOf(choices, graph_);
    const OpRuns maker(choices, graph_, scratch, misaligned);
    std::vector<std::vector<OpRun>> runs;
    for (const OpGroup& group : backends::GroupOps(graph_, fuse)) {
      EXPECT_EQ(maker.Add(group, params.data(), &runs.emplace_back()), "") << group.first;
      for (const OpRun& run : runs.back()) Check(run, scratch);
    }
    return runs;
  }

  // Checks what holds for every run: it fits its shader and the device, and stays in the scratch.
  void Check(const OpRun& run, const RunScratch& scratch) const {
    EXPECT_EQ(run.operands.size(), run.run.shader->binding_count);
    EXPECT_EQ(run.run.push.size() * 4, run.run.shader->push_bytes);
    EXPECT_NE(run.label, nullptr);
    for (const OpRun::Operand& operand : run.operands) {
      EXPECT_EQ(operand.offset % caps_.storage_alignment, 0u);
      EXPECT_LE(operand.bytes, caps_.max_storage_range);
      EXPECT_EQ(operand.bytes % 4, 0u);
      if (operand.tensor == kScratchOperand) {
        EXPECT_LE(operand.offset + operand.bytes, scratch.Bytes());
      }
    }
  }

  static std::vector<std::string> Names(const std::vector<std::vector<OpRun>>& runs) {
    std::vector<std::string> names;
    for (const auto& list : runs) {
      for (const OpRun& run : list) names.push_back(run.run.shader->name);
    }
    return names;
  }

  uint32_t Weights(uint32_t dtype, std::vector<int64_t> dims) {
    return builder_.Tensor(dtype, std::move(dims), TRINE_ROLE_CONSTANT, uint64_t{1} << 32);
  }
  void Matmul(uint32_t w, uint32_t x, uint32_t y) { builder_.Op(TRINE_OP_MATMUL, {w, x}, {y}); }

  DeviceCaps caps_ = MakeDeviceCaps(testing::IntelXe1());
  uint64_t submit_operations_ = 0;  // 0: the device's
  GraphBuilder builder_;
  sdk::Graph graph_;
};

TEST_F(OpRunsTest, ProductsOfTheSameActivationsShareWhatWasQuantised) {
  const uint32_t x = builder_.F32({256, 2});
  for (int i = 0; i < 3; ++i) {
    Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), x, builder_.F32({8, 2}));
  }
  EXPECT_THAT(Names(Runs()), ElementsAre("quantize_activations", "gemv_quantized_dot",
                                         "gemv_quantized_dot", "gemv_quantized_dot"));
}

TEST_F(OpRunsTest, OtherActivationsAreQuantisedAnew) {
  const uint32_t x = builder_.F32({256, 2}), other = builder_.F32({256, 2});
  for (const uint32_t in : {x, other, x}) {
    Matmul(Weights(TRINE_DTYPE_Q4_K, {256, 8}), in, builder_.F32({8, 2}));
  }
  const auto runs = Runs();
  for (const auto& list : runs) {
    ASSERT_EQ(list.size(), 2u);
    EXPECT_STREQ(list[0].run.shader->name, "quantize_activations");
  }
}

TEST_F(OpRunsTest, QuantisedActivationsAreForgottenWhenTheirSlotIsWritten) {
  const uint32_t x = builder_.F32({256, 2}), w = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  // Another view of the same memory.
  builder_.tensors.push_back(builder_.tensors[x]);
  const auto alias = static_cast<uint32_t>(builder_.tensors.size() - 1);
  Matmul(w, x, builder_.F32({8, 2}));
  builder_.Op(TRINE_OP_SCALE, {alias}, {alias}, trine_scale_attr{0, 2.0f});
  Matmul(w, x, builder_.F32({8, 2}));
  Matmul(w, x, builder_.F32({8, 2}));
  EXPECT_THAT(Names(Runs()),
              ElementsAre("quantize_activations", "gemv_quantized_dot", "unary",
                          "quantize_activations", "gemv_quantized_dot", "gemv_quantized_dot"));
}

TEST_F(OpRunsTest, QuantisedActivationsOutliveFloatProductsAndOtherOps) {
  const uint32_t x = builder_.F32({256, 2}), y = builder_.F32({8, 2});
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), x, y);
  Matmul(Weights(TRINE_DTYPE_F16, {256, 8}), x, y);
  builder_.Op(TRINE_OP_ADD, {y, y}, {y});
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), x, y);
  EXPECT_THAT(Names(Runs()), ElementsAre("quantize_activations", "gemv_quantized_dot", "gemv_float",
                                         "binary", "gemv_quantized_dot"));
}

TEST_F(OpRunsTest, ListsOfFloatExpertsTakeThePlaceOfQuantisedActivations) {
  const uint32_t x = builder_.F32({256, 1, 64}), ids = builder_.I32({2, 64});
  for (const uint32_t type : {TRINE_DTYPE_Q8_0, TRINE_DTYPE_F16, TRINE_DTYPE_Q8_0}) {
    builder_.Op(TRINE_OP_MOE_MATMUL, {Weights(type, {256, 8, 4}), x, ids},
                {builder_.F32({8, 2, 64})});
  }
  EXPECT_THAT(
      Names(Runs()),
      ElementsAre("quantize_activations", "moe_lists", "moe_gemm_quantized_dot", "moe_lists",
                  "moe_gemm_float", "quantize_activations", "moe_lists", "moe_gemm_quantized_dot"));
}

TEST_F(OpRunsTest, IntegerDotIsATuning) {
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 2}), builder_.F32({8, 2}));
  caps_.int_dot = caps_.int_dot_accelerated = false;
  EXPECT_THAT(Names(Runs()), ElementsAre("quantize_activations", "gemv_quantized"));
}

TEST_F(OpRunsTest, WeightsBeyondABindingAreCutByRows) {
  // Rows of 272 bytes; 1024 bytes of a binding hold three of them wherever they begin.
  caps_.max_storage_range = 1024;
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8}), bias = builder_.F32({8});
  builder_.Op(TRINE_OP_MATMUL, {w, builder_.F32({256, 1}), bias}, {builder_.F32({8, 1})});
  EXPECT_EQ(WhyNot(), "");
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 4u) << "quantise, then three windows";
  uint32_t row = 0;
  for (size_t i = 1; i < 4; ++i) {
    const OpRun& run = runs[0][i];
    const uint64_t first = row * uint64_t{272};
    EXPECT_EQ(run.operands[0].tensor, w);
    EXPECT_EQ(run.operands[0].offset + run.run.push[kWeights], first);
    EXPECT_GE(run.operands[0].bytes, run.run.push[kWeights] + run.run.push[kRows] * 272);
    EXPECT_EQ(run.run.push[kBias], row);
    EXPECT_EQ(run.run.push[kHasBias], 1u);
    EXPECT_EQ(run.run.push[kResult], row);
    row += run.run.push[kRows];
  }
  EXPECT_EQ(row, 8u);
}

TEST_F(OpRunsTest, WindowsOfMisalignedWeightsBeginWhereBindingsCan) {
  caps_.max_storage_range = 1024;
  caps_.storage_alignment = 64;
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  Matmul(w, builder_.F32({256, 1}), builder_.F32({8, 1}));
  const auto runs = Runs({34});
  uint32_t row = 0;
  for (size_t i = 1; i < runs[0].size(); ++i) {
    const OpRun& run = runs[0][i];
    EXPECT_EQ(run.operands[0].offset + run.run.push[kWeights], 34 + row * uint64_t{272});
    row += run.run.push[kRows];
  }
  EXPECT_EQ(row, 8u);
}

TEST_F(OpRunsTest, AbsentBiasStandsForTheWindowOfWeights) {
  caps_.max_storage_range = 1024;
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 1}), builder_.F32({8, 1}));
  const auto runs = Runs();
  for (size_t i = 1; i < runs[0].size(); ++i) {
    const auto& operands = runs[0][i].operands;
    EXPECT_EQ(operands[2].tensor, operands[0].tensor);
    EXPECT_EQ(operands[2].offset, operands[0].offset);
    EXPECT_EQ(runs[0][i].run.push[kHasBias], 0u);
  }
}

TEST_F(OpRunsTest, AMatrixTimesItselfBindsAllOfItAsActivations) {
  caps_.max_storage_range = 4096;
  const uint32_t t = builder_.F32({60, 17});  // 4080 bytes: two windows
  builder_.Op(TRINE_OP_MATMUL, {t, t}, {builder_.F32({17, 17})});
  const auto runs = Runs({8});
  EXPECT_EQ(runs[0].size(), 2u);
  for (const OpRun& run : runs[0]) {
    EXPECT_EQ(run.operands[1].offset, 0u);
    EXPECT_EQ(run.operands[1].bytes, 8u + 4080u);
  }
}

TEST_F(OpRunsTest, ExpertsBeyondABindingAreCutByExperts) {
  // An expert has 8 * 272 = 2176 bytes.
  caps_.max_storage_range = 5000;
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8, 5});
  builder_.Op(TRINE_OP_MOE_MATMUL,
              {w, builder_.F32({256, 1, 1}), builder_.I32({2, 1}), builder_.F32({8, 5})},
              {builder_.F32({8, 2, 1})});
  EXPECT_EQ(WhyNot(), "");
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 4u);
  uint32_t expert = 0;
  for (size_t i = 1; i < 4; ++i) {
    const OpRun& run = runs[0][i];
    const auto& push = run.run.push;
    EXPECT_EQ(push[kRows], 8u);
    EXPECT_EQ(push[16], 5u) << "experts in all";
    EXPECT_EQ(push[17], expert) << "the first";
    EXPECT_EQ(run.operands[0].offset + push[kWeights], expert * uint64_t{2176});
    EXPECT_EQ(push[kBias], 0u) << "the bias of all experts is bound";
    EXPECT_EQ(run.operands[3].bytes, 8u * 5 * 4);
    expert = push[18];
  }
  EXPECT_EQ(expert, 5u);
}

TEST_F(OpRunsTest, TablesBeyondABindingAreCutByRows) {
  caps_.max_storage_range = 1024;
  const uint32_t table = Weights(TRINE_DTYPE_F16, {100, 20});  // rows of 200 bytes
  builder_.Op(TRINE_OP_GATHER_ROWS, {table, builder_.I32({2})}, {builder_.F32({100, 2})});
  EXPECT_EQ(WhyNot(), "");
  const auto runs = Runs();
  ASSERT_GT(runs[0].size(), 1u);
  uint32_t row = 0;
  for (const OpRun& run : runs[0]) {
    const auto& push = run.run.push;  // k, n, table's offset and stride, all rows, first, end
    EXPECT_EQ(push[4], 20u);
    EXPECT_EQ(push[5], row);
    EXPECT_EQ(run.operands[0].offset + push[2], row * uint64_t{200});
    row = push[6];
  }
  EXPECT_EQ(row, 20u);
}

TEST_F(OpRunsTest, WhatCannotBeCutIsRefused) {
  caps_.max_storage_range = 1024;
  Matmul(Weights(TRINE_DTYPE_Q8_0, {1024, 8}), builder_.F32({1024, 1}), builder_.F32({8, 1}));
  EXPECT_THAT(WhyNot(0), HasSubstr("a row, or an expert, is larger than the device can bind"));
  const uint32_t wide = builder_.F32({300});
  builder_.Op(TRINE_OP_ADD, {wide, wide}, {wide});
  EXPECT_THAT(WhyNot(1), HasSubstr("a tensor is larger than the device can bind"));
  const uint32_t y = builder_.F32({8, 40});  // 1280 bytes of results
  Matmul(Weights(TRINE_DTYPE_Q8_0, {32, 8}), builder_.F32({32, 40}), y);
  EXPECT_THAT(WhyNot(2), HasSubstr("a tensor is larger than the device can bind"));
  builder_.Op(
      TRINE_OP_MOE_MATMUL,
      {Weights(TRINE_DTYPE_Q8_0, {256, 8, 5}), builder_.F32({256, 1, 1}), builder_.I32({2, 1})},
      {builder_.F32({8, 2, 1})});
  EXPECT_THAT(WhyNot(3), HasSubstr("a row, or an expert, is larger than the device can bind"));
}

TEST_F(OpRunsTest, EmptyTablesAreRefused) {
  builder_.Op(TRINE_OP_GATHER_ROWS, {Weights(TRINE_DTYPE_F16, {8, 0}), builder_.I32({2})},
              {builder_.F32({8, 2})});
  EXPECT_THAT(WhyNot(), HasSubstr("is empty"));
}

TEST_F(OpRunsTest, MisalignedTensorsAreReachedFromWhereABindingCanBe) {
  const uint32_t a = builder_.F32({5}), b = builder_.F32({5}), y = builder_.F32({5});
  builder_.Op(TRINE_OP_ADD, {a, b}, {y});
  const auto runs = Runs({4, 8, 12});
  ASSERT_EQ(runs[0].size(), 1u);
  const OpRun& run = runs[0][0];
  EXPECT_EQ(run.operands[0].bytes, 4u + 20u);
  EXPECT_EQ(run.operands[1].bytes, 8u + 20u);
  EXPECT_EQ(run.operands[2].bytes, 12u + 20u);
  for (const OpRun::Operand& operand : run.operands) EXPECT_EQ(operand.offset, 0u);
  const auto& push = run.run.push;
  for (const uint32_t offset : {1u, 2u, 3u}) {
    EXPECT_NE(std::find(push.begin(), push.end(), offset), push.end()) << offset;
  }
}

TEST_F(OpRunsTest, StridesCountIntoWhatIsBound) {
  const uint32_t x = builder_.F32({4, 3, 2}), y = builder_.F32({4, 3, 2});
  builder_.tensors[x].strides[1] = 64;
  builder_.tensors[x].strides[2] = 1024;
  builder_.Op(TRINE_OP_SCALE, {x}, {y}, trine_scale_attr{0, 2.0f});
  const auto runs = Runs();
  EXPECT_EQ(runs[0][0].operands[0].bytes, 1024u + 2 * 64 + 16);
  EXPECT_EQ(runs[0][0].operands[1].bytes, 96u);
}

TEST_F(OpRunsTest, ScratchIsThatOfTheGreediestOpOfEachKind) {
  const RunChoices choices = Choices();
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 2}), builder_.F32({8, 2}));
  Copy();
  const RunScratch one = ScratchOf(choices, graph_);
  EXPECT_EQ(one.product_bytes, QuantizedBytes(256, 2));
  EXPECT_EQ(one.attention_bytes, 0u);
  Matmul(Weights(TRINE_DTYPE_Q8_0, {512, 8}), builder_.F32({512, 2}), builder_.F32({8, 2}));
  Copy();
  EXPECT_EQ(ScratchOf(choices, graph_).product_bytes, QuantizedBytes(512, 2));
  Matmul(Weights(TRINE_DTYPE_F16, {4096, 8}), builder_.F32({4096, 2}), builder_.F32({8, 2}));
  Copy();
  EXPECT_EQ(ScratchOf(choices, graph_).product_bytes, QuantizedBytes(512, 2)) << "floats need none";
}

TEST_F(OpRunsTest, ScratchThatIsTooSmallIsASentence) {
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 2}), builder_.F32({8, 2}));
  Copy();
  const RunChoices choices = Choices();
  const RunScratch none;
  const Misalignment aligned(graph_.tensors.size(), 0);
  OpRuns maker(choices, graph_, none, aligned);
  std::vector<OpRun> runs;
  EXPECT_THAT(maker.Add(backends::AloneAt(graph_, 0), nullptr, &runs),
              HasSubstr("scratch is too small"));
}

TEST_F(OpRunsTest, ParametersShapeTheRuns) {
  const int64_t m = builder_.Param(1, 64);
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, m}), builder_.F32({8, m}));
  EXPECT_EQ(WhyNot(), "");
  EXPECT_THAT(Names(Runs({}, {1})), ElementsAre("quantize_activations", "gemv_quantized_dot"));
  EXPECT_THAT(Names(Runs({}, {64})), ElementsAre("quantize_activations", "gemm_quantized_dot"));
}

TEST_F(OpRunsTest, NormsOfRowsThatRegistersCannotHoldAreRefused) {
  builder_.Op(TRINE_OP_RMS_NORM, {builder_.F32({65536, 2}), TRINE_NONE}, {builder_.F32({65536, 2})},
              trine_norm_attr{0, 1e-5f});
  caps_.max_workgroup_invocations = 1024;
  EXPECT_EQ(WhyNot(0), "");
  caps_.max_workgroup_invocations = 256;
  EXPECT_EQ(WhyNot(0), "the device has norms of at most 32768 values");
}

TEST_F(OpRunsTest, ProductsTakeTilesThatFitTheSharedMemory) {
  const int64_t m = builder_.Param(1, 64);
  Matmul(Weights(TRINE_DTYPE_Q4_K, {256, 8}), builder_.F32({256, m}), builder_.F32({8, m}));
  Matmul(Weights(TRINE_DTYPE_F16, {256, 8}), builder_.F32({256, m}), builder_.F32({8, m}));
  for (const uint32_t bytes : {65536u, 16384u, 8192u}) {
    caps_.max_shared_bytes = bytes;
    EXPECT_EQ(WhyNot(0), "") << bytes;
    EXPECT_EQ(WhyNot(1), "") << bytes;
    for (const int64_t columns : {1, 8, 64}) {
      for (const auto& list : Runs({}, {columns})) {
        EXPECT_LE(list.back().run.shared_bytes, bytes);
      }
    }
  }
  caps_.max_shared_bytes = 1024;
  EXPECT_EQ(WhyNot(0), "the device's shared memory is too small for a shader");
}

TEST_F(OpRunsTest, LongProductsAreCutByRows) {
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 1000}), bias = builder_.F32({1000});
  builder_.Op(TRINE_OP_MATMUL, {w, builder_.F32({256, 10}), bias}, {builder_.F32({1000, 10})});
  EXPECT_EQ(Runs()[0].size(), 2u) << "quantise, then all rows";
  submit_operations_ = 2 * 256 * 10 * 200;
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 1u + 6) << "200 rows, of which 192 are whole tiles";
  uint32_t row = 0;
  for (size_t i = 1; i < runs[0].size(); ++i) {
    const OpRun& run = runs[0][i];
    EXPECT_EQ(run.run.push[kWeights], row * 272);
    EXPECT_EQ(run.run.push[kBias], row);
    EXPECT_EQ(run.run.push[kResult], row);
    EXPECT_EQ(run.operations, 2u * 256 * 10 * run.run.push[kRows]);
    EXPECT_LE(run.operations, submit_operations_);
    row += run.run.push[kRows];
  }
  EXPECT_EQ(row, 1000u);
  submit_operations_ = 1;
  EXPECT_EQ(Runs()[0].size(), 1u + 16) << "64 rows are the fewest";
}

TEST_F(OpRunsTest, LongProductsOfExpertsAreCutByRows) {
  builder_.Op(
      TRINE_OP_MOE_MATMUL,
      {Weights(TRINE_DTYPE_F16, {256, 200, 4}), builder_.F32({256, 1, 2}), builder_.I32({2, 2})},
      {builder_.F32({200, 2, 2})});
  submit_operations_ = 1;
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(runs[0][i].run.push[kRows], i < 3 ? 64u : 8u);
    EXPECT_EQ(runs[0][i].run.push[kWeights], i * 64 * 512);
    EXPECT_EQ(runs[0][i].run.push[kResult], i * 64);
  }
}

TEST_F(OpRunsTest, WindowsOfWeightsAreCutToo) {
  caps_.max_storage_range = 272 * 100 + 32;  // 100 rows
  submit_operations_ = 1;
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 200}), builder_.F32({256, 1}), builder_.F32({200, 1}));
  std::vector<uint32_t> rows;
  const auto runs = Runs();
  for (size_t i = 1; i < runs[0].size(); ++i) rows.push_back(runs[0][i].run.push[kRows]);
  EXPECT_THAT(rows, ElementsAre(64, 36, 64, 36));
}

// Returns the tensors of a run's bindings, in order.
std::vector<uint32_t> Bound(const OpRun& run) {
  std::vector<uint32_t> tensors;
  for (const OpRun::Operand& operand : run.operands) tensors.push_back(operand.tensor);
  return tensors;
}

TEST_F(OpRunsTest, SumsNormsAndGatedUnitsQuantiseInOneRun) {
  const auto temp = [&](std::vector<int64_t> dims) {
    return builder_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_TEMP);
  };
  const uint32_t a = temp({256, 2}), b = temp({256, 2}), sum = temp({256, 2}), y = temp({256, 2});
  const uint32_t weight = builder_.Tensor(TRINE_DTYPE_F32, {256}, TRINE_ROLE_CONSTANT);
  builder_.Op(TRINE_OP_ADD, {a, b}, {sum});
  builder_.Op(TRINE_OP_RMS_NORM, {sum, weight}, {y}, trine_norm_attr{0, 1e-5f});
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 256}), y, a);
  builder_.Op(TRINE_OP_GLU, {a, b}, {b}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 256}), b, a);
  const auto runs = Runs({}, {}, true);
  EXPECT_THAT(Names(runs),
              ElementsAre("norm", "gemv_quantized_dot", "glu_quantize", "gemv_quantized_dot"));
  EXPECT_THAT(Bound(runs[0][0]),
              ElementsAre(a, weight, a, b, sum, kScratchOperand, kScratchOperand));
  EXPECT_THAT(Bound(runs[2][0]), ElementsAre(a, b, kScratchOperand, kScratchOperand));
  EXPECT_STREQ(runs[0][0].label, "add+rms_norm+quantize");
  EXPECT_STREQ(runs[1][0].label, "matmul q8_0");
  EXPECT_STREQ(runs[2][0].label, "glu+quantize");
  const auto apart = Runs();
  EXPECT_THAT(Names(apart),
              ElementsAre("binary", "norm", "quantize_activations", "gemv_quantized_dot", "binary",
                          "quantize_activations", "gemv_quantized_dot"));
  EXPECT_STREQ(apart[2][0].label, "quantize");
}

TEST_F(OpRunsTest, RopesAndStoresAreOneRun) {
  const auto heads = [&](int64_t n) {
    return builder_.Tensor(TRINE_DTYPE_F32, {64, n, 3}, TRINE_ROLE_TEMP);
  };
  const uint32_t q = heads(4), k = heads(2), v = heads(2), table = builder_.F32({64, 3});
  const uint32_t slots = builder_.I32({3});
  const uint32_t keys = builder_.Tensor(TRINE_DTYPE_F16, {64, 64, 2, 4}, TRINE_ROLE_STATE);
  const uint32_t values = builder_.Tensor(TRINE_DTYPE_F16, {64, 64, 2, 4}, TRINE_ROLE_STATE);
  for (const uint32_t x : {q, k}) {
    builder_.Op(TRINE_OP_ROPE, {x, table}, {x}, trine_rope_attr{0, TRINE_ROPE_HALVES});
  }
  builder_.Op(TRINE_OP_KV_STORE, {k, slots}, {keys});
  builder_.Op(TRINE_OP_KV_STORE, {v, slots}, {values});
  const auto runs = Runs({}, {}, true);
  EXPECT_THAT(Names(runs), ElementsAre("rotate_store"));
  EXPECT_THAT(Bound(runs[0][0]), ElementsAre(q, k, v, table, slots, q, keys, keys, values));
}

class AttentionRunsTest : public OpRunsTest {
 protected:
  void Attention(int64_t rows, int64_t head, int64_t blocks, uint32_t flags = 0, bool sinks = false,
                 uint32_t window = 0) {
    const int64_t m = rows;
    const uint32_t k = builder_.Tensor(TRINE_DTYPE_F16, {head, 64, 2, blocks}, TRINE_ROLE_STATE,
                                       uint64_t{1} << 32);
    const uint32_t v = builder_.Tensor(TRINE_DTYPE_F16, {head, 64, 2, blocks}, TRINE_ROLE_STATE,
                                       uint64_t{1} << 32);
    std::vector<uint32_t> in = {
        builder_.F32({head, 4, m}), k, v, builder_.I32({blocks, 1}), builder_.I32({2}),
        builder_.I32({1})};
    if (sinks) in.push_back(builder_.F32({4}));
    builder_.Op(TRINE_OP_ATTENTION, in, {builder_.F32({head, 4, m})},
                trine_attention_attr{0, flags, 0.125f, 0.0f, window});
  }

  // Adds a product that reads the output of Attention, the first op, with heads of 64 values.
  void ProductOfItsTokens(int64_t rows) {
    trine_tensor t = builder_.tensors[builder_.ops[0].out[0]];
    t.rank = 2;
    t.dims[0] = 256;
    t.dims[1] = rows;
    builder_.tensors.push_back(t);
    const auto x = static_cast<uint32_t>(builder_.tensors.size() - 1);
    Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), x, builder_.F32({8, rows}));
  }
};

TEST_F(AttentionRunsTest, FewRowsOverManyPositionsAreCutIntoChunks) {
  Attention(1, 64, 64, TRINE_ATTENTION_CAUSAL);
  EXPECT_EQ(WhyNot(), "");
  EXPECT_THAT(Names(Runs()), ElementsAre("attention_split", "attention_join"));
  const RunScratch scratch = ScratchOf(Choices(), graph_);
  EXPECT_EQ(scratch.product_bytes, 0u);
  EXPECT_GT(scratch.attention_bytes, 0u);
}

TEST_F(AttentionRunsTest, ScratchOfAttentionIsBehindThatOfProducts) {
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 2}), builder_.F32({8, 2}));
  Attention(1, 64, 64);
  const auto runs = Runs();
  const RunScratch scratch = ScratchOf(Choices(), graph_);
  for (const OpRun& run : runs[1]) {
    for (const OpRun::Operand& operand : run.operands) {
      if (operand.tensor != kScratchOperand) continue;
      EXPECT_EQ(operand.offset, scratch.product_bytes);
    }
  }
}

TEST_F(AttentionRunsTest, QuantisesInItsLastRun) {
  Attention(1, 64, 64);
  ProductOfItsTokens(1);
  const auto runs = Runs({}, {}, true);
  EXPECT_THAT(Names(runs), ElementsAre("attention_split", "attention_join", "gemv_quantized_dot"));
  const RunScratch scratch = ScratchOf(Choices(), graph_);
  EXPECT_EQ(runs[0][0].operands[6].offset, scratch.product_bytes) << "chunks";
  EXPECT_EQ(runs[0][1].operands[0].offset, scratch.product_bytes);
  EXPECT_EQ(runs[0][1].operands[5].tensor, kScratchOperand);
  EXPECT_EQ(runs[0][1].operands[5].offset, 0u) << "activations";
  EXPECT_EQ(runs[0][1].operands[5].bytes, scratch.product_bytes);
}

TEST_F(AttentionRunsTest, PositionsOfARunDecideHowItIsCut) {
  Attention(1, 64, 64);
  builder_.params.push_back({TRINE_PARAM_KV_POSITIONS, 0, 0, 4096});
  EXPECT_EQ(WhyNot(), "");
  EXPECT_EQ(Names(Runs({}, {200})).size(), 1u) << "one chunk needs no joining";
  EXPECT_EQ(Names(Runs({}, {4096})).size(), 2u);
}

TEST_F(AttentionRunsTest, HeadsTooWideForSharedMemoryAreRefused) {
  Attention(1, 512, 4);
  caps_.max_shared_bytes = 1024;
  EXPECT_THAT(WhyNot(), HasSubstr("too wide for the device's shared memory"));
}

TEST_F(AttentionRunsTest, CachesBeyondABindingAreRefused) {
  Attention(1, 64, 64);
  caps_.max_storage_range = 65536;
  const std::string sentence =
      "a layer's cache is larger than the device can bind: 1048576 bytes, of at most 65536; a "
      "shorter context fits";
  EXPECT_EQ(WhyNot(), sentence);
  const uint32_t cache =
      builder_.Tensor(TRINE_DTYPE_F16, {64, 64, 2, 64}, TRINE_ROLE_STATE, uint64_t{1} << 32);
  builder_.Op(TRINE_OP_KV_STORE, {builder_.F32({64, 2, 1}), builder_.I32({1})}, {cache});
  EXPECT_EQ(WhyNot(1), sentence);
}

// Words of the push constants, in the order of kernels/vulkan/runs/attention.cc.
enum AttentionWord {
  kQuery = 0,
  kKeys = 3,
  kValues = 7,
  kSinks = 15,
  kY = 16,
  kTokens = 27,
  kFirstToken = 31
};

TEST_F(AttentionRunsTest, LongRunsAreCutByTokens) {
  Attention(100, 64, 64);
  ASSERT_EQ(Runs()[0].size(), 1u);
  const uint64_t whole = Runs()[0][0].operations;
  EXPECT_EQ(whole, 4u * 64 * 4 * 100 * 4096);
  submit_operations_ = whole / 100 * 30;
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 5u) << "24 tokens, then the rest";
  uint32_t token = 0;
  for (const OpRun& run : runs[0]) {
    EXPECT_EQ(run.run.push[kFirstToken], token);
    EXPECT_EQ(run.run.push[kQuery], token * 4 * 64);
    EXPECT_EQ(run.run.push[kY], token * 4 * 64);
    EXPECT_EQ(run.run.push[kKeys], 0u);
    EXPECT_EQ(run.run.groups[1], 2u);
    EXPECT_LE(run.operations, submit_operations_);
    token += run.run.push[kTokens];
  }
  EXPECT_EQ(token, 100u);
}

TEST_F(AttentionRunsTest, LongRunsOfOneTokenAreCutByHeads) {
  Attention(3, 64, 64);
  submit_operations_ = 1;
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 3u * 2 * 2) << "tokens, heads of the cache; a run, and one that joins";
  for (uint32_t i = 0; i < runs[0].size(); i += 2) {
    const OpRun& run = runs[0][i];
    const uint32_t token = i / 4, head = i / 2 % 2;
    EXPECT_STREQ(run.run.shader->name, "attention_split");
    EXPECT_EQ(run.run.groups[1], 1u);
    EXPECT_EQ(run.run.push[kTokens], 1u);
    EXPECT_EQ(run.run.push[kFirstToken], token);
    EXPECT_EQ(run.run.push[kQuery], (token * 4 + head * 2) * 64);
    EXPECT_EQ(run.run.push[kY], (token * 4 + head * 2) * 64);
    EXPECT_EQ(run.run.push[kKeys], head * 64 * 64 / 2) << "in words of two halves";
    EXPECT_EQ(run.run.push[kValues], head * 64 * 64 / 2);
    EXPECT_STREQ(runs[0][i + 1].run.shader->name, "attention_join");
    EXPECT_EQ(runs[0][i + 1].run.groups[0], 2u) << "heads of q";
  }
}

// However it is cut, by tokens or by heads, and for few or many tokens.
TEST_F(AttentionRunsTest, PartsAreQuantisedTogether) {
  Attention(100, 64, 64);
  ProductOfItsTokens(100);
  const uint32_t y = builder_.ops[0].out[0];
  const uint64_t whole = uint64_t{4} * 64 * 4 * 100 * 4096;
  ASSERT_EQ(Runs({}, {}, true)[0].size(), 1u);
  Misalignment misaligned(builder_.tensors.size(), 0);
  misaligned[y] = misaligned[y + 1] = 8;
  for (const uint64_t most : {whole - 1, whole / 100 * 30, uint64_t{1}}) {
    submit_operations_ = most;
    const auto runs = Runs(misaligned, {}, true);
    const RunScratch scratch = ScratchOf(Choices(), graph_);
    ASSERT_GT(runs[0].size(), 2u) << most;
    for (size_t i = 0; i + 1 < runs[0].size(); ++i) {
      const OpRun& part = runs[0][i];
      EXPECT_STREQ(part.label, "attention+quantize");
      const std::string name = part.run.shader->name;
      EXPECT_TRUE(name.starts_with("attention_")) << name;
      if (name != "attention_split") {
        EXPECT_EQ(part.run.constants.back(), 0u) << "a part does not quantise";
        EXPECT_EQ(part.operands.back().tensor, y);
      }
    }
    const OpRun& last = runs[0].back();
    EXPECT_STREQ(last.run.shader->name, "quantize_activations");
    EXPECT_STREQ(last.label, "quantize");
    EXPECT_THAT(Bound(last), ElementsAre(y, kScratchOperand));
    EXPECT_EQ(last.operands[0].bytes, 8u + 4 * 256 * 100);
    EXPECT_EQ(last.operands[1].offset, 0u);
    EXPECT_EQ(last.operands[1].bytes, scratch.product_bytes);
    // The same as the product's own run, but for the stride of a dimension of 1.
    const auto apart = Runs(misaligned);
    EXPECT_STREQ(apart[1][0].run.shader->name, "quantize_activations");
    std::vector<uint32_t> push = apart[1][0].run.push;
    push.back() = last.run.push.back();
    EXPECT_EQ(last.run.push, push);
    EXPECT_EQ(last.run.groups, apart[1][0].run.groups);
    EXPECT_EQ(Names({runs[1]}), Names({{apart[1].begin() + 1, apart[1].end()}}));
  }
}

TEST_F(AttentionRunsTest, SinksGoWithTheirHeads) {
  Attention(1, 64, 64, 0, /*sinks=*/true);
  submit_operations_ = 1;
  const auto runs = Runs();
  ASSERT_EQ(runs[0].size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(runs[0][i].run.push[kSinks], i / 2 * 2);
}

TEST_F(AttentionRunsTest, AWindowIsLessWork) {
  Attention(100, 64, 64, TRINE_ATTENTION_CAUSAL, false, /*window=*/100);
  EXPECT_EQ(Runs()[0][0].operations, 4u * 64 * 4 * 100 * (100 + 512));
}

TEST_F(AttentionRunsTest, UnknownFlagsAreRefused) {
  Attention(1, 64, 4, TRINE_ATTENTION_CAUSAL | 1u << 7);
  EXPECT_EQ(WhyNot(), "unknown flags of attention");
}

TEST_F(OpRunsTest, UnknownAttributesAreRefused) {
  const uint32_t x = builder_.F32({8, 2}), y = builder_.F32({8, 2});
  const uint32_t heads = builder_.F32({8, 1, 2}), turned = builder_.F32({8, 1, 2});
  builder_.Op(TRINE_OP_ROPE, {heads, y}, {turned}, trine_rope_attr{0, 9});
  builder_.Op(TRINE_OP_GLU, {x, x}, {y}, trine_glu_attr{0, TRINE_ACT_RELU, 0, 0});
  builder_.Op(TRINE_OP_ACTIVATION, {x}, {y}, trine_activation_attr{0, TRINE_ACT_SWIGLU_CLAMPED});
  const uint32_t ids = builder_.I32({2, 2}), weights = builder_.F32({2, 2});
  builder_.Op(TRINE_OP_MOE_ROUTE, {x}, {ids, weights}, trine_moe_route_attr{0, 9, 0, 1});
  builder_.Op(TRINE_OP_MOE_ROUTE, {x}, {ids, weights},
              trine_moe_route_attr{0, TRINE_MOE_SOFTMAX, 1u << 9, 1});
  EXPECT_EQ(WhyNot(0), "unknown rope mode");
  EXPECT_EQ(WhyNot(1), "unknown activation of a glu");
  EXPECT_EQ(WhyNot(2), "unknown activation");
  EXPECT_EQ(WhyNot(3), "unknown scoring of experts");
  EXPECT_EQ(WhyNot(4), "unknown flags of a route");
}

TEST_F(OpRunsTest, AnOpWhoseShaderTheDeviceCannotRunIsRefused) {
  caps_.storage8 = caps_.storage16 = false;
  Matmul(Weights(TRINE_DTYPE_Q8_0, {256, 8}), builder_.F32({256, 2}), builder_.F32({8, 2}));
  EXPECT_NE(WhyNot(), "");
}

}  // namespace
}  // namespace trine::vulkan
