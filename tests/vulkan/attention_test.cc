#include "kernels/vulkan/runs/attention.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "kernels/reference/ops.h"
#include "tests/vulkan/quantized_columns.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::AllRows;
using reference::Random;
using reference::Tensor;
using reference::Type;

constexpr Type kCacheTypes[] = {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV};

class AttentionShaderTest : public ShaderTest {};

TEST_F(AttentionShaderTest, Rope) {
  Random random(1);
  for (const reference::RopeMode mode :
       {reference::RopeMode::kInterleaved, reference::RopeMode::kHalves}) {
    for (const auto& [d, pairs, heads, tokens] :
         {std::array<int64_t, 4>{64, 32, 1, 1}, {128, 64, 5, 3}, {80, 16, 3, 9}, {7, 3, 2, 33}}) {
      for (const Fill fill : quant::kAllFills) {
        Tensor x(Type::kF32, {d, heads, tokens}, 4), table(Type::kF32, {2 * pairs, tokens}, 8);
        Tensor want(Type::kF32, {d, heads, tokens});
        x.FillWith(fill, &random);
        table.FillWith(Fill::kUniform, &random);
        Bytes in = OperandOf(x, 4), t = OperandOf(table, 8), out = OperandOf(want);
        reference::Rope(x, table, mode, want, AllRows(want));
        const TensorView x_view = ViewOf(x, 4), t_view = ViewOf(table, 8);
        absl::Status status =
            runner_->Run({RopeRun(x_view, t_view, mode, ViewOf(want), 64)}, {&in, &t, &out});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(out, OperandOf(want)), "") << d;
        reference::Rope(x, table, mode, x, AllRows(x));
        status = runner_->Run({RopeRun(x_view, t_view, mode, x_view, 64)}, {&in, &t, &in});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(in, OperandOf(x, 4)), "") << d << " in place";
      }
    }
  }
}

TEST_F(AttentionShaderTest, KvStore) {
  Random random(2);
  for (const Type type : kCacheTypes) {
    for (const Fill fill : quant::kAllFills) {
      for (const int64_t positions : {1, 16, 256}) {
        const int64_t d = type == Type::kQ8_KV ? 96 : 51, blocks = positions == 1 ? 50 : 3;
        Tensor x(Type::kF32, {d, 3, 7}, 4), slots(Type::kI32, {7});
        Tensor cache(type, {d, positions, 3, blocks}, 4);
        x.FillWith(fill, &random);
        if (fill == Fill::kUniform) {
          for (int64_t i = 0; i < d; ++i) x.Row(2)[i] *= 0x1p-30f;
          x.Row(3)[5] = 3e9f;
        }
        const auto last = static_cast<int32_t>(positions * blocks);
        slots.Set({7, 0, last - 1, -1, last, 11, 2'000'000'000});
        Bytes in = OperandOf(x), s = OperandOf(slots, 4), out = OperandOf(cache, 8);
        reference::KvStore(x, slots, cache, AllRows(x));
        const KernelRun run = KvStoreRun(ViewOf(x), ViewOf(slots, 4), ViewOf(cache, 8), 64);
        const absl::Status status = runner_->Run({run}, {&in, &s, &out});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(out, OperandOf(cache, 8)), "") << quant::Traits(type).name;
      }
    }
  }
}

// Compares one run of rope of q and k with both stores to the four ops.
class RotateStoreTest : public AttentionShaderTest {
 protected:
  struct What {
    Type keys, values;
    bool rotates, stores, writes_k, in_place;
    reference::RopeMode mode = reference::RopeMode::kHalves;
    int64_t d = 64, pairs = 32, dv = 64;
  };

  void Check(const What& what, Fill fill) {
    constexpr int64_t kHeads = 5, kKvHeads = 3, kTokens = 7, kPositions = 16, kBlocks = 3;
    Random random(7);
    Tensor q(Type::kF32, {what.d, kHeads, kTokens}, 4), k(Type::kF32, {what.d, kKvHeads, kTokens});
    Tensor v(Type::kF32, {what.dv, kKvHeads, kTokens}, 8);
    Tensor table(Type::kF32, {2 * what.pairs, kTokens}, 4), slots(Type::kI32, {kTokens});
    Tensor want_q(Type::kF32, {what.d, kHeads, kTokens}, 4);
    Tensor want_k(Type::kF32, {what.d, kKvHeads, kTokens});
    Tensor keys(what.keys, {what.d, kPositions, kKvHeads, kBlocks}, 4);
    Tensor values(what.values, {what.dv, kPositions, kKvHeads, kBlocks}, 4);
    for (Tensor* t : {&q, &k, &v}) t->FillWith(fill, &random);
    table.FillWith(Fill::kUniform, &random);
    slots.Set({7, 0, 47, -1, 48, 11, 2'000'000'000});
    RotateStore work;
    work.mode = what.mode;
    work.k = ViewOf(k, 4);
    if (what.rotates) {
      work.table = ViewOf(table, 8);
      work.q = ViewOf(q, 4);
      work.rotated_q = what.in_place ? *work.q : ViewOf(want_q, 8);
      if (what.writes_k) work.rotated_k = what.in_place ? work.k : ViewOf(want_k);
    }
    if (what.stores) {
      work.slots = ViewOf(slots, 4);
      work.v = ViewOf(v, 12);
      work.key_cache = ViewOf(keys, 8);
      work.value_cache = ViewOf(values, 4);
    }
    std::vector<Bytes> operands = {OperandOf(q, 4),     OperandOf(k, 4),     OperandOf(v, 12),
                                   OperandOf(table, 8), OperandOf(slots, 4), OperandOf(want_q, 8),
                                   OperandOf(want_k),   OperandOf(keys, 8),  OperandOf(values, 4)};
    std::vector<Bytes> want = operands;
    std::vector<Bytes*> pointers;
    for (Bytes& operand : operands) pointers.push_back(&operand);
    if (what.in_place) {
      pointers[kRotatedQ] = pointers[kRotateQ];
      pointers[kRotatedK] = pointers[kRotateK];
    }
    if (what.rotates) {
      reference::Rope(q, table, what.mode, want_q, AllRows(want_q));
      reference::Rope(k, table, what.mode, want_k, AllRows(want_k));
      want[what.in_place ? kRotateQ : kRotatedQ] = OperandOf(want_q, what.in_place ? 4 : 8);
      if (what.writes_k) {
        want[what.in_place ? kRotateK : kRotatedK] = OperandOf(want_k, what.in_place ? 4 : 0);
      }
    }
    if (what.stores) {
      reference::KvStore(what.rotates ? want_k : k, slots, keys, AllRows(k));
      reference::KvStore(v, slots, values, AllRows(v));
      want[kKeyCache] = OperandOf(keys, 8);
      want[kValueCache] = OperandOf(values, 4);
    }
    const absl::Status status = runner_->Run({RotateStoreRun(work, 64)}, pointers);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(Difference(operands[i], want[i]), "") << "operand " << i;
    }
  }
};

TEST_F(RotateStoreTest, AllOfIt) {
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (const Fill fill : quant::kAllFills) {
      Check({type, Type::kF16, true, true, false, true}, fill);
      Check({Type::kF16, type, true, true, true, false}, fill);
    }
  }
  Check({Type::kF16, Type::kF16, true, true, true, true}, Fill::kUniform);
}

TEST_F(RotateStoreTest, OddWidths) {
  for (const auto mode : {reference::RopeMode::kInterleaved, reference::RopeMode::kHalves}) {
    Check({Type::kF16, Type::kF16, true, true, false, true, mode, 80, 16, 51}, Fill::kUniform);
    Check({Type::kF16, Type::kF16, true, true, true, true, mode, 7, 3, 64}, Fill::kUniform);
  }
}

TEST_F(RotateStoreTest, PartsOfIt) {
  Check({Type::kF16, Type::kBF16, false, true, false, false}, Fill::kUniform);
  Check({Type::kF16, Type::kF16, true, false, true, true}, Fill::kUniform);
  Check({Type::kF16, Type::kF16, true, false, true, false}, Fill::kUniform);
}

struct Sequence {
  int64_t tokens, kv_length;
};

struct Shape {
  std::vector<Sequence> sequences;
  int64_t d, dv, heads, kv_heads, block_positions;
  reference::AttentionParams params;
  bool sinks = false;
  Fill fill = Fill::kUniform;
  int64_t padding = 0;        // bytes after each row of the cache
  int64_t spare_offsets = 0;  // entries of q_offsets that no sequence uses
  int64_t spare_tokens = 0;   // tokens that are in no sequence
};

// All operands of one attention, with the reference's result.
class Case {
 public:
  Case(Type type, const Shape& s, uint64_t seed) : params_(s.params), random_(seed) {
    int64_t tokens = s.spare_tokens, blocks = 0;
    for (const Sequence& q : s.sequences) {
      tokens += q.tokens;
      longest_ = std::max(longest_, q.kv_length);
      blocks += (q.kv_length + s.block_positions - 1) / s.block_positions;
    }
    const auto n_seqs = static_cast<int64_t>(s.sequences.size());
    const int64_t table_blocks = (longest_ + s.block_positions - 1) / s.block_positions + 1;
    q_ = std::make_unique<Tensor>(Type::kF32, Dims{s.d, s.heads, tokens}, 4);
    k_ =
        std::make_unique<Tensor>(type, Dims{s.d, s.block_positions, s.kv_heads, blocks}, s.padding);
    v_ = std::make_unique<Tensor>(type, Dims{s.dv, s.block_positions, s.kv_heads, blocks},
                                  s.padding);
    table_ = std::make_unique<Tensor>(Type::kI32, Dims{table_blocks, n_seqs}, 4);
    offsets_ = std::make_unique<Tensor>(Type::kI32, Dims{n_seqs + 1 + s.spare_offsets});
    lengths_ = std::make_unique<Tensor>(Type::kI32, Dims{n_seqs});
    sinks_ = std::make_unique<Tensor>(Type::kF32, Dims{s.heads});
    y_ = std::make_unique<Tensor>(Type::kF32, Dims{s.dv, s.heads, tokens}, 8);
    q_->FillWith(s.fill, &random_);
    sinks_->FillWith(Fill::kUniform, &random_);
    FillCache(*k_, s.fill);
    FillCache(*v_, s.fill);
    FillTables(s, blocks);
    has_sinks_ = s.sinks;
    operands_ = {OperandOf(*q_, 4),     OperandOf(*k_, 8),       OperandOf(*v_, 4),
                 OperandOf(*table_, 4), OperandOf(*offsets_, 8), OperandOf(*lengths_, 4),
                 OperandOf(*sinks_, 4), OperandOf(*y_, 12)};
    reference::AttentionInputs inputs{*q_, *k_, *v_, *table_, *offsets_, *lengths_};
    if (has_sinks_) inputs.sinks = &sinks_->view();
    reference::Attention(inputs, params_, *y_, AllRows(*y_));
  }

  std::string Check(ShaderRunner* runner, const AttentionCut& cut) {
    const TensorView sinks = ViewOf(*sinks_, 4);
    AttentionViews views = {
        ViewOf(*q_, 4),       ViewOf(*k_, 8),       ViewOf(*v_, 4), ViewOf(*table_, 4),
        ViewOf(*offsets_, 8), ViewOf(*lengths_, 4), nullptr,        ViewOf(*y_, 12)};
    if (has_sinks_) views.sinks = &sinks;
    std::vector<Bytes> operands = operands_;
    std::vector<Bytes*> pointers;
    for (Bytes& operand : operands) pointers.push_back(&operand);
    // Heads of whole blocks are also quantised.
    const bool quantizes = y_->view().dims[0] % 32 == 0;
    const int64_t tokens = y_->view().dims[2], heads = y_->view().dims[1];
    Bytes quantized(QuantizedBytes(y_->view().dims[0] * heads, tokens));
    pointers.push_back(&quantized);
    const absl::Status status =
        runner->Run(AttentionRuns(views, params_, longest_ + 100, cut, quantizes), pointers,
                    AttentionScratchBytes(views, longest_ + 100, cut));
    if (!status.ok()) return std::string(status.message());
    if (quantizes) {
      std::string wrong = WrongColumns(quantized, 0, *y_, heads);
      if (!wrong.empty()) return wrong + " as quantised";
    }
    for (size_t i = 0; i < 7; ++i) {
      if (operands[i] != operands_[i]) return "an input was written";
    }
    return Difference(operands[7], OperandOf(*y_, 12));
  }

 private:
  using Dims = std::initializer_list<int64_t>;

  // Fills the cache as kv_store would.
  void FillCache(const Tensor& cache, Fill fill) {
    const reference::View& view = cache.view();
    const int64_t slots = view.dims[1] * view.dims[3];
    Tensor x(Type::kF32, {view.dims[0], view.dims[2], slots}), slot(Type::kI32, {slots});
    x.FillWith(fill, &random_);
    std::iota(reference::I32Row(slot, 0), reference::I32Row(slot, 0) + slots, 0);
    reference::KvStore(x, slot, cache, AllRows(x));
  }

  void FillTables(const Shape& s, int64_t blocks) {
    std::vector<int32_t> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = blocks - 1; i > 0; --i) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random_.Below(i + 1))]);
    }
    size_t next = 0;
    int32_t* offsets = reference::I32Row(*offsets_, 0);
    for (size_t q = 0; q < s.sequences.size(); ++q) {
      int32_t* row = reference::I32Row(*table_, static_cast<int64_t>(q));
      for (int64_t i = 0; i * s.block_positions < s.sequences[q].kv_length; ++i) {
        row[i] = order[next++];
      }
      offsets[q + 1] = offsets[q] + static_cast<int32_t>(s.sequences[q].tokens);
      reference::I32Row(*lengths_, 0)[q] = static_cast<int32_t>(s.sequences[q].kv_length);
    }
    for (int64_t i = 0; i < s.spare_offsets; ++i) {
      offsets[s.sequences.size() + 1 + static_cast<size_t>(i)] = -5;
    }
  }

  reference::AttentionParams params_;
  Random random_;
  int64_t longest_ = 0;
  bool has_sinks_ = false;
  std::unique_ptr<Tensor> q_, k_, v_, table_, offsets_, lengths_, sinks_, y_;
  std::vector<Bytes> operands_;
};

const std::vector<Shape>& Shapes() {
  static const auto* shapes = new std::vector<Shape>{
      {{{1, 1}}, 64, 64, 1, 1, 256, {0.125f, 0, 0, true}},
      {{{1, 257}}, 64, 64, 4, 2, 64, {0.125f, 0, 0, true}},
      {{{5, 31}, {1, 255}, {2, 256}}, 64, 32, 4, 4, 16, {0.125f, 0, 0, true}},
      {{{3, 600}}, 96, 96, 6, 2, 256, {0.1f, 0, 0, true}, true, Fill::kOutlier},
      {{{9, 300}}, 64, 64, 7, 1, 16, {0.125f, 0, 100, true}},
      {{{2, 600}, {1, 40}, {1, 900}}, 64, 64, 2, 2, 64, {0.125f, 0, 257, true}, true},
      {{{4, 70}}, 128, 128, 3, 1, 64, {0.09f, 30.0f, 0, true}, false, Fill::kWide},
      {{{33, 33}}, 64, 64, 2, 2, 16, {0.125f, 0, 0, true}},
      {{{7, 7}}, 64, 64, 2, 1, 16, {0.125f, 0, 0, false}},
      {{{2, 20}}, 64, 64, 2, 1, 16, {0.125f, 0, 1, true}, true, Fill::kZero},
      {{{5, 1030}}, 256, 192, 2, 1, 32, {0.0625f, 50.0f, 0, true}, false, Fill::kTiny},
      {{{1, 17}, {1, 300}, {1, 512}},
       64,
       64,
       14,
       2,
       1,
       {0.125f, 0, 0, true},
       false,
       Fill::kUniform,
       4},
      {{{2, 40}, {1, 17}}, 64, 64, 2, 1, 16, {0.125f, 0, 0, true}, true, Fill::kUniform, 8, 3, 2},
  };
  return *shapes;
}

class AttentionCutTest : public AttentionShaderTest,
                         public ::testing::WithParamInterface<AttentionCut> {};

// Software drivers take seconds to compile each of these, so each cut is tested with some types:
// with one or two, or with more if TRINE_LONG is set.
std::vector<Type> TypesFor(const AttentionCut& cut) {
  if (std::getenv("TRINE_LONG") == nullptr) {
    if (cut.workgroup == 128) return {Type::kF16, Type::kQ8_KV};
    return {cut.workgroup == 256 ? Type::kF32 : cut.split ? Type::kBF16 : Type::kF16};
  }
  if (cut.workgroup == 128) return {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV};
  if (cut.workgroup == 256) return {Type::kF16, Type::kQ8_KV};
  return {cut.split ? Type::kBF16 : Type::kQ8_KV};
}

TEST_P(AttentionCutTest, EqualsTheReference) {
  for (const Type type : TypesFor(GetParam())) {
    // The first cut takes all shapes, each other cut every second one.
    const bool all = std::getenv("TRINE_LONG") != nullptr || GetParam().workgroup == 128;
    for (size_t i = 0; i < Shapes().size(); i += all ? 1 : 2) {
      Case c(type, Shapes()[i], 100 + i);
      EXPECT_EQ(c.Check(runner_, GetParam()), "") << quant::Traits(type).name << ", shape " << i;
    }
  }
}

// Widths that are multiples of nothing, and rows of halves at odd offsets.
TEST_P(AttentionCutTest, OddWidths) {
  for (const Type type : TypesFor(GetParam())) {
    if (type == Type::kQ8_KV) continue;
    std::vector<std::pair<int64_t, int64_t>> widths = {{33, 35}, {61, 3}};
    if (std::getenv("TRINE_LONG") != nullptr) widths.insert(widths.end(), {{6, 10}, {1, 1}});
    for (const auto& [d, dv] : widths) {
      const Shape shape = {{{3, 290}},
                           d,
                           dv,
                           3,
                           1,
                           16,
                           {0.3f, 0, 0, true},
                           false,
                           Fill::kUniform,
                           type == Type::kF32 ? 4 : 2};
      Case c(type, shape, 5);
      EXPECT_EQ(c.Check(runner_, GetParam()), "") << quant::Traits(type).name << " " << d;
    }
  }
}

// What the first chunk adds is below 2^-50 and must count for nothing, though the second chunk adds
// not much more.
TEST_P(AttentionCutTest, JoinsCanonicalValues) {
  constexpr int64_t kPositions = 258;
  Tensor q(Type::kF32, {1, 1, 1}), k(Type::kF32, {1, 256, 1, 2}), v(Type::kF32, {1, 256, 1, 2});
  Tensor table(Type::kI32, {2, 1}), offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
  Tensor want(Type::kF32, {1, 1, 1});
  q.Row(0)[0] = 1.0f;
  for (int64_t t = 0; t < kPositions; ++t) k.Row(t)[0] = -40.0f;
  k.Row(0)[0] = -13.9f;
  v.Row(0)[0] = 0x1p-30f;
  k.Row(256)[0] = 0.0f;
  k.Row(257)[0] = -13.0f;
  v.Row(257)[0] = 0x1p-30f;
  table.Set({0, 1});
  offsets.Set({0, 1});
  lengths.Set({static_cast<int32_t>(kPositions)});
  const reference::AttentionParams params = {};
  reference::Attention({q, k, v, table, offsets, lengths}, params, want, AllRows(want));
  const AttentionViews views = {ViewOf(q),       ViewOf(k),       ViewOf(v), ViewOf(table),
                                ViewOf(offsets), ViewOf(lengths), nullptr,   ViewOf(want)};
  std::vector<Bytes> operands;
  for (const Tensor* tensor : {&q, &k, &v, &table, &offsets, &lengths, &q, &want}) {
    operands.push_back(OperandOf(*tensor));
  }
  std::vector<Bytes*> pointers;
  for (Bytes& operand : operands) pointers.push_back(&operand);
  operands[7] = Bytes(4);
  const absl::Status status =
      runner_->Run(AttentionRuns(views, params, kPositions, GetParam()), pointers,
                   AttentionScratchBytes(views, kPositions, GetParam()));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Difference(operands[7], OperandOf(want)), "");
  EXPECT_GT(want.Row(0)[0], 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Cuts, AttentionCutTest,
                         ::testing::Values(AttentionCut{128, 4, false}, AttentionCut{64, 8, false},
                                           AttentionCut{256, 4, true}, AttentionCut{32, 4, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.workgroup) + "x" +
                                  std::to_string(info.param.rows) +
                                  (info.param.split ? "_split" : "");
                         });

}  // namespace
}  // namespace trine::vulkan
