#include "runtime/model/split/graph_split.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/split/tensor_places.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

using Words = std::vector<uint32_t>;

uint32_t Mix(uint32_t a, uint32_t b) {
  uint64_t x = (uint64_t{a} << 32 | b) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return static_cast<uint32_t>(x >> 32);
}

// Runs graphs on numbers that stand for values: the number that an op writes depends on the op, on
// the rows of its weights and on what it reads. A cache is one number that remembers all writes.
class Interpreter {
 public:
  Interpreter(const SegmentGraph& segment, const std::vector<int64_t>& params,
              std::function<Words*(SlotId)> memory)
      : s_(segment), g_(segment.graph), params_(params), memory_(std::move(memory)) {}

  void Run() {
    for (size_t i = 0; i < g_.n_ops(); ++i) {
      const trine_op& op = g_.op(i);
      op.kind == TRINE_OP_MATMUL ? Multiply(op) : Anything(op);
    }
  }

  // Returns the addresses of a tensor's values in its slot.
  std::vector<size_t> Addresses(TensorId id) const {
    const trine_tensor& t = g_.tensor(id);
    std::vector<size_t> addresses = {t.offset / 4};
    uint64_t packed = 4;
    for (uint32_t d = 0; d < t.rank; ++d) {
      const int64_t n = t.dims[d] >= 0 ? t.dims[d] : params_[static_cast<size_t>(-1 - t.dims[d])];
      const auto stride =
          d == 0 || t.strides[d] == 0 ? packed : static_cast<uint64_t>(t.strides[d]);
      std::vector<size_t> next;
      for (int64_t i = 0; i < n; ++i) {
        for (const size_t a : addresses) next.push_back(a + static_cast<size_t>(i) * stride / 4);
      }
      addresses = std::move(next);
      packed = stride * static_cast<uint64_t>(n);
    }
    return addresses;
  }

 private:
  const WeightUse* WeightOf(TensorId id) const {
    for (const WeightUse& use : s_.weights) {
      if (use.tensor == id) return &use;
    }
    return nullptr;
  }
  bool IsState(TensorId id) const { return g_.slots()[g_.SlotOf(id)].role == TRINE_ROLE_STATE; }
  // Names a row by its address in the file, which is the same in a slice and in the whole.
  static uint32_t RowOf(const gguf::TensorInfo& t, int64_t row) {
    const auto rows = static_cast<uint64_t>(t.rank == 1 ? t.dims[0] : t.Rows());
    return static_cast<uint32_t>(t.offset + static_cast<uint64_t>(row) * (t.bytes / rows));
  }

  uint32_t Read(TensorId id) const {
    if (id == TRINE_NONE) return 1;
    if (const WeightUse* w = WeightOf(id)) return static_cast<uint32_t>(w->info->offset);
    if (IsState(id)) return memory_(g_.SlotOf(id))->front();
    uint32_t hash = 2;
    for (const size_t a : Addresses(id)) hash = Mix(hash, memory_(g_.SlotOf(id))->at(a));
    return hash;
  }

  void Anything(const trine_op& op) {
    uint32_t hash = op.kind;
    for (uint32_t i = 0; i < op.n_in; ++i) hash = Mix(hash, Read(op.in[i]));
    for (uint32_t o = 0; o < op.n_out; ++o) {
      Words* words = memory_(g_.SlotOf(op.out[o]));
      if (IsState(op.out[o])) {
        words->front() = Mix(words->front(), hash);
        continue;
      }
      uint32_t n = 0;
      for (const size_t a : Addresses(op.out[o])) words->at(a) = Mix(Mix(hash, o), n++);
    }
  }

  void Multiply(const trine_op& op) {
    const gguf::TensorInfo& w = *WeightOf(op.in[0])->info;
    const WeightUse* bias = op.n_in > 2 && op.in[2] != TRINE_NONE ? WeightOf(op.in[2]) : nullptr;
    const std::vector<size_t> x = Addresses(op.in[1]), y = Addresses(op.out[0]);
    const auto k = static_cast<size_t>(g_.tensor(op.in[1]).dims[0]);
    const auto n = static_cast<size_t>(g_.tensor(op.out[0]).dims[0]);
    for (size_t column = 0; column * k < x.size(); ++column) {
      uint32_t hash = 3;
      for (size_t i = 0; i < k; ++i) {
        hash = Mix(hash, memory_(g_.SlotOf(op.in[1]))->at(x[column * k + i]));
      }
      for (size_t r = 0; r < n; ++r) {
        const auto row = static_cast<int64_t>(r);
        const uint32_t b = bias == nullptr ? 0 : RowOf(*bias->info, row);
        memory_(g_.SlotOf(op.out[0]))->at(y[column * n + r]) = Mix(Mix(hash, RowOf(w, row)), b);
      }
    }
  }

  const SegmentGraph& s_;
  const OpGraph& g_;
  const std::vector<int64_t>& params_;
  const std::function<Words*(SlotId)> memory_;
};

uint32_t InputWord(size_t i) { return Mix(77, static_cast<uint32_t>(i)); }

TensorId OutputOf(const SegmentIo& io) {
  return io.logits != TRINE_NONE ? io.logits : io.hidden_out;
}

Words RunWhole(const SegmentGraph& whole, const std::vector<int64_t>& params) {
  std::map<SlotId, Words> memory;
  const Interpreter run(whole, params, [&](SlotId slot) {
    Words& words = memory[slot];
    if (words.empty()) words.resize(whole.graph.slots()[slot].bytes / 4 + 1);
    return &words;
  });
  for (SlotId slot = 0; slot < whole.graph.slots().size(); ++slot) {
    if (whole.graph.slots()[slot].role != TRINE_ROLE_IO) continue;
    Words& words = memory[slot];
    words.resize(whole.graph.slots()[slot].bytes / 4);
    for (size_t i = 0; i < words.size(); ++i) words[i] = InputWord(i);
  }
  Interpreter(run).Run();
  const TensorId output = OutputOf(whole.io);
  Words result;
  for (const size_t a : run.Addresses(output)) {
    result.push_back(memory[whole.graph.SlotOf(output)][a]);
  }
  return result;
}

class SplitRun {
 public:
  SplitRun(const GraphSplit& split, const std::vector<int64_t>& params)
      : split_(split), params_(params), buffers_(split.buffers.size()) {
    for (size_t d = 0; d < split.buffers.size(); ++d) {
      for (const uint64_t bytes : split.buffers[d]) buffers_[d].emplace_back(bytes / 4, 0xdead);
    }
  }

  Words Run() {
    for (const SplitInput& input : split_.inputs) {
      for (const size_t place : input.places) {
        Words& words = *At(place);
        for (size_t i = 0; i < split_.places[place].bytes / 4; ++i) words[i] = InputWord(i);
      }
    }
    for (const SplitStep& step : split_.steps) {
      for (const size_t piece : step.pieces) RunPiece(split_.pieces[piece]);
      for (const ValueMove& move : step.moves) {
        const Words value = ValueOf(move);
        for (const size_t to : move.to) std::copy(value.begin(), value.end(), At(to)->begin());
      }
    }
    return ValueOf(split_.output);
  }

 private:
  Words* At(size_t place) {
    return &buffers_[split_.places[place].device][split_.places[place].buffer];
  }

  void RunPiece(const GraphPiece& piece) {
    std::map<SlotId, Words*> bound;
    std::map<SlotId, Words> temps;
    for (const auto& [tensor, place] : piece.io) {
      bound[piece.graph.graph.SlotOf(tensor)] = At(place);
    }
    for (const KvUse& use : piece.graph.caches) {
      Words& cache = caches_[use.number];
      cache.resize(1);
      bound[piece.graph.graph.SlotOf(use.tensor)] = &cache;
    }
    Interpreter(piece.graph, params_, [&](SlotId slot) {
      if (bound.count(slot) != 0) return bound[slot];
      Words& words = temps[slot];
      if (words.empty()) words.assign(piece.graph.graph.slots()[slot].bytes / 4, 0xbeef);
      return &words;
    }).Run();
  }

  Words ValueOf(const ValueMove& value) {
    size_t rows = 1;
    for (const int64_t d : value.outer) {
      rows *= static_cast<size_t>(d >= 0 ? d : params_[static_cast<size_t>(-1 - d)]);
    }
    const auto width = static_cast<size_t>(value.width);
    Words words(rows * width, 0xfade);
    for (const ValuePart& part : value.from) {
      const auto begin = static_cast<size_t>(part.begin), end = static_cast<size_t>(part.end);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = begin; c < end; ++c) {
          words[r * width + c] = part.in_whole ? At(part.place)->at(r * width + c)
                                               : At(part.place)->at(r * (end - begin) + c - begin);
        }
      }
    }
    return words;
  }

  const GraphSplit& split_;
  const std::vector<int64_t>& params_;
  std::vector<std::vector<Words>> buffers_;
  std::map<size_t, Words> caches_;
};

std::string GraphErrors(const OpGraph& graph) {
  const trine_graph view = graph.View();
  sdk::Graph copy;
  trine_error err{};
  if (sdk::CopyGraph(&view, &copy, &err) != TRINE_OK) return err.message;
  for (size_t i = 0; i < copy.ops.size(); ++i) {
    if (const std::string why = sdk::CheckOp(copy, i); !why.empty()) return why;
  }
  return "";
}

constexpr size_t kDevices = 3;

// Puts any op that touches no cache on random devices.
std::vector<OpOwners> RandomOwners(const SegmentGraph& s, std::mt19937* random) {
  std::vector<OpOwners> owners(s.graph.n_ops());
  const uint32_t one_in = 1 + (*random)() % 6;
  for (size_t i = 0; i < owners.size(); ++i) {
    const trine_op& op = s.graph.op(i);
    if (op.kind == TRINE_OP_KV_STORE || op.kind == TRINE_OP_ATTENTION) continue;
    if ((*random)() % one_in != 0) continue;
    if (!HasRows(s, i) || (*random)() % 3 == 0) {
      owners[i] = {{(*random)() % kDevices, 0, 0}};
      continue;
    }
    std::vector<double> shares = {1.0 + (*random)() % 5, 1.0 * ((*random)() % 5),
                                  1.0 * ((*random)() % 5)};
    std::vector<size_t> devices = {0, 1, 2};
    std::shuffle(devices.begin(), devices.end(), *random);
    for (RowShare share : CutRows(s.graph.tensor(op.out[0]).dims[0], shares)) {
      owners[i].push_back({devices[share.device], share.begin, share.end});
    }
  }
  return owners;
}

class GraphSplitTest : public testing::TestWithParam<std::string> {
 protected:
  GraphSplitTest() : file_(*gguf::File::FromMemory(*MakeModelBytes(*FindPreset(GetParam())))) {
    config_ = *ReadModelConfig(*file_);
    limits_.max_tokens = 4;
    limits_.max_output_rows = 2;
    limits_.max_context = 128;
    limits_.kv_blocks = 2;
  }
  SegmentGraph Build(bool all) const {
    const LayerSpan span =
        all ? LayerSpan{0, config_.n_layers, true, true} : LayerSpan{1, config_.n_layers - 1};
    return *BuildSegmentGraph(*file_, config_, limits_, span, {.finish = false});
  }

  std::shared_ptr<const gguf::File> file_;
  ModelConfig config_;
  SegmentLimits limits_;
};

TEST_P(GraphSplitTest, PiecesDoWhatTheWholeDoes) {
  std::mt19937 random(5);
  for (int round = 0; round < 12; ++round) {
    const SegmentGraph whole = Build(round % 2 == 0 || config_.n_layers < 3);
    std::vector<OpOwners> owners = RandomOwners(whole, &random);
    if (round % 3 == 0)
      JoinOps(
          whole.graph, [](size_t, size_t) { return true; }, &owners);
    std::vector<bool> sees_rows;
    for (size_t d = 0; d < kDevices; ++d) sees_rows.push_back(random() % 2 == 0);
    const GraphSplit split = SplitGraph(whole, owners, sees_rows);
    for (const std::vector<int64_t>& params :
         {std::vector<int64_t>{3, 1, 2, 40}, std::vector<int64_t>{1, 1, 1, 7}}) {
      ASSERT_EQ(SplitRun(split, params).Run(), RunWhole(whole, params)) << "round " << round;
    }
    size_t ops = 0, wanted = 0;
    for (const OpOwners& o : owners) wanted += std::max<size_t>(o.size(), 1);
    for (const GraphPiece& piece : split.pieces) {
      ops += piece.graph.graph.n_ops();
      ASSERT_EQ(GraphErrors(piece.graph.graph), "");
    }
    EXPECT_EQ(ops, wanted);
    for (const SplitStep& step : split.steps) {
      std::set<size_t> devices;
      for (const size_t piece : step.pieces) devices.insert(split.pieces[piece].device);
      EXPECT_EQ(devices.size(), step.pieces.size());
      EXPECT_FALSE(step.pieces.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, GraphSplitTest,
                         testing::Values("tiny-llama", "tiny-mixtral", "tiny-qwen2-tied",
                                         "tiny-phi3", "tiny-gpt-oss", "tiny-gemma3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Memory between pieces does not grow with the layers, and matrices that read one input are in one
// step.
TEST(GraphSplitStepsTest, RowModeTakesEightStepsALayer) {
  const auto file = *gguf::File::FromMemory(*MakeModelBytes(*FindPreset("tiny-llama")));
  const ModelConfig config = *ReadModelConfig(*file);
  SegmentLimits limits;
  limits.max_context = 128;
  limits.kv_blocks = 2;
  std::map<int64_t, size_t> steps;
  std::map<int64_t, std::vector<std::vector<uint64_t>>> buffers;
  for (const int64_t layers : {2, 3}) {
    const SegmentGraph whole = *BuildSegmentGraph(
        *file, config, limits, {0, layers, true, layers == config.n_layers}, {.finish = false});
    std::vector<OpOwners> owners(whole.graph.n_ops());
    for (size_t i = 0; i < owners.size(); ++i) {
      if (!HasRows(whole, i)) continue;
      owners[i] = CutRows(whole.graph.tensor(whole.graph.op(i).out[0]).dims[0], {1, 1});
    }
    const GraphSplit split = SplitGraph(whole, owners, {true, true});
    steps[layers] = split.steps.size();
    buffers[layers] = split.buffers;
  }
  // the last layer is followed by the output: one step for it, one to join it
  ASSERT_EQ(config.n_layers, 3);
  EXPECT_LE(steps[3], steps[2] + 8 + 2);
  EXPECT_LE(buffers[3][0].size(), buffers[2][0].size() + 2);
  EXPECT_LE(buffers[3][1].size(), buffers[2][1].size() + 2);
}

// Ops without weights: x -> y, which one device reads before another one changes it in place, and
// z, whose halves come from two devices.
TEST(GraphSplitStepsTest, WhatIsWrittenInPlaceWaitsForItsReaders) {
  SegmentGraph whole;
  OpGraph& g = whole.graph;
  const int64_t m = g.AddParam(TRINE_PARAM_TOKENS, 1, 8);
  const TensorId x = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  const TensorId out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  whole.io.hidden_in = x;
  whole.io.hidden_out = out;
  const TensorId y = g.AddTemp({64, m}), z = g.AddTemp({64, m}), first = g.AddTemp({32, m});
  const TensorId low = g.AddView(z, {32, m}, {0, 256}, 0);
  const TensorId high = g.AddView(z, {32, m}, {0, 256}, 128);
  const TensorId half = g.AddView(x, {32, m}, {0, 256}, 0);
  g.AddOp(TRINE_OP_COPY, {x}, {y});
  g.AddOp(TRINE_OP_COPY, {half}, {first});
  g.AddOp(TRINE_OP_COPY, {half}, {low});
  g.AddOp(TRINE_OP_ADD, {first, half}, {high});
  const TensorId sum = g.AddTemp({64, m});
  g.AddOp(TRINE_OP_ADD, {y, z}, {sum});
  g.AddOp(TRINE_OP_SCALE, {y}, {y}, trine_scale_attr{0, 2});
  g.AddOp(TRINE_OP_SCALE, {z}, {z}, trine_scale_attr{0, 3});
  const TensorId all = g.AddTemp({64, m});
  g.AddOp(TRINE_OP_MUL, {sum, y}, {all});
  g.AddOp(TRINE_OP_MUL, {all, z}, {out});
  std::mt19937 random(8);
  const std::vector<int64_t> params = {5};
  const Words expected = RunWhole(whole, params);
  for (int round = 0; round < 300; ++round) {
    std::vector<OpOwners> owners(g.n_ops());
    for (OpOwners& o : owners) o = {{random() % kDevices, 0, 0}};
    const GraphSplit split = SplitGraph(whole, owners, {true, false, true});
    ASSERT_EQ(SplitRun(split, params).Run(), expected) << "round " << round;
  }
}

// The graph of a tiny model, or of some of its layers, with the file that the graph points into.
struct TinyGraph {
  explicit TinyGraph(const char* preset, std::optional<LayerSpan> span = std::nullopt)
      : file(*gguf::File::FromMemory(*MakeModelBytes(*FindPreset(preset)))),
        config(*ReadModelConfig(*file)) {
    SegmentLimits limits;
    limits.max_context = 128;
    limits.kv_blocks = 2;
    graph = *BuildSegmentGraph(*file, config, limits,
                               span.value_or(LayerSpan{0, config.n_layers, true, true}),
                               {.finish = false});
  }

  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
  SegmentGraph graph;
};

// If one of q, k and v is on another device, all three are in one step.
TEST(GraphSplitStepsTest, ProductsOfOneInputRunTogether) {
  const TinyGraph tiny("tiny-llama", LayerSpan{1, 2});
  const SegmentGraph& whole = tiny.graph;
  std::vector<OpOwners> owners(whole.graph.n_ops());
  std::vector<size_t> products;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (HasRows(whole, i)) products.push_back(i);
  }
  owners[products[1]] = {{1, 0, 0}};
  const OpSchedule schedule = ScheduleOps(whole.graph, owners);
  EXPECT_EQ(schedule.steps[products[0]], schedule.steps[products[1]]);
  EXPECT_EQ(schedule.steps[products[1]], schedule.steps[products[2]]);
  EXPECT_EQ(schedule.n_steps, 3u);
}

// Experts on another device take one step there, with the glu between them and their sum. A device
// without the glu leaves it to the main device.
TEST(JoinOpsTest, ExpertsElsewhereTakeTwoStepsALayer) {
  const TinyGraph tiny("tiny-mixtral");
  const SegmentGraph& whole = tiny.graph;
  const OpGraph& g = whole.graph;
  const auto layers = static_cast<size_t>(tiny.config.n_layers);
  const auto owners_with = [&](uint32_t lacking) {
    std::vector<OpOwners> owners(g.n_ops());
    for (size_t op = 0; op < owners.size(); ++op) {
      if (g.op(op).kind == TRINE_OP_MOE_MATMUL) owners[op] = {{1, 0, 0}};
    }
    JoinOps(
        g, [&](size_t, size_t op) { return g.op(op).kind != lacking; }, &owners);
    return owners;
  };
  const auto count = [&](const std::vector<OpOwners>& owners, uint32_t kind) {
    size_t ops = 0;
    for (size_t op = 0; op < owners.size(); ++op) {
      ops += g.op(op).kind == kind && !owners[op].empty();
    }
    return ops;
  };
  const std::vector<OpOwners> all = owners_with(TRINE_OP_MATMUL);
  EXPECT_EQ(count(all, TRINE_OP_GLU), layers);
  EXPECT_EQ(count(all, TRINE_OP_MOE_COMBINE), layers);
  EXPECT_EQ(count(all, TRINE_OP_ADD), 0u);  // it also adds what the main device has
  EXPECT_EQ(ScheduleOps(g, all).n_steps, 2 * layers + 1);
  const std::vector<OpOwners> no_glu = owners_with(TRINE_OP_GLU);
  EXPECT_EQ(count(no_glu, TRINE_OP_GLU), 0u);
  EXPECT_EQ(count(no_glu, TRINE_OP_MOE_COMBINE), layers);
  EXPECT_EQ(ScheduleOps(g, no_glu).n_steps, 4 * layers + 1);
}

TEST(CutRowsTest, CoversAllRowsWithoutGaps) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto n = static_cast<int64_t>(1 + random() % 5000);
    std::vector<double> shares;
    for (size_t i = 1 + random() % 5; i > 0; --i) shares.push_back(random() % 7);
    shares[random() % shares.size()] += 1;
    int64_t at = 0;
    for (const RowShare& share : CutRows(n, shares)) {
      EXPECT_EQ(share.begin, at);
      EXPECT_GT(share.end, share.begin);
      EXPECT_LT(share.device, shares.size());
      EXPECT_TRUE(share.end == n || share.end % 8 == 0);
      at = share.end;
    }
    EXPECT_EQ(at, n);
  }
}

}  // namespace
}  // namespace trine
