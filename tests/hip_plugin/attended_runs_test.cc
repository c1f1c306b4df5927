// Tests when the ops before attention become part of its launch.
#include <algorithm>

#include "tests/hip_plugin/group_runs_fixture.h"

namespace trine::hip {
namespace {

// The ops before the attention of one token, and the attention.
class AttendedTest : public GroupRunsTest {
 protected:
  static constexpr int64_t kHeads = 4, kHead = 64;

  AttendedTest() {
    q_ = Rows();
    k_ = Rows();
    v_ = Rows();
    rotated_q_ = Rows();
    rotated_k_ = Rows();
    y_ = Rows();
    table_ = builder_.Tensor(TRINE_DTYPE_F32, {kHead, m_}, TRINE_ROLE_IO);
    slots_ = builder_.Tensor(TRINE_DTYPE_I32, {m_}, TRINE_ROLE_IO);
    keys_ = Cache();
    values_ = Cache();
  }

  uint32_t Rows() { return builder_.Tensor(TRINE_DTYPE_F32, {kHead, kHeads, m_}, TRINE_ROLE_TEMP); }
  uint32_t Cache() {
    return builder_.Tensor(TRINE_DTYPE_F16, {kHead, 16, kHeads, 8}, TRINE_ROLE_STATE);
  }
  void Before() {
    builder_.Op(TRINE_OP_ROPE, {q_, table_}, {rotated_q_}, trine_rope_attr{0, TRINE_ROPE_HALVES});
    builder_.Op(TRINE_OP_ROPE, {k_, table_}, {rotated_k_}, trine_rope_attr{0, TRINE_ROPE_HALVES});
    builder_.Op(TRINE_OP_KV_STORE, {rotated_k_, slots_}, {keys_});
    builder_.Op(TRINE_OP_KV_STORE, {v_, slots_}, {values_});
  }
  void Attention() {
    trine_attention_attr attr{};
    attr.scale = 0.125f;
    attr.flags = TRINE_ATTENTION_CAUSAL;
    builder_.Op(
        TRINE_OP_ATTENTION,
        {rotated_q_, keys_, values_, builder_.Tensor(TRINE_DTYPE_I32, {8, 1}),
         builder_.Tensor(TRINE_DTYPE_I32, {2}), builder_.Tensor(TRINE_DTYPE_I32, {1}), TRINE_NONE},
        {y_}, attr);
  }
  // Norms the rows before they are rotated.
  void Norms() {
    q_ = Normed(q_);
    k_ = Normed(k_);
  }
  uint32_t Normed(uint32_t x, int64_t head = kHead) {
    const uint32_t y = Rows();
    builder_.Op(TRINE_OP_RMS_NORM, {x, builder_.Tensor(TRINE_DTYPE_F32, {head})}, {y},
                trine_norm_attr{0, 1e-5f});
    return y;
  }
  bool Begins(const std::string& joined, int64_t tokens = 1) {
    const std::vector<std::string> runs = Runs(tokens);
    return std::any_of(runs.begin(), runs.end(),
                       [&](const std::string& name) { return name.rfind(joined, 0) == 0; });
  }
  bool IsJoined(int64_t tokens = 1) {
    return Begins("rope+rope+kv_store+kv_store+attention", tokens);
  }
  bool IsNormedAlong(int64_t tokens = 1) {
    return Begins("rms_norm+rms_norm+rope+rope+kv_store+kv_store+attention", tokens);
  }

  uint32_t q_, k_, v_, rotated_q_, rotated_k_, y_, table_, slots_, keys_, values_;
};

TEST_F(AttendedTest, OfOneToken) {
  Before();
  Attention();
  EXPECT_TRUE(IsJoined());
  EXPECT_FALSE(IsJoined(2));
}

TEST_F(AttendedTest, NotOfOtherKeys) {
  Before();
  keys_ = Cache();
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotOfOtherValues) {
  Before();
  values_ = Cache();
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotIfOthersReadARotatedRow) {
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {rotated_q_, rotated_q_}, {Rows()});
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotIfTheKeysAreReadElsewhere) {
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {rotated_k_, rotated_k_}, {Rows()});
  EXPECT_FALSE(IsJoined());
}

// Blocks would write what others still read.
TEST_F(AttendedTest, NotIntoTheRows) {
  Before();
  builder_.tensors[y_].slot = builder_.tensors[v_].slot;
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, WithNormsOfHeads) {
  Norms();
  Before();
  Attention();
  EXPECT_TRUE(IsNormedAlong());
  EXPECT_FALSE(IsNormedAlong(2));
  EXPECT_FALSE(IsJoined(2));
}

TEST_F(AttendedTest, NotWithOneNorm) {
  q_ = Normed(q_);
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithNormsTheOtherWayRound) {
  k_ = Normed(k_);
  q_ = Normed(q_);
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithNormsThatOthersRead) {
  Norms();
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {k_, k_}, {Rows()});
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithANormThatHasNoWeight) {
  Norms();
  Before();
  Attention();
  EXPECT_TRUE(IsNormedAlong());
  const uint32_t no_weight[] = {builder_.ops[1].in[0], TRINE_NONE};
  builder_.ops[1].in = no_weight;
  EXPECT_FALSE(IsNormedAlong());
}

TEST_F(AttendedTest, NotWithLayerNorms) {
  Norms();
  builder_.ops[0].kind = TRINE_OP_LAYER_NORM;
  const uint32_t in[] = {builder_.ops[0].in[0], builder_.ops[0].in[1], TRINE_NONE};
  builder_.ops[0].in = in;
  builder_.ops[0].n_in = 3;
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

// Blocks would store new rows where others still read what is normed.
TEST_F(AttendedTest, NotWithCachesInWhatIsNormed) {
  const uint32_t rows[] = {q_, k_};
  Norms();
  Before();
  Attention();
  EXPECT_TRUE(IsNormedAlong());
  for (const uint32_t cache : {keys_, values_}) {
    const uint32_t own = builder_.tensors[cache].slot;
    for (const uint32_t row : rows) {
      builder_.tensors[cache].slot = builder_.tensors[row].slot;
      EXPECT_FALSE(IsNormedAlong());
      EXPECT_TRUE(IsJoined());
    }
    builder_.tensors[cache].slot = own;
  }
}

// Blocks would write the result where others still read what is normed.
TEST_F(AttendedTest, NotIntoWhatIsNormed) {
  builder_.tensors[y_].slot = builder_.tensors[k_].slot;
  Norms();
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

}  // namespace
}  // namespace trine::hip
