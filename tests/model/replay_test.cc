// Tests captures of sessions and their replay: the same on any split, at either level; a wrong
// result names the device and the op; files that are not captures are refused.
#include "runtime/graph/replay.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "runtime/graph/capture_file.h"
#include "runtime/graph/graph_model.h"
#include "runtime/pack_cache/hash64.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : file_(Model()), capture_(testing::TempDir() + "/replay_test.capture") {}
  ~ReplayTest() override { std::remove(capture_.c_str()); }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    spec.n_layers = 4;
    spec.n_ctx = 512;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options(const std::string& split = "") const {
    EngineOptions options = TestOptions(file_.path());
    if (!split.empty()) {
      options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
      options.placement.split = SplitOf(split);
    }
    options.threads = 2;
    options.batch_tokens = 32;
    return options;
  }

  // Records a prompt of two passes and some tokens. Returns the text.
  std::string Record(EngineOptions options, TapLevel level, bool values,
                     bool context_shift = false) {
    CaptureOptions to;
    to.path = capture_;
    to.program = "a test";
    to.model = file_.path();
    to.model_id = ModelId(**gguf::File::Open(file_.path()));
    to.values = values;
    auto recorder = CaptureRecorder::Create(to);
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    options.taps = level;
    options.observer = [&](const auto& model, size_t stage, const Pass& pass) {
      return (*recorder)->Ran(model, stage, pass);
    };
    Generation result;
    {
      const auto engine = MustLoad(options);
      SessionOptions session_options;
      session_options.ignore_eos = true;
      auto session = Session::Create(engine.get(), session_options);
      EXPECT_TRUE(session.ok());
      std::vector<int32_t> prompt(50);
      for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 5 % 256);
      EXPECT_TRUE((*session)->Append(prompt).ok());
      GenerateOptions generate;
      generate.max_tokens = context_shift ? 30 : 12;
      generate.context_shift = context_shift;
      const absl::Status s = Generate(session->get(), generate, &result);
      EXPECT_TRUE(s.ok()) << s;
    }
    const absl::Status s = (*recorder)->Finish();
    EXPECT_TRUE(s.ok()) << s;
    return result.text;
  }

  absl::StatusOr<ReplayResult> Play(EngineOptions options, bool ops) {
    auto capture = CaptureFile::Open(capture_);
    if (!capture.ok()) return capture.status();
    options.taps = ops ? TapLevel::kOps : (*capture)->head().level;
    options.context = static_cast<int64_t>((*capture)->head().context);
    auto loaded = LoadGraphModel(options);
    if (!loaded.ok()) return loaded.status();
    auto graph = ExecutionGraph::Create((*loaded)->model);
    if (!graph.ok()) return graph.status();
    ReplayOptions replay;
    replay.ops = ops;
    return Replay(**capture, replay, graph->get());
  }

  void ExpectIdentical(const EngineOptions& options, bool ops, size_t passes) {
    const auto result = Play(options, ops);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->passes, passes);
    EXPECT_GT(result->values, passes);
    EXPECT_FALSE(result->difference.has_value()) << Describe(*result->difference);
  }

  std::vector<std::byte> CaptureBytes() const {
    std::ifstream in(capture_, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return {data, data + text.size()};
  }

  TempFile file_;
  std::string capture_;
};

TEST_F(ReplayTest, TheSameWhereverAndHoweverItIsRun) {
  const auto plain = MustLoad(Options());
  for (const TapLevel level : {TapLevel::kLayers, TapLevel::kOps}) {
    for (const std::string split : {"", "several2:2,cpu:1,several0:1"}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(level), " ", split));
      Record(Options(split), level, /*values=*/level == TapLevel::kOps);
      // Two passes of the prompt, or more with several stages, and one for each token but the last.
      const auto capture = CaptureFile::Open(capture_);
      ASSERT_TRUE(capture.ok()) << capture.status();
      const size_t passes = (*capture)->passes().size();
      EXPECT_GE(passes, 13u);
      for (const bool ops : {false, true}) {
        ExpectIdentical(Options(), ops, passes);
        ExpectIdentical(Options("cpu:1,several1:1,several3:2"), ops, passes);
      }
    }
  }
}

// A capture does not change what a session says.
TEST_F(ReplayTest, ACaptureChangesNothing) {
  const std::string layers = Record(Options(), TapLevel::kLayers, false);
  const std::string ops = Record(Options(), TapLevel::kOps, true);
  EXPECT_EQ(layers, ops);
  auto engine = MustLoad(Options());
  SessionOptions session_options;
  session_options.ignore_eos = true;
  auto session = Session::Create(engine.get(), session_options);
  std::vector<int32_t> prompt(50);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 5 % 256);
  ASSERT_TRUE((*session)->Append(prompt).ok());
  GenerateOptions generate;
  generate.max_tokens = 12;
  Generation result;
  ASSERT_TRUE(Generate(session->get(), generate, &result).ok());
  EXPECT_EQ(result.text, layers);
}

// Tokens are evaluated again at other positions: the replay regresses, too.
TEST_F(ReplayTest, AContextShiftIsReplayed) {
  EngineOptions options = Options();
  options.context = 64;
  Record(options, TapLevel::kLayers, false, /*context_shift=*/true);
  const auto capture = CaptureFile::Open(capture_);
  ASSERT_TRUE(capture.ok());
  ExpectIdentical(Options(), false, (*capture)->passes().size());
}

// A device is lost in mid-answer: the others evaluate the tokens again, and that is recorded.
TEST_F(ReplayTest, ALossInMidCaptureIsReplayed) {
  EngineOptions options = Options("cpu:2,several0:2");
  options.faults = "several0:lost@token=5";
  Record(options, TapLevel::kLayers, false);
  const auto capture = CaptureFile::Open(capture_);
  ASSERT_TRUE(capture.ok()) << capture.status();
  ExpectIdentical(Options(), false, (*capture)->passes().size());
}

// Runs on a device count from 1: with one plan for each op, run k is op k - 1.
TEST_F(ReplayTest, TheFirstOpThatIsWrongIsNamed) {
  Record(Options(), TapLevel::kOps, true);
  const auto capture = CaptureFile::Open(capture_);
  ASSERT_TRUE(capture.ok());
  const size_t n_ops = (*capture)->head().taps.back().op + 1;
  for (const size_t op : {size_t{0}, size_t{7}, n_ops / 2, n_ops - 1, n_ops + 11}) {
    EngineOptions options = Options("several0:100%");
    options.faults = absl::StrCat("several0:garbage=huge@run=", op + 1);
    const auto result = Play(options, /*ops=*/true);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto& taps = (*capture)->head().taps;
    const auto tap = std::find_if(taps.begin(), taps.end(),
                                  [&](const CapturedTap& t) { return t.op == op % n_ops; });
    if (tap->kind == TRINE_OP_KV_STORE) continue;  // a cache is no output of a run
    ASSERT_TRUE(result->difference.has_value()) << op;
    const ReplayDifference& d = *result->difference;
    EXPECT_EQ(d.pass, op / n_ops);
    EXPECT_EQ(d.tap.op, op % n_ops);
    EXPECT_EQ(d.device, "several0");
    EXPECT_EQ(d.element, 0u);
    EXPECT_GT(d.found, 1e37);
    EXPECT_GT(d.ulps, 1u);
    EXPECT_THAT(Describe(d), HasSubstr(absl::StrCat("op ", op % n_ops, ": ", tap->name)));
  }
}

TEST_F(ReplayTest, TheFirstLayerThatIsWrongIsNamed) {
  Record(Options(), TapLevel::kLayers, false);
  EngineOptions options = Options("several0:100%");
  options.faults = "several0:garbage=nan@run=4";  // the embedding, then layers 0, 1, 2
  const auto result = Play(options, /*ops=*/false);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->difference.has_value());
  EXPECT_EQ(result->difference->pass, 0u);
  EXPECT_EQ(result->difference->tap.layer, 2);
  EXPECT_THAT(Describe(*result->difference), HasSubstr("layer 2"));
}

TEST_F(ReplayTest, ACaptureOfAnotherModelIsRefused) {
  Record(Options(), TapLevel::kLayers, false);
  TinyModelSpec spec;
  spec.n_layers = 3;
  const TempFile other(MakeTinyModel(spec).ToBytes());
  EngineOptions options = TestOptions(other.path());
  options.batch_tokens = 32;
  const auto result = Play(options, false);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(ModelId(**gguf::File::Open(other.path())), ModelId(**gguf::File::Open(file_.path())));
}

TEST_F(ReplayTest, SeveralSequencesAreNotCaptured) {
  EngineOptions options = Options();
  options.max_sequences = 2;
  options.taps = TapLevel::kLayers;
  CaptureOptions to;
  to.path = capture_;
  auto recorder = CaptureRecorder::Create(to);
  ASSERT_TRUE(recorder.ok());
  EXPECT_FALSE((*recorder)->Finish().ok());  // nothing was recorded
  options.observer = [&](const auto& model, size_t stage, const Pass& pass) {
    return (*recorder)->Ran(model, stage, pass);
  };
  const auto engine = MustLoad(options);
  auto a = engine->NewSequence(), b = engine->NewSequence();
  const std::vector<int32_t> tokens = {1, 2, 3};
  ASSERT_TRUE(a->Append(tokens).ok());
  ASSERT_TRUE(b->Append(tokens).ok());
  Sequence* const both[] = {a.get(), b.get()};
  const absl::Status s = engine->Evaluate(both);
  EXPECT_THAT(std::string(s.message()), HasSubstr("one sequence"));
}

TEST_F(ReplayTest, RowsOfSeveralDevicesAreRefused) {
  EngineOptions options = Options("cpu:1,several0:1");
  options.placement.mode = SplitMode::kRow;
  options.taps = TapLevel::kLayers;
  const auto engine = Engine::Load(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("whole layers"));
}

// A file that is cut or changed anywhere is refused or the same, and never worse.
TEST_F(ReplayTest, DamagedFilesAreRefused) {
  for (const bool values : {false, true}) {
    Record(Options(), TapLevel::kLayers, values);
    const std::vector<std::byte> good = CaptureBytes();
    ASSERT_TRUE(CaptureFile::Parse(good).ok());
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
      std::vector<std::byte> bad = good;
      bad.resize(round < 100 ? static_cast<size_t>(round) : random() % good.size());
      EXPECT_FALSE(CaptureFile::Parse(bad).ok()) << bad.size();
    }
    for (int round = 0; round < 1500; ++round) {
      std::vector<std::byte> bad = good;
      // Most of what can be wrong is in the head.
      const size_t at =
          random() % (round % 2 == 0 ? std::min<size_t>(good.size(), 600) : good.size());
      bad[at] ^= std::byte(1 << random() % 8);
      EXPECT_FALSE(CaptureFile::Parse(bad).ok()) << at;
    }
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(CaptureFile::Parse(longer).ok());
  }
  EXPECT_FALSE(CaptureFile::Open("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace trine
