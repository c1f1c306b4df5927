#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/quant/activation.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

constexpr int64_t kWidth = 64, kHeads = 4, kKvHeads = 2, kBlockPositions = 48, kBlocks = 16;
constexpr int64_t kTokens = 6;

TEST(KvStoreTest, WritesSlotsAndSkipsTheOthers) {
  Random random(1);
  for (Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV}) {
    Tensor src(Type::kF32, {kWidth, kKvHeads, 3}), slots(Type::kI32, {3});
    Tensor cache(type, {kWidth, 4, kKvHeads, 2}), untouched(type, {kWidth, 4, kKvHeads, 2});
    src.FillWith(Fill::kUniform, &random);
    src.Row(1)[0] = 1e9f;
    src.Row(1)[1] = 0x1p-31f;
    slots.Set({6, -1, 8});
    KvStore(src, slots, cache, AllRows(src));
    // Slot 6 is offset 2 of block 1; head 1 of it is row (1 * kKvHeads + 1) * 4 + 2.
    const std::vector<float> stored = cache.Decode(14);
    for (int i = 2; i < kWidth; ++i) {
      if (type == Type::kQ8_KV && i < 32) continue;  // shares its scale with the outlier
      EXPECT_NEAR(stored[i], src.Row(1)[i], 0.005f);
    }
    EXPECT_NEAR(stored[0], type == Type::kF16 ? 65504.0f : 1e9f, 2e6f);
    EXPECT_EQ(Bits(stored[1]), 0u) << "below the floor";
    for (int64_t row = 0; row < Rows(cache); ++row) {
      if (row == 10 || row == 14) continue;
      EXPECT_EQ(cache.Decode(row), untouched.Decode(row)) << row;
    }
  }
}

// Two sequences in one batch, their cache blocks interleaved: 5 tokens at the end of 600 positions,
// and 1 at the end of 130.
class AttentionTest : public testing::TestWithParam<Type> {
 protected:
  AttentionTest()
      : q_(Type::kF32, {kWidth, kHeads, kTokens}),
        k_(GetParam(), {kWidth, kBlockPositions, kKvHeads, kBlocks}),
        v_(GetParam(), {kWidth, kBlockPositions, kKvHeads, kBlocks}),
        block_table_(Type::kI32, {13, 2}),
        q_offsets_(Type::kI32, {3}),
        kv_lengths_(Type::kI32, {2}),
        sinks_(Type::kF32, {kHeads}),
        out_(Type::kF32, {kWidth, kHeads, kTokens}) {
    Random random(2);
    q_.FillWith(Fill::kUniform, &random);
    FillCache(k_, &random);
    FillCache(v_, &random);
    block_table_.Set({15, 0, 14, 1, 13, 2, 12, 3, 11, 4, 10, 5, 9, 6, 7, 8});
    q_offsets_.Set({0, 5, 6});
    kv_lengths_.Set({600, 130});
    sinks_.Set({0.5f, -1.0f, 3.0f, 0.0f});
    inputs_ = {q_, k_, v_, block_table_, q_offsets_, kv_lengths_, nullptr};
  }

  static void FillCache(const Tensor& cache, Random* random) {
    Tensor src(Type::kF32, {kWidth, kKvHeads, kBlockPositions * kBlocks});
    Tensor slots(Type::kI32, {kBlockPositions * kBlocks});
    src.FillWith(Fill::kUniform, random);
    for (int32_t i = 0; i < kBlockPositions * kBlocks; ++i) I32Row(slots, 0)[i] = i;
    KvStore(src, slots, cache, AllRows(src));
  }

  std::vector<float> CacheRow(const Tensor& cache, int64_t sequence, int64_t kv_head,
                              int64_t position) const {
    const int64_t block = I32Row(block_table_, sequence)[position / kBlockPositions];
    return cache.Decode((block * kKvHeads + kv_head) * kBlockPositions +
                        position % kBlockPositions);
  }

  // Returns the result of the plain formula, in double.
  std::vector<double> Expected(int64_t token, int64_t head, const AttentionParams& params) const {
    const int64_t sequence = token < 5 ? 0 : 1;
    const int64_t length = sequence == 0 ? 600 : 130;
    const int64_t position = sequence == 0 ? 595 + token : 129;
    std::vector<double> scores, out(kWidth, 0.0);
    std::vector<std::vector<float>> values;
    double largest = inputs_.sinks ? sinks_.Row(0)[head] : -1e30;
    for (int64_t t = 0; t < length; ++t) {
      if (params.causal && t > position) continue;
      if (params.window > 0 && t <= position - params.window) continue;
      const std::vector<float> key = CacheRow(k_, sequence, head / 2, t);
      double score = 0.0;
      for (int64_t i = 0; i < kWidth; ++i)
        score += double{q_.Row(token * kHeads + head)[i]} * key[i];
      score *= params.scale;
      if (params.softcap != 0.0f) score = params.softcap * std::tanh(score / params.softcap);
      scores.push_back(score);
      values.push_back(CacheRow(v_, sequence, head / 2, t));
      largest = std::max(largest, score);
    }
    double sum = inputs_.sinks ? std::exp(sinks_.Row(0)[head] - largest) : 0.0;
    for (size_t t = 0; t < scores.size(); ++t) {
      const double p = std::exp(scores[t] - largest);
      sum += p;
      for (int64_t i = 0; i < kWidth; ++i) out[i] += p * values[t][i];
    }
    for (double& value : out) value /= sum;
    return out;
  }

  void ExpectEqualsDouble(const AttentionParams& params) {
    Attention(inputs_, params, out_, AllRows(out_));
    for (int64_t row = 0; row < kHeads * kTokens; ++row) {
      const std::vector<double> want = Expected(row / kHeads, row % kHeads, params);
      for (int64_t i = 0; i < kWidth; ++i) EXPECT_NEAR(out_.Row(row)[i], want[i], 2e-6) << row;
    }
  }

  Tensor q_, k_, v_, block_table_, q_offsets_, kv_lengths_, sinks_, out_;
  AttentionInputs inputs_;
};

TEST_P(AttentionTest, CausalEqualsDouble) { ExpectEqualsDouble({0.5f, 0.0f, 0, true}); }
TEST_P(AttentionTest, FullEqualsDouble) { ExpectEqualsDouble({0.5f, 0.0f, 0, false}); }
TEST_P(AttentionTest, WindowEqualsDouble) { ExpectEqualsDouble({0.5f, 0.0f, 100, true}); }
TEST_P(AttentionTest, SoftcapEqualsDouble) { ExpectEqualsDouble({2.0f, 5.0f, 300, true}); }
TEST_P(AttentionTest, SinksEqualDouble) {
  inputs_.sinks = &sinks_.view();
  ExpectEqualsDouble({0.5f, 0.0f, 0, true});
}

// A prompt cut into batches gives the bits of the whole: here tokens 3 and 4 alone.
TEST_P(AttentionTest, DoesNotDependOnTheBatch) {
  const AttentionParams params = {0.5f, 0.0f, 70, true};
  Attention(inputs_, params, out_, AllRows(out_));
  Tensor offsets(Type::kI32, {2}), lengths(Type::kI32, {1}), out(Type::kF32, {kWidth, kHeads, 2});
  offsets.Set({0, 2});
  lengths.Set({600});
  AttentionInputs part = inputs_;
  part.q.data = RowAt(q_, 0, 3, 0);
  part.q.dims[2] = 2;
  part.block_table.dims[1] = 1;
  part.q_offsets = offsets;
  part.kv_lengths = lengths;
  Attention(part, params, out, AllRows(out));
  for (int64_t row = 0; row < kHeads * 2; ++row) {
    EXPECT_EQ(out.Decode(row), out_.Decode(3 * kHeads + row));
  }
}

TEST_P(AttentionTest, NothingVisibleGivesZeros) {
  kv_lengths_.Set({0, 130});
  inputs_.sinks = &sinks_.view();
  Attention(inputs_, {}, out_, AllRows(out_));
  EXPECT_EQ(out_.Decode(0), std::vector<float>(kWidth, 0.0f));
  EXPECT_NE(out_.Decode(5 * kHeads), std::vector<float>(kWidth, 0.0f));
}

INSTANTIATE_TEST_SUITE_P(CacheTypes, AttentionTest,
                         testing::Values(Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV),
                         [](const testing::TestParamInfo<Type>& info) {
                           return quant::Traits(info.param).name;
                         });

}  // namespace
}  // namespace trine::reference
