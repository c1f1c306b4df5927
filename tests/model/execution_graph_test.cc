// Tests the execution graph. A capture has what the model computes. A replay gives the same bits
// even after the values were overwritten. A change shows in what depends on it and nowhere else. A
// regression leaves no trace.
#include "runtime/graph/execution_graph.h"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph_model.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Tokens = std::vector<int32_t>;
using Values = std::map<std::pair<size_t, size_t>, std::vector<std::byte>>;  // by pass and value

struct Subject {
  std::unique_ptr<GraphModel> loaded;
  std::unique_ptr<ExecutionGraph> graph;
};

struct Case {
  std::string name;
  TapLevel level = TapLevel::kLayers;
  std::string split;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ExecutionGraphTest : public testing::TestWithParam<Case> {
 protected:
  ExecutionGraphTest() : file_(Model()) {}

  static std::vector<std::byte> Model(const std::string& family = "llama") {
    TinyModelSpec spec = *TinyModelByName(family);
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    spec.n_layers = 4;
    spec.n_ctx = 512;
    return MakeTinyModel(spec).ToBytes();
  }

  static EngineOptions Options(const std::string& path, TapLevel level, const std::string& split) {
    EngineOptions options = TestOptions(path);
    if (!split.empty()) {
      options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
      options.placement.split = SplitOf(split);
    }
    options.threads = 2;
    options.batch_tokens = 32;
    options.taps = level;
    return options;
  }

  static Subject Load(const EngineOptions& options, uint64_t plan_bytes = uint64_t{1} << 30) {
    Subject subject;
    auto loaded = LoadGraphModel(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (!loaded.ok()) return subject;
    subject.loaded = *std::move(loaded);
    auto graph = ExecutionGraph::Create(subject.loaded->model, plan_bytes);
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (graph.ok()) subject.graph = *std::move(graph);
    return subject;
  }
  Subject Load() const { return Load(Options(file_.path(), GetParam().level, GetParam().split)); }

  static Tokens RandomTokens(std::mt19937* random, size_t n) {
    Tokens tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>((*random)() % 256);
    return tokens;
  }

  // Captures the tokens in chunks, with every row of output.
  static void Capture(ExecutionGraph* graph, const Tokens& tokens, size_t chunk) {
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t n = std::min(chunk, tokens.size() - at);
      Tokens rows(n);
      for (size_t i = 0; i < n; ++i) rows[i] = static_cast<int32_t>(i);
      const absl::Status s = graph->Capture(std::span(tokens).subspan(at, n), rows);
      ASSERT_TRUE(s.ok()) << s;
    }
  }

  static Values All(const ExecutionGraph& graph) {
    Values all;
    for (size_t t = 0; t < graph.passes(); ++t) {
      for (size_t v = 0; v < graph.shape().values().size(); ++v) {
        auto bytes = graph.ReadBack(t, v);
        EXPECT_TRUE(bytes.ok()) << bytes.status();
        if (bytes.ok()) all[{t, v}] = *std::move(bytes);
      }
    }
    return all;
  }

  static std::string LogitsHashOf(const ExecutionGraph& graph) {
    LogitsHash hash;
    int64_t position = 0;
    const size_t logits = graph.shape().taps().back();
    for (size_t t = 0; t < graph.passes(); ++t) {
      const auto bytes = graph.ReadBack(t, logits);
      EXPECT_TRUE(bytes.ok());
      std::vector<float> values(bytes->size() / sizeof(float));
      std::memcpy(values.data(), bytes->data(), bytes->size());
      const size_t rows = static_cast<size_t>(graph.pass(t).sizes.rows);
      for (size_t r = 0; r < rows; ++r) {
        const size_t width = values.size() / rows;
        hash.Add(position++, std::span(values).subspan(r * width, width));
      }
    }
    return hash.Text();
  }

  TempFile file_;
};

// For passes of 1 to 32 tokens.
TEST_P(ExecutionGraphTest, WhatIsCapturedIsWhatTheModelDoes) {
  std::mt19937 random(1);
  const Tokens tokens = RandomTokens(&random, 75);
  const auto engine = MustLoad(TestOptions(file_.path()));
  ASSERT_NE(engine, nullptr);
  const std::string expected = HashOf(engine.get(), tokens);
  for (const size_t chunk : {size_t{1}, size_t{7}, size_t{32}}) {
    Subject s = Load();
    ASSERT_NE(s.graph, nullptr);
    Capture(s.graph.get(), tokens, chunk);
    EXPECT_EQ(LogitsHashOf(*s.graph), expected) << chunk;
    EXPECT_EQ(s.graph->positions(), 75);
  }
}

TEST_P(ExecutionGraphTest, PoisonedWindowsAreRestored) {
  std::mt19937 random(2);
  Subject s = Load();
  ASSERT_NE(s.graph, nullptr);
  ExecutionGraph& g = *s.graph;
  Capture(&g, RandomTokens(&random, 40), 9);
  const Values before = All(g);
  const auto replay = [&](uint64_t begin, uint64_t end) {
    ASSERT_TRUE(g.Poison(begin, end).ok());
    ASSERT_NE(All(g), before);  // otherwise nothing would be tested
    const absl::Status status = g.ExecuteWindow(begin, end);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(All(g), before) << begin << " to " << end;
  };
  for (size_t t = 0; t < g.passes(); ++t) {
    for (int64_t layer = -1; layer <= 4; ++layer) {
      const auto [first, last] = g.shape().NodesOfLayer(layer);
      ASSERT_LT(first, last);
      replay(g.NodeAt(t, first), g.NodeAt(t, last));
    }
  }
  const uint64_t nodes = g.passes() * g.nodes_per_pass();
  for (int round = 0; round < 25; ++round) {
    const uint64_t begin = random() % nodes;
    replay(begin, begin + 1 + random() % (nodes - begin));
  }
  replay(0, nodes);
  for (uint64_t n = 0; n < nodes; ++n) EXPECT_FALSE(g.IsDirty(n));
}

// There is room for one plan at a time, so no plan can rely on inputs that another has left.
TEST_P(ExecutionGraphTest, PlansThatGoAndComeAgainAreTheSame) {
  std::mt19937 random(9);
  Subject s = Load(Options(file_.path(), GetParam().level, GetParam().split), /*plan_bytes=*/1);
  ASSERT_NE(s.graph, nullptr);
  ExecutionGraph& g = *s.graph;
  Capture(&g, RandomTokens(&random, 12), 4);
  const Values before = All(g);
  for (int round = 0; round < 2; ++round) {
    for (size_t t = 0; t < g.passes(); ++t) {
      for (int64_t layer = -1; layer <= 4; ++layer) {
        const auto [first, last] = g.shape().NodesOfLayer(layer);
        ASSERT_TRUE(g.Poison(g.NodeAt(t, first), g.NodeAt(t, last)).ok());
        ASSERT_TRUE(g.ExecuteWindow(g.NodeAt(t, first), g.NodeAt(t, last)).ok());
        ASSERT_EQ(All(g), before) << t << " " << layer;
      }
    }
  }
  EXPECT_LE(g.plans(), 2u);
}

// Plans hold the inputs of their last pass, which must not be used for another pass.
TEST_P(ExecutionGraphTest, InputsThatPlansHoldAreNotTakenForOthers) {
  std::mt19937 random(10);
  const Tokens tokens = RandomTokens(&random, 18), other = RandomTokens(&random, 6);
  Tokens changed(tokens.begin(), tokens.begin() + 12);
  changed.insert(changed.end(), other.begin(), other.end());
  Subject fresh = Load();
  ASSERT_NE(fresh.graph, nullptr);
  Capture(fresh.graph.get(), changed, 6);
  const auto after_replay = [&] {
    Subject s = Load();
    if (s.graph == nullptr) return s;
    Capture(s.graph.get(), tokens, 6);
    EXPECT_TRUE(s.graph->ExecuteWindow(s.graph->NodeAt(2, 0), s.graph->NodeAt(3, 0)).ok());
    EXPECT_NE(All(*s.graph), All(*fresh.graph));
    return s;
  };
  // Other inputs are written in their place.
  Subject written = after_replay();
  ASSERT_NE(written.graph, nullptr);
  const size_t value = written.graph->shape().InputOf(&SegmentIo::tokens);
  ASSERT_TRUE(written.graph->Write(2, value, std::as_bytes(std::span(other))).ok());
  ASSERT_TRUE(written.graph->ExecuteDirty().ok());
  EXPECT_EQ(All(*written.graph), All(*fresh.graph));
  // Their pass is regressed, and another pass has its number.
  Subject regressed = after_replay();
  ASSERT_NE(regressed.graph, nullptr);
  regressed.graph->Regress(2);
  const Tokens rows = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(regressed.graph->Append(other, rows).ok());
  ASSERT_TRUE(regressed.graph->ExecuteDirty().ok());
  EXPECT_EQ(All(*regressed.graph), All(*fresh.graph));
}

TEST_P(ExecutionGraphTest, AReplayThatDoesNothingIsSeen) {
  std::mt19937 random(3);
  Subject s = Load();
  ASSERT_NE(s.graph, nullptr);
  Capture(s.graph.get(), RandomTokens(&random, 5), 5);
  const Values before = All(*s.graph);
  ASSERT_TRUE(s.graph->Poison(0, 1).ok());
  ASSERT_TRUE(s.graph->ExecuteWindow(1, 1).ok());
  EXPECT_NE(All(*s.graph), before);
}

// Changes a token of an earlier pass: everything after it must equal a run with the new token.
TEST_P(ExecutionGraphTest, AChangedPrefixPropagates) {
  std::mt19937 random(4);
  const Tokens tokens = RandomTokens(&random, 30);
  for (const size_t at : {size_t{0}, size_t{13}, size_t{29}}) {
    Tokens changed = tokens;
    changed[at] = (changed[at] + 1) % 256;
    Subject fresh = Load(), s = Load();
    ASSERT_TRUE(s.graph != nullptr && fresh.graph != nullptr);
    Capture(fresh.graph.get(), changed, 6);
    Capture(s.graph.get(), tokens, 6);
    ASSERT_NE(All(*s.graph), All(*fresh.graph));
    const size_t value = s.graph->shape().InputOf(&SegmentIo::tokens);
    const Tokens pass(changed.begin() + static_cast<ptrdiff_t>(at / 6 * 6),
                      changed.begin() + static_cast<ptrdiff_t>(at / 6 * 6 + 6));
    const uint64_t runs = s.graph->runs();
    ASSERT_TRUE(s.graph->Write(at / 6, value, std::as_bytes(std::span(pass))).ok());
    const absl::Status status = s.graph->ExecuteDirty();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(All(*s.graph), All(*fresh.graph)) << at;
    // Earlier passes were not run.
    const size_t later = s.graph->passes() - at / 6;
    EXPECT_LE(s.graph->runs() - runs, later * s.graph->nodes_per_pass());
  }
}

// A value written in the middle of a layer reaches the layers behind it, and those of later passes;
// what does not depend on it is not run.
TEST_P(ExecutionGraphTest, WhatDoesNotDependOnAChangeIsNotRun) {
  std::mt19937 random(5);
  Subject s = Load();
  ASSERT_NE(s.graph, nullptr);
  ExecutionGraph& g = *s.graph;
  Capture(&g, RandomTokens(&random, 24), 8);
  const Values before = All(g);
  const PassGraph& shape = g.shape();
  const auto [head, end] = shape.NodesOfLayer(4);
  const size_t fourth = shape.NodesOfLayer(2).second;
  // Change what layer 2 hands on in the last pass: only layer 3 and the head run again there.
  const size_t value = shape.nodes()[fourth - 1].writes.back();
  auto bytes = *g.ReadBack(2, value);
  bytes[5] ^= std::byte{1};
  const uint64_t runs = g.runs();
  ASSERT_TRUE(g.Write(2, value, bytes).ok());
  ASSERT_TRUE(g.ExecuteDirty().ok());
  const auto [layer3, behind3] = shape.NodesOfLayer(3);
  EXPECT_LE(g.runs() - runs, (behind3 - layer3) + (end - head));
  EXPECT_GE(g.runs() - runs, 2u);
  const Values after = All(g);
  for (const auto& [key, was] : before) {
    const auto& [t, v] = key;
    const size_t node = shape.values()[v].node;
    const bool may_change =
        t == 2 && (v == value || (node != GraphValue::kInput && node >= fourth));
    if (may_change) continue;
    EXPECT_EQ(after.at(key), was) << t << " " << shape.values()[v].name;
  }
  EXPECT_NE(after, before);
  // Change it back: nothing has been lost.
  bytes[5] ^= std::byte{1};
  ASSERT_TRUE(g.Write(2, value, bytes).ok());
  ASSERT_TRUE(g.ExecuteDirty().ok());
  EXPECT_EQ(All(g), before);
  // Writing the same value is not a change.
  const uint64_t quiet = g.runs();
  ASSERT_TRUE(g.Write(2, value, bytes).ok());
  ASSERT_TRUE(g.ExecuteDirty().ok());
  EXPECT_EQ(g.runs(), quiet);
}

TEST_P(ExecutionGraphTest, WhatIsTakenBackHasNeverBeen) {
  std::mt19937 random(6);
  const Tokens tokens = RandomTokens(&random, 70), other = RandomTokens(&random, 40);
  Subject s = Load();
  ASSERT_NE(s.graph, nullptr);
  Capture(s.graph.get(), tokens, 10);
  s.graph->Regress(3);
  EXPECT_EQ(s.graph->passes(), 3u);
  EXPECT_EQ(s.graph->positions(), 30);
  EXPECT_EQ(*s.graph->ReadBack(0), *s.graph->ReadBack(2, 0));  // bound to the tokens that are left
  EXPECT_FALSE(s.graph->ReadBack(3, 0).ok());
  Capture(s.graph.get(), other, 8);
  Subject fresh = Load();
  ASSERT_NE(fresh.graph, nullptr);
  Capture(fresh.graph.get(), Tokens(tokens.begin(), tokens.begin() + 30), 10);
  Capture(fresh.graph.get(), other, 8);
  EXPECT_EQ(All(*s.graph), All(*fresh.graph));
  // Regress into the middle of a pass: what is before it stays.
  ASSERT_TRUE(s.graph->RegressTo(25).ok());
  EXPECT_EQ(s.graph->passes(), 2u);
  Capture(s.graph.get(), Tokens(tokens.begin() + 25, tokens.begin() + 35), 10);
  Tokens together(tokens.begin(), tokens.begin() + 35);
  Subject straight = Load();
  ASSERT_NE(straight.graph, nullptr);
  Capture(straight.graph.get(), together, 5);
  const size_t logits = s.graph->shape().taps().back();
  const auto of_ten = *s.graph->ReadBack(logits);
  auto first = *straight.graph->ReadBack(5, logits);
  const auto second = *straight.graph->ReadBack(6, logits);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(of_ten, first);
}

TEST_P(ExecutionGraphTest, APassThatIsAppendedIsRunLater) {
  std::mt19937 random(7);
  const Tokens tokens = RandomTokens(&random, 12), last = {11};
  Subject a = Load(), b = Load();
  ASSERT_TRUE(a.graph != nullptr && b.graph != nullptr);
  ASSERT_TRUE(a.graph->Append(tokens, last).ok());
  ASSERT_TRUE(a.graph->Poison(0, a.graph->nodes_per_pass()).ok());
  for (uint64_t n = 0; n < a.graph->nodes_per_pass(); ++n) {
    EXPECT_TRUE(a.graph->IsDirty(n));
    ASSERT_TRUE(a.graph->ExecuteWindow(n, n + 1).ok());
    EXPECT_FALSE(a.graph->IsDirty(n));
  }
  ASSERT_TRUE(b.graph->Capture(tokens, last).ok());
  EXPECT_EQ(All(*a.graph), All(*b.graph));
}

TEST_P(ExecutionGraphTest, WhatCannotBeIsRefused) {
  Subject s = Load();
  ASSERT_NE(s.graph, nullptr);
  ExecutionGraph& g = *s.graph;
  const Tokens one = {5}, zero = {0}, two = {1, 2}, unknown = {1 << 20};
  EXPECT_FALSE(g.Capture({}, zero).ok());
  EXPECT_FALSE(g.Capture(one, {}).ok());
  EXPECT_FALSE(g.Capture(one, Tokens{1}).ok());
  EXPECT_FALSE(g.Capture(Tokens{-1}, zero).ok());
  EXPECT_FALSE(g.Capture(Tokens(33, 5), zero).ok());
  EXPECT_EQ(g.passes(), 0u);
  EXPECT_FALSE(g.ExecuteWindow(0, 1).ok());
  EXPECT_FALSE(g.ReadBack(0).ok());
  ASSERT_TRUE(g.Capture(one, zero).ok());
  const size_t tokens = g.shape().InputOf(&SegmentIo::tokens);
  const size_t slots = g.shape().InputOf(&SegmentIo::kv_slots);
  EXPECT_FALSE(g.Write(0, tokens, std::as_bytes(std::span(unknown))).ok());
  EXPECT_FALSE(g.Write(0, tokens, std::as_bytes(std::span(two))).ok());
  EXPECT_FALSE(g.Write(0, slots, std::as_bytes(std::span(zero))).ok());
  EXPECT_FALSE(g.Write(1, tokens, std::as_bytes(std::span(zero))).ok());
  EXPECT_FALSE(g.RegressTo(2).ok());
  EXPECT_FALSE(g.ExecuteWindow(0, g.nodes_per_pass() + 1).ok());
}

std::vector<Case> Cases() {
  return {{"layers", TapLevel::kLayers, ""},
          {"ops", TapLevel::kOps, ""},
          {"layers_of_three_devices", TapLevel::kLayers, "cpu:1,several0:1,several2:2"},
          {"ops_of_three_devices", TapLevel::kOps, "several2:1,cpu:2,several0:1"}};
}

INSTANTIATE_TEST_SUITE_P(Levels, ExecutionGraphTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// The layers of every family can be cut.
TEST(ExecutionGraphFamiliesTest, AllAreRestored) {
  for (const char* family : {"llama3", "llama-odd", "qwen2", "qwen3-tied"}) {
    for (const TapLevel level : {TapLevel::kLayers, TapLevel::kOps}) {
      const TempFile file(MakeTinyModel(*TinyModelByName(family)).ToBytes());
      EngineOptions options = TestOptions(file.path());
      options.taps = level;
      options.batch_tokens = 16;
      auto loaded = LoadGraphModel(options);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      auto graph = ExecutionGraph::Create((*loaded)->model);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const Tokens tokens = {1, 2, 3, 4, 5}, rows = {4};
      ASSERT_TRUE((*graph)->Capture(tokens, rows).ok());
      ASSERT_TRUE((*graph)->Capture(tokens, rows).ok());
      const size_t logits = (*graph)->shape().taps().back();
      const auto before = *(*graph)->ReadBack(logits);
      const uint64_t all = 2 * (*graph)->nodes_per_pass();
      ASSERT_TRUE((*graph)->Poison(0, all).ok());
      ASSERT_TRUE((*graph)->ExecuteWindow(0, all).ok());
      EXPECT_EQ(*(*graph)->ReadBack(logits), before) << family;
    }
  }
}

}  // namespace
}  // namespace trine
