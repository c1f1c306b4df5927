#include "backends/cpu/attention_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/cpu/levels/levels.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu {
namespace {

using quant::Type;
using reference::Tensor;

constexpr int64_t kHeads = 6, kKvHeads = 2, kWidth = 64, kPositions = 16;

// Two sequences of one token each, and all inputs of attention for them.
class AttentionRunTest : public testing::Test {
 protected:
  AttentionRunTest() {
    quant::Random random(7);
    q_.FillWith(quant::Fill::kUniform, &random);
    Tensor src(Type::kF32, {kWidth, kKvHeads, kBlocks * kPositions});
    Tensor slots(Type::kI32, {kBlocks * kPositions});
    for (int32_t i = 0; i < kBlocks * kPositions; ++i) I32Row(slots, 0)[i] = i;
    for (const Tensor* cache : {&k_, &v_}) {
      src.FillWith(quant::Fill::kUniform, &random);
      reference::KvStore(src, slots, *cache, reference::AllRows(src));
    }
    for (int32_t i = 0; i < kBlocks; ++i) {
      I32Row(block_table_, 0)[i] = kBlocks - 1 - i;
      I32Row(block_table_, 1)[i] = i;
    }
    q_offsets_.Set({0, 1, 2});
    kv_lengths_.Set({1000, 300});
    trine_attention_attr attr{};
    attr.struct_size = sizeof(attr);
    attr.flags = TRINE_ATTENTION_CAUSAL;
    attr.scale = 0.125f;
    op_.kind = TRINE_OP_ATTENTION;
    op_.attr.resize(sizeof(attr));
    std::memcpy(op_.attr.data(), &attr, sizeof(attr));

    for (const Tensor* in : {&q_, &k_, &v_, &block_table_, &q_offsets_, &kv_lengths_}) {
      call_.in[std::find(call_.in, call_.in + 6, nullptr) - call_.in] = &in->view();
    }
    call_.out[0] = &dst_.view();
    call_.op = &op_;
    call_.kernels = cpu_kernels::FindLevel("baseline")->table;

    reference::Attention({q_, k_, v_, block_table_, q_offsets_, kv_lengths_}, {0.125f, 0, 0, true},
                         dst_, reference::AllRows(dst_));
    expected_ = dst_.bytes();
  }

  void MakeRoom(int64_t chunks) {
    partials_.resize(static_cast<size_t>(2 * kHeads * chunks * cpu_kernels::PartialFloats(kWidth)));
    room_.partials = partials_.data();
    room_.partial_floats = static_cast<int64_t>(partials_.size());
    room_.done = std::vector<std::atomic<uint32_t>>(2 * kKvHeads);
    call_.room = &room_;
  }

  // Checks that the shares of `workers` threads give what the reference gives.
  testing::AssertionResult RunsWith(uint32_t workers) {
    std::memset(dst_.view().data, 0xff, dst_.bytes().size());
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < workers; ++w) {
      threads.emplace_back([this, w, workers] { RunAttention(call_, {w, workers}); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::atomic<uint32_t>& done : room_.done) {
      if (done != 0) return testing::AssertionFailure() << "a counter was not set back";
    }
    return dst_.bytes() == expected_ ? testing::AssertionSuccess()
                                     : testing::AssertionFailure() << "the bits differ";
  }

  bool PartialsWereWritten() const {
    return std::any_of(partials_.begin(), partials_.end(), [](float x) { return x != 0.0f; });
  }

  static constexpr int64_t kBlocks = 64;
  Tensor q_{Type::kF32, {kWidth, kHeads, 2}}, dst_{Type::kF32, {kWidth, kHeads, 2}};
  Tensor k_{Type::kF16, {kWidth, kPositions, kKvHeads, kBlocks}};
  Tensor v_{Type::kF16, {kWidth, kPositions, kKvHeads, kBlocks}};
  Tensor block_table_{Type::kI32, {kBlocks, 2}}, q_offsets_{Type::kI32, {3}};
  Tensor kv_lengths_{Type::kI32, {2}};
  sdk::Op op_;
  OpCall call_;
  std::vector<float> partials_;
  AttentionRoom room_;
  std::vector<std::byte> expected_;
};

TEST_F(AttentionRunTest, GivesTheSameBitsForAnyNumberOfWorkers) {
  for (const bool has_room : {false, true}) {
    if (has_room) MakeRoom(4);
    for (uint32_t workers = 1; workers <= 17; ++workers) {
      EXPECT_TRUE(RunsWith(workers)) << workers << " workers, with room: " << has_room;
    }
  }
}

TEST_F(AttentionRunTest, IsCutIntoPiecesOnlyWhereThatHelps) {
  MakeRoom(4);
  EXPECT_TRUE(RunsWith(4));  // one pair of token and kv head for each worker
  EXPECT_FALSE(PartialsWereWritten());
  EXPECT_TRUE(RunsWith(3));
  EXPECT_TRUE(PartialsWereWritten());
}

TEST_F(AttentionRunTest, DoesWithoutPiecesWhereTheRoomIsTooSmall) {
  MakeRoom(3);  // 1000 positions are four chunks
  EXPECT_TRUE(RunsWith(8));
  EXPECT_FALSE(PartialsWereWritten());
}

}  // namespace
}  // namespace trine::cpu
