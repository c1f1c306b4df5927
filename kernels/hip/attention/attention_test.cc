#include "kernels/hip/attention/attention.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/float_bits.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Type;
using reference::AllRows;
using reference::Random;
using testing::BytesIn;
using testing::DeviceMemory;
using testing::OnDevice;
using HostTensor = reference::Tensor;

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
  int64_t spare_offsets = 0;  // unused entries of q_offsets
  int64_t spare_tokens = 0;   // tokens that are in no sequence
};

// Devices for which the work is cut in all ways: with no multiprocessors nothing is split, with
// many everything is split. Without shared memory there are no tiles.
struct Device {
  const char* name;
  DeviceShape shape;
};
constexpr Device kDevices[] = {{"small", {0, 48 << 10}},
                               {"large", {1 << 20, 48 << 10}},
                               {"small, no tiles", {0, 0}},
                               {"middling, no tiles", {3, 0}},
                               {"large, no tiles", {1 << 20, 0}}};

// The emulator takes milliseconds for a chunk, so most cases run under one schedule, each under
// another.
void UnderOneSchedule([[maybe_unused]] size_t which, const std::function<void()>& body) {
#if defined(TRINE_GPU_HOST)
  using emulator::Order;
  constexpr Order kOrders[] = {Order::kForward, Order::kReverse, Order::kRandom};
  emulator::Configure({which / 3 % 2 == 0 ? 32u : 64u, kOrders[which % 3], which});
#endif
  body();
#if defined(TRINE_GPU_HOST)
  emulator::Configure({});
#endif
}

// All operands of one attention, with the reference's result.
class Case {
 public:
  Case(Type key_type, Type value_type, const Shape& s, uint64_t seed)
      : params_(s.params), has_sinks_(s.sinks), random_(seed) {
    int64_t tokens = s.spare_tokens, blocks = 0;
    for (const Sequence& q : s.sequences) {
      tokens += q.tokens;
      longest_ = std::max(longest_, q.kv_length);
      blocks += (q.kv_length + s.block_positions - 1) / s.block_positions;
    }
    const auto n_seqs = static_cast<int64_t>(s.sequences.size());
    const int64_t table_blocks = (longest_ + s.block_positions - 1) / s.block_positions + 1;
    const auto cache = [&](Type type, int64_t width) {
      return std::make_unique<HostTensor>(type, Dims{width, s.block_positions, s.kv_heads, blocks},
                                          s.padding);
    };
    q_ = std::make_unique<HostTensor>(Type::kF32, Dims{s.d, s.heads, tokens}, 4);
    k_ = cache(key_type, s.d);
    v_ = cache(value_type, s.dv);
    table_ = std::make_unique<HostTensor>(Type::kI32, Dims{table_blocks, n_seqs}, 4);
    offsets_ = std::make_unique<HostTensor>(Type::kI32, Dims{n_seqs + 1 + s.spare_offsets});
    lengths_ = std::make_unique<HostTensor>(Type::kI32, Dims{n_seqs});
    sinks_ = std::make_unique<HostTensor>(Type::kF32, Dims{s.heads});
    y_ = std::make_unique<HostTensor>(Type::kF32, Dims{s.dv, s.heads, tokens}, 8);
    before_ = BytesIn(*y_);
    q_->FillWith(s.fill, &random_);
    sinks_->FillWith(Fill::kUniform, &random_);
    FillCache(*k_, s.fill);
    FillCache(*v_, s.fill);
    FillTables(s, blocks);
    reference::AttentionInputs inputs{*q_, *k_, *v_, *table_, *offsets_, *lengths_};
    if (has_sinks_) inputs.sinks = &sinks_->view();
    reference::Attention(inputs, params_, *y_, AllRows(*y_));
  }

  void Check(const DeviceShape& device) {
    const OnDevice q(*q_), k(*k_), v(*v_), table(*table_), offsets(*offsets_), lengths(*lengths_);
    const OnDevice sinks(*sinks_);
    reference::View empty = y_->view();
    empty.data = before_.data();
    const OnDevice y(empty);
    AttentionTensors tensors = {q.tensor(),       k.tensor(),       v.tensor(), table.tensor(),
                                offsets.tensor(), lengths.tensor(), {},         y.tensor()};
    if (has_sinks_) tensors.sinks = sinks.tensor();
    const int64_t positions = (longest_ + 100 + 255) / 256 * 256;
    // Heads of whole blocks are quantised as well.
    const int64_t dv = y_->view().dims[0], blocks = dv * y_->view().dims[1] / 32;
    const int64_t columns = y_->view().dims[2];
    const bool quantizes = dv % 32 == 0;
    const DeviceMemory quantized(quantizes ? QuantizedBytes(blocks, columns) : 0);
    QuantizedColumns to;
    if (quantizes) to = QuantizedAt(quantized.data(), blocks, columns);
    const DeviceMemory scratch(AttentionScratchBytes(tensors, positions, device));
    std::vector<Launch> launches;
    AddAttention(tensors, params_, positions, scratch.data(), to, nullptr, device, &launches);
    testing::RunLaunches(launches);
    EXPECT_TRUE(y.Bytes() == BytesIn(*y_)) << "y";
    for (const auto& [there, here] :
         {std::pair{&q, q_.get()}, {&k, k_.get()}, {&v, v_.get()}, {&table, table_.get()}}) {
      EXPECT_TRUE(there->Bytes() == BytesIn(*here)) << "an input was written";
    }
    if (quantizes) CheckColumns(quantized, blocks, columns);
  }

  // Rotates and stores the rows of the one token, in a launch before attention or along with it. If
  // `normed`, norms q and k before that.
  void CheckAlong(const DeviceShape& device, reference::RopeMode mode, int64_t pairs, int32_t slot,
                  bool normed = false) {
    const auto row = [&](const HostTensor& cache, Fill fill) {
      auto x = std::make_unique<HostTensor>(Type::kF32,
                                            Dims{cache.view().dims[0], cache.view().dims[2], 1}, 8);
      x->FillWith(fill, &random_);
      return x;
    };
    const auto new_k = row(*k_, Fill::kUniform), new_v = row(*v_, Fill::kWide);
    HostTensor cosines(Type::kF32, {2 * pairs, 1}), slots(Type::kI32, {1});
    cosines.FillWith(Fill::kUniform, &random_);
    slots.Set({slot});
    HostTensor q_weight(Type::kF32, {k_->view().dims[0]});
    HostTensor k_weight(Type::kF32, {k_->view().dims[0]});
    q_weight.FillWith(Fill::kUniform, &random_);
    k_weight.FillWith(Fill::kUniform, &random_);
    const int64_t dv = y_->view().dims[0], blocks = dv * y_->view().dims[1] / 32;
    // Returns y, its quantised values, and both caches.
    const auto run = [&](bool along) {
      const OnDevice q(*q_), k(*k_), v(*v_), table(*table_), offsets(*offsets_), lengths(*lengths_);
      const OnDevice rotated(*q_), k_row(*new_k), v_row(*new_v), rope(cosines), at(slots);
      reference::View empty = y_->view();
      empty.data = before_.data();
      const OnDevice y(empty);
      AttentionTensors tensors = {rotated.tensor(), k.tensor(),       v.tensor(), table.tensor(),
                                  offsets.tensor(), lengths.tensor(), {},         y.tensor()};
      RotateStore work;
      work.mode = mode;
      work.table = rope.tensor();
      work.q = q.tensor();
      work.rotated_q = rotated.tensor();
      work.k = k_row.tensor();
      work.key_cache = k.tensor();
      work.v = v_row.tensor();
      work.value_cache = v.tensor();
      work.slots = at.tensor();
      const OnDevice normed_q(*q_), normed_k(*new_k), of_q(q_weight), of_k(k_weight);
      std::vector<Launch> launches;
      if (normed && along) {
        work.q_norm = {of_q.tensor(), 1e-5f};
        work.k_norm = {of_k.tensor(), 1e-3f};
      } else if (normed) {
        launches.push_back(NormOf(q.tensor(), of_q.tensor(), 1e-5f, normed_q.tensor()));
        launches.push_back(NormOf(k_row.tensor(), of_k.tensor(), 1e-3f, normed_k.tensor()));
        work.q = normed_q.tensor();
        work.k = normed_k.tensor();
      }
      const int64_t positions = (longest_ + 255) / 256 * 256;
      EXPECT_TRUE(CanAttendAlong(tensors, work, positions, device));
      const DeviceMemory quantized(QuantizedBytes(blocks, 1));
      const DeviceMemory scratch(AttentionScratchBytes(tensors, positions, device));
      if (along) {
        tensors.q = {};  // nothing writes it
        tensors.q.dims = work.q.dims;
      } else {
        launches.push_back(RotateStoreLaunch(work));
      }
      AddAttention(tensors, params_, positions, scratch.data(),
                   QuantizedAt(quantized.data(), blocks, 1), along ? &work : nullptr, device,
                   &launches);
      testing::RunLaunches(launches);
      std::vector<std::byte> bytes(quantized.bytes());
      quantized.Read(bytes.data());
      return std::vector{y.Bytes(), k.Bytes(), v.Bytes(), bytes};
    };
    EXPECT_TRUE(run(true) == run(false));
  }

 private:
  using Dims = std::initializer_list<int64_t>;

  static Launch NormOf(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) {
    Norm norm;
    norm.x = x;
    norm.weight = weight;
    norm.eps = eps;
    norm.y = y;
    return NormLaunch(norm);
  }

  void CheckColumns(const DeviceMemory& quantized, int64_t blocks, int64_t columns) const {
    std::vector<std::byte> bytes(quantized.bytes());
    quantized.Read(bytes.data());
    const QuantizedColumns got = QuantizedAt(bytes.data(), blocks, columns);
    const int64_t heads = y_->view().dims[1], of_head = blocks / heads;
    for (int64_t at = 0; at < blocks * columns; ++at) {
      quant::ActivationBlock want;
      quant::QuantizeActivation(y_->Row(at / of_head) + at % of_head * 32, &want);
      ASSERT_EQ(std::memcmp(got.values + at * 8, want.q, 32), 0) << at;
      ASSERT_EQ(quant::Bits(got.scales[at]), quant::Bits(want.d));
      ASSERT_EQ(static_cast<int16_t>(got.sums[at]), want.sum[0]);
      ASSERT_EQ(static_cast<int32_t>(got.sums[at]) >> 16, want.sum[1]);
    }
  }

  // Fills the cache as kv_store would do.
  void FillCache(const HostTensor& cache, Fill fill) {
    const reference::View& view = cache.view();
    const int64_t slots = view.dims[1] * view.dims[3];
    HostTensor x(Type::kF32, {view.dims[0], view.dims[2], slots}), slot(Type::kI32, {slots});
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
      // Entries that no position needs must not be followed.
      std::fill_n(row, table_->view().dims[0], 1 << 30);
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
  bool has_sinks_;
  Random random_;
  int64_t longest_ = 0;
  std::unique_ptr<HostTensor> q_, k_, v_, table_, offsets_, lengths_, sinks_, y_;
  std::vector<std::byte> before_;
};

// The index of the first shape below that has tiles, on devices where there can be some.
constexpr size_t kFirstTiled = 13;

const std::vector<Shape>& Shapes() {
  static const auto* shapes = new std::vector<Shape> {
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
        // Tiles: one sequence, several, rows that see nothing, more than 16 groups of 32 elements.
        {{{40, 300}}, 64, 64, 8, 2, 64, {0.125f, 0, 0, true}, true},
        {{{18, 280}, {2, 530}, {20, 20}},
         128,
         128,
         3,
         1,
         16,
         {0.09f, 0, 140, true},
         true,
         Fill::kUniform,
         0,
         0,
         3},
        {{{20, 290}}, 256, 160, 1, 1, 32, {0.0625f, 20.0f, 0, false}},
        {{{17, 9}}, 96, 32, 1, 1, 16, {0.1f, 0, 0, true}, true},
        {{{2, 300}}, 288, 576, 2, 1, 16, {0.05f, 0, 0, true}},
        // More tokens than a chunk has positions.
        {{{264, 264}}, 64, 64, 4, 1, 64, {0.125f, 0, 0, true}},
#if !defined(TRINE_GPU_HOST)  // as a model has them
        {{{494, 494}}, 64, 64, 32, 8, 64, {0.125f, 0, 0, true}},
        {{{512, 1024}}, 128, 128, 32, 8, 64, {0.09f, 0, 0, true}},
#endif
  };
  return *shapes;
}

class HipAttention : public ::testing::TestWithParam<size_t> {
 protected:
  const Device& device() const { return kDevices[GetParam()]; }
};

TEST_P(HipAttention, IsTheReferences) {
  constexpr Type kTypes[] = {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_KV};
  for (size_t i = 0; i < Shapes().size(); ++i) {
    // For many tokens without tiles, one type is enough.
    const bool once = device().shape.shared_bytes == 0 && i >= kFirstTiled;
    for (size_t type = 0; type < (once ? 1 : std::size(kTypes)); ++type) {
      SCOPED_TRACE(std::string(quant::Traits(kTypes[type]).name) + ", shape " + std::to_string(i));
      Case c(kTypes[type], kTypes[type], Shapes()[i], 100 + i);
      UnderOneSchedule(i + type + GetParam(), [&] { c.Check(device().shape); });
    }
  }
}

TEST_P(HipAttention, IsTheReferencesUnderEverySchedule) {
  for (const Shape& shape :
       {Shape{{{2, 40}, {1, 17}, {1, 261}}, 64, 64, 6, 2, 16, {0.125f, 0, 0, true}, true},
        Shape{{{10, 262}, {8, 8}}, 32, 32, 2, 1, 16, {0.2f, 0, 0, true}, true}}) {
    Case c(Type::kF16, Type::kF16, shape, 4);
    testing::UnderEverySchedule([&] { c.Check(device().shape); });
  }
}

TEST_P(HipAttention, RotatesAndStoresAlong) {
  if (device().shape.shared_bytes != 0) return;  // tiles do not rotate
  using reference::RopeMode;
  size_t schedule = GetParam();
  for (const auto& [key, value] : {std::pair{Type::kF16, Type::kF16},
                                   {Type::kF32, Type::kF32},
                                   {Type::kBF16, Type::kBF16},
                                   {Type::kF16, Type::kF32}}) {
    for (const int64_t length : {1, 30, 600}) {
      SCOPED_TRACE(std::string(quant::Traits(key).name) + ", " + std::to_string(length));
      const int64_t d = length == 30 ? 96 : 64;
      const Shape shape = {{{1, length}}, d, 64, 6, 2, 16, {0.125f, 0, 0, true}};
      Case c(key, value, shape, static_cast<uint64_t>(length));
      const auto modes = {RopeMode::kHalves, RopeMode::kInterleaved};
      for (const RopeMode mode : modes) {
        UnderOneSchedule(schedule++, [&] {
          c.CheckAlong(device().shape, mode, d / 2, 3);
          c.CheckAlong(device().shape, mode, d / 4, 15);
        });
      }
      // No such slot: nothing is stored.
      UnderOneSchedule(schedule++, [&] {
        c.CheckAlong(device().shape, RopeMode::kHalves, d / 2, -1);
        c.CheckAlong(device().shape, RopeMode::kHalves, d / 2, 1 << 20);
      });
    }
  }
}

TEST_P(HipAttention, NormsHeadsAlong) {
  if (device().shape.shared_bytes != 0) return;
  size_t schedule = GetParam();
  struct Heads {
    int64_t d, dv, heads, kv_heads, length;
  };
  for (const Heads& h :
       {Heads{64, 64, 6, 2, 1}, {128, 128, 8, 1, 300}, {256, 64, 2, 2, 30}, {34, 32, 5, 1, 17}}) {
    for (const auto& [key, value] : {std::pair{Type::kF16, Type::kF16}, {Type::kF16, Type::kF32}}) {
      SCOPED_TRACE(std::to_string(h.d) + ", " + std::to_string(h.length));
      const Shape shape = {{{1, h.length}},      h.d,      h.dv, h.heads, h.kv_heads, 16,
                           {0.125f, 0, 0, true}, h.d == 64};
      Case c(key, value, shape, static_cast<uint64_t>(h.d));
      UnderOneSchedule(schedule++, [&] {
        c.CheckAlong(device().shape, reference::RopeMode::kHalves, h.d / 2, 3, true);
        c.CheckAlong(device().shape, reference::RopeMode::kInterleaved, h.d / 4, 5, true);
        c.CheckAlong(device().shape, reference::RopeMode::kHalves, h.d / 2, -1, true);
      });
    }
  }
}

// Widths that are no multiple of anything, rows of halves at odd places, two types.
TEST_P(HipAttention, OddWidthsAndTypes) {
  size_t schedule = GetParam();
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (const auto& [d, dv] : {std::pair<int64_t, int64_t>{6, 10}, {1, 1}, {33, 35}, {61, 3}}) {
      for (const int64_t tokens : {3, 17}) {
        SCOPED_TRACE(std::string(quant::Traits(type).name) + ", " + std::to_string(d));
        const int64_t padding = type == Type::kF32 ? 4 : 2;
        const Shape shape = {{{tokens, 290}}, d,      dv, 3, 1, 16, {0.3f, 0, 0, true}, false,
                             Fill::kUniform,  padding};
        Case c(type, type, shape, 5);
        UnderOneSchedule(schedule++, [&] { c.Check(device().shape); });
      }
    }
  }
  const Shape shape = {{{12, 260}}, 64, 96, 4, 2, 16, {0.3f, 0, 0, true}};
  Case c(Type::kF16, Type::kQ8_KV, shape, 6);
  UnderOneSchedule(schedule, [&] { c.Check(device().shape); });
}

// The values that the first chunk adds are below 2^-50 and become 0; those that the second chunk
// adds are not much larger.
TEST_P(HipAttention, JoinsCanonicalValues) {
  for (const int64_t tokens : {1, 16}) {
    constexpr int64_t kPositions = 258;
    HostTensor q(Type::kF32, {1, 1, tokens}), k(Type::kF32, {1, 256, 1, 2});
    HostTensor v(Type::kF32, {1, 256, 1, 2}), y(Type::kF32, {1, 1, tokens});
    HostTensor table(Type::kI32, {2, 1}), offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
    for (int64_t i = 0; i < tokens; ++i) q.Row(i)[0] = 1.0f;
    for (int64_t t = 0; t < kPositions; ++t) k.Row(t)[0] = -40.0f;
    k.Row(0)[0] = -13.9f;
    v.Row(0)[0] = 0x1p-30f;
    k.Row(256)[0] = 0.0f;
    k.Row(257)[0] = -13.0f;
    v.Row(257)[0] = 0x1p-30f;
    table.Set({0, 1});
    offsets.Set({0, static_cast<int32_t>(tokens)});
    lengths.Set({static_cast<int32_t>(kPositions)});
    const reference::AttentionParams params = {1.0f, 0.0f, 0, false};
    const OnDevice q_there(q), k_there(k), v_there(v), table_there(table), offsets_there(offsets);
    const OnDevice lengths_there(lengths), y_there(y);
    reference::Attention({q, k, v, table, offsets, lengths}, params, y, AllRows(y));
    ASSERT_GT(y.Row(0)[0], 0.0f);
    const AttentionTensors tensors = {q_there.tensor(),
                                      k_there.tensor(),
                                      v_there.tensor(),
                                      table_there.tensor(),
                                      offsets_there.tensor(),
                                      lengths_there.tensor(),
                                      {},
                                      y_there.tensor()};
    const DeviceMemory scratch(AttentionScratchBytes(tensors, 512, device().shape));
    std::vector<Launch> launches;
    AddAttention(tensors, params, 512, scratch.data(), {}, nullptr, device().shape, &launches);
    testing::UnderEverySchedule([&] {
      testing::RunLaunches(launches);
      EXPECT_EQ(y_there.Bytes(), BytesIn(y));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, HipAttention, ::testing::Range(size_t{0}, std::size(kDevices)));

}  // namespace
}  // namespace trine::hip
