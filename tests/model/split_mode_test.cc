// Tests rows of matrices shared between devices, and single tensors elsewhere: the same bits as on
// the CPU alone, also when a device is lost; and a clear message for what is impossible.
#include "runtime/placement/split_mode.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kDevices = {"cpu", "several0", "several1", "several2", "several3"};

EngineOptions SplitOptions(const std::string& path) {
  EngineOptions options = TestOptions(path);
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
  options.threads = 1;
  return options;
}

// Returns shares of any size for some of the devices, in any order.
std::string RandomShares(std::mt19937* random) {
  std::vector<std::string> devices = kDevices;
  std::shuffle(devices.begin(), devices.end(), *random);
  devices.resize(2 + (*random)() % 3);
  std::string split;
  for (const std::string& device : devices) {
    absl::StrAppend(&split, split.empty() ? "" : ",", device, ":", 1 + (*random)() % 9);
  }
  return split;
}

// Returns one to three expressions, some for one tensor and some for many.
std::string RandomOverrides(const gguf::File& file, std::mt19937* random) {
  std::vector<std::string> names;
  for (const gguf::TensorInfo& t : file.tensors()) {
    if (t.rank >= 2 && t.name.ends_with(".weight")) names.emplace_back(t.name);
  }
  std::string text;
  for (size_t n = 1 + (*random)() % 3; n > 0; --n) {
    std::string expression = names[(*random)() % names.size()];
    if ((*random)() % 2 == 0 && expression.starts_with("blk.")) {
      expression = expression.substr(expression.find('.', 4));  // of all layers
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", expression, "=",
                    kDevices[(*random)() % kDevices.size()]);
  }
  return text;
}

class SplitModeFamilyTest : public testing::TestWithParam<std::string> {};

TEST_P(SplitModeFamilyTest, NeitherRowsNorSingleTensorsShow) {
  const ModelShape shape = *FindPreset(GetParam());
  const TempFile file(*MakeModelBytes(shape));
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(GetParam())));
  std::vector<int32_t> tokens(70);
  for (int32_t& t : tokens) {
    t = static_cast<int32_t>(random() % static_cast<uint32_t>(shape.vocab));
  }
  const auto alone = MustLoad(SplitOptions(file.path()));
  ASSERT_NE(alone, nullptr);
  const std::string expected = HashOf(alone.get(), tokens);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 40 : 5;
  for (int round = 0; round < rounds; ++round) {
    EngineOptions options = SplitOptions(file.path());
    const uint32_t kind = random() % 3;
    std::string split, overrides;
    if (kind != 1) {
      options.placement.mode = SplitMode::kRow;
      split = RandomShares(&random);
    } else if (random() % 2 == 0 && shape.layers > 1) {
      split = absl::StrCat("several3:1,cpu:", shape.layers - 1);
    }
    if (kind != 0) overrides = RandomOverrides(alone->file(), &random);
    options.placement.split = SplitOf(split);
    if (kind != 0) options.placement.overrides = OverridesOf(overrides);
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 90);
    options.pack = random() % 3 != 0;
    options.use_mmap = random() % 3 != 0;
    SCOPED_TRACE(absl::StrCat(split, " ", overrides, " ", options.batch_tokens, " tokens a pass"));
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(HashOf(engine.get(), tokens), expected);
  }
}

std::vector<std::string> SplitFamilies() {
  std::vector<std::string> names;
  for (const ModelShape& shape : TinyPresets()) names.emplace_back(shape.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, SplitModeFamilyTest, testing::ValuesIn(SplitFamilies()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class SplitModeTest : public testing::Test {
 protected:
  SplitModeTest() : file_(Model()) {}
  void TearDown() override { unsetenv("TRINE_FIXTURE_SEVERAL"); }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = 4;
    spec.type = quant::Type::kQ8_0;  // packed by the CPU backend
    spec.n_embd = 128;
    spec.n_ff = 256;
    spec.tied = true;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions RowOptions(const std::string& split, const std::string& faults = "") {
    EngineOptions options = SplitOptions(file_.path());
    options.placement.mode = SplitMode::kRow;
    options.placement.split = SplitOf(split);
    options.faults = faults;
    options.context = 128;
    options.max_sequences = 3;
    options.batch_tokens = 48;
    options.stage_limit = std::chrono::milliseconds(250);
    options.log = [this](uint32_t, const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    return options;
  }

  struct Outcome {
    absl::Status status;
    std::vector<std::string> said;
    std::vector<LostDevice> lost;
  };

  Outcome Generate(const EngineOptions& options) {
    Outcome outcome;
    auto engine = Engine::Load(options);
    outcome.status = engine.status();
    if (!engine.ok()) return outcome;
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> generate(3);
    std::vector<Generation> results(3);
    for (size_t i = 0; i < results.size(); ++i) {
      SessionOptions session_options;
      session_options.sampler.seed = 3 + i;
      session_options.ignore_eos = true;
      session_options.logits_hash = true;
      auto session = Session::Create(engine->get(), session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE(
          (*session)->Append(std::vector<int32_t>(3 + 9 * i, static_cast<int32_t>(40 + i))).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      generate[i].max_tokens = 10;
    }
    outcome.status = GenerateTogether(pointers, generate, results);
    for (size_t i = 0; i < results.size(); ++i) {
      outcome.said.push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    outcome.lost = (*engine)->lost_devices();
    return outcome;
  }

  std::string Refusal(const EngineOptions& options) {
    const auto engine = Engine::Load(options);
    EXPECT_FALSE(engine.ok());
    return engine.ok() ? "" : std::string(engine.status().message());
  }

  TempFile file_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(SplitModeTest, ADeviceLostInRowModeDoesNotShow) {
  const Outcome alone = Generate(SplitOptions(file_.path()));
  ASSERT_TRUE(alone.status.ok()) << alone.status;
  const std::string split = "several0:40%,cpu:30%,several1:30%";  // several0 is the main one
  EXPECT_EQ(Generate(RowOptions(split)).said, alone.said);
  for (const char* device : {"several0", "several1", "cpu"}) {
    for (const char* fault : {"lost@token=3", "oom@plan=3", "lost@plan=4", "garbage=status@run=9",
                              "garbage=nan@run=20", "garbage=tiny@token=7", "lost@open=1"}) {
      const std::string faults = absl::StrCat(device, ":", fault);
      SCOPED_TRACE(faults);
      const Outcome outcome = Generate(RowOptions(split, faults));
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.said, alone.said);
      ASSERT_EQ(outcome.lost.size(), 1u);
      EXPECT_EQ(outcome.lost[0].name, device);
      EXPECT_THAT(log_, HasSubstr(absl::StrCat(device, " is lost (")));
      EXPECT_THAT(log_, HasSubstr("): its rows go to the others"));
    }
  }
}

TEST_F(SplitModeTest, ADeviceThatHangsInAStepIsTheOneThatIsLeftBehind) {
  const Outcome alone = Generate(SplitOptions(file_.path()));
  for (const char* device : {"several0", "several1"}) {  // the main device, and one that helps
    const Outcome outcome =
        Generate(RowOptions("several0:3,cpu:2,several1:2", absl::StrCat(device, ":hang@token=3")));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said);
    ASSERT_EQ(outcome.lost.size(), 1u);
    EXPECT_EQ(outcome.lost[0].name, device);
  }
  // Both devices of the team may seem to hang. Whichever is blamed, the text is the same.
  const Outcome outcome = Generate(RowOptions("several0:3,cpu:2", "cpu:hang@token=3,in=team"));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.said, alone.said);
}

TEST_F(SplitModeTest, RowsAreSharedUntilOneDeviceIsLeft) {
  const Outcome alone = Generate(SplitOptions(file_.path()));
  const std::string faults = "several0:lost@token=2;several1:lost@token=9";
  Outcome outcome = Generate(RowOptions("several0:1,several1:1,several2:1", faults));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.said, alone.said);
  EXPECT_EQ(outcome.lost.size(), 2u);
  // Without the CPU and the main device, the last of the devices that share has everything.
  outcome = Generate(
      RowOptions("several0:3,cpu:2,several1:2", "cpu:lost@token=2;several0:lost@token=30"));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.said, alone.said);
  EXPECT_EQ(outcome.lost.size(), 2u);
  // With none of them left the CPU takes everything, and fails, too.
  outcome = Generate(RowOptions("several0:1,several1:1", faults + ";cpu:lost@run=2"));
  EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("no device is left"));
}

TEST_F(SplitModeTest, ALostDeviceGivesItsTensorsBack) {
  const Outcome alone = Generate(SplitOptions(file_.path()));
  EngineOptions options = RowOptions("", "several1:lost@token=4");
  options.placement.mode = SplitMode::kLayer;
  options.placement.devices = {"cpu"};  // other devices have the tensors alone
  options.placement.overrides =
      OverridesOf("ffn_(up|down)=several1,blk\\.[0-3]{1,2}\\.attn_q=several0");
  const Outcome outcome = Generate(options);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.said, alone.said);
  ASSERT_EQ(outcome.lost.size(), 1u);
  EXPECT_EQ(outcome.lost[0].name, "several1");
  EXPECT_THAT(log_, HasSubstr("): tensors that were placed there go back to their layers"));
}

// Devices work at the same time: their runs take long, and overlap.
TEST_F(SplitModeTest, PiecesOfAStepRunAtTheSameTime) {
  setenv("TRINE_FIXTURE_SEVERAL", "3000", 1);
  const auto time = [&](const std::string& split) {
    const auto engine = MustLoad(RowOptions(split));
    EXPECT_NE(engine, nullptr);
    const auto begin = std::chrono::steady_clock::now();
    HashOf(engine.get(), {1, 2, 3});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // The main device has about as many steps alone as it shares. With rows on three others the
  // shared steps take no longer than with rows on one.
  double least = 1e9;  // of a few: the machine may be busy
  for (int i = 0; i < 6 && least >= 1.6; ++i) {
    const double two = time("several0:9,several1:1");
    least = std::min(least, time("several0:6,several1:1,several2:1,several3:1") / two);
  }
  EXPECT_LT(least, 1.6);
}

TEST_F(SplitModeTest, WhereThingsAre) {
  EngineOptions options = RowOptions("cpu:1,several2:3");
  auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  ASSERT_EQ(engine->model()->places().size(), 1u);
  EXPECT_EQ(engine->model()->places()[0].device_name, "several2");
  EXPECT_THAT(engine->model()->StageDevices(0), ElementsAre("several2", "cpu"));
  const std::vector<DeviceWeights> weights = engine->model()->weights();
  ASSERT_EQ(weights.size(), 2u);
  for (const DeviceWeights& w : weights) EXPECT_GT(w.packed_bytes, 0u) << w.device_name;
  // Matrices that are cut are shared one to three.
  const double share = static_cast<double>(weights[1].packed_bytes) /
                       static_cast<double>(weights[0].packed_bytes + weights[1].packed_bytes);
  EXPECT_NEAR(share, 0.25, 0.06);
  options.placement.mode = SplitMode::kNone;
  engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_THAT(engine->model()->StageDevices(0), ElementsAre("cpu"));
  options.placement.split = {};
  engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->model()->places()[0].device_name, "cpu");
}

TEST_F(SplitModeTest, PackedSlicesAreKeptInTheCacheToo) {
  const auto folder = std::filesystem::temp_directory_path() /
                      absl::StrCat("trine-rows-", static_cast<int>(getpid()));
  std::filesystem::create_directories(folder);
  const Outcome alone = Generate(SplitOptions(file_.path()));
  EngineOptions options = RowOptions("several0:1,several1:1,cpu:1");
  options.pack_cache = true;
  options.pack_cache_folder = folder.string();
  for (int round = 0; round < 2; ++round) {  // written, then read
    const Outcome outcome = Generate(options);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.said, alone.said) << round;
    EXPECT_THAT(log_, Not(HasSubstr("cache")));
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_F(SplitModeTest, WhatCannotBeIsSaid) {
  EngineOptions options = RowOptions("");
  options.placement.mode = SplitMode::kLayer;
  const auto with = [&](const std::string& text) {
    const auto overrides = ParseOverrides(text);
    if (!overrides.ok()) return std::string(overrides.status().message());
    options.placement.overrides = *overrides;
    return Refusal(options);
  };
  EXPECT_THAT(with("ffn_up=dgpu"), HasSubstr("dgpu"));
  EXPECT_THAT(with("no_such=cpu"), HasSubstr("'no_such' finds no tensor of the model"));
  EXPECT_THAT(with("attn_norm=cpu"), HasSubstr("finds only tensors that stay with their layer"));
  EXPECT_THAT(with("ffn_(up=cpu"), HasSubstr("is wrong at offset"));
  EXPECT_THAT(with("ffn_up"), HasSubstr("'ffn_up' is not REGEX=DEVICE"));
  EXPECT_THAT(with("=cpu"), HasSubstr("has no expression"));
  EXPECT_THAT(with("ffn_up="), HasSubstr("names no device"));
  EXPECT_THAT(Refusal(RowOptions("dgpu:1,cpu:1")), HasSubstr("dgpu"));
  EXPECT_THAT(Refusal(RowOptions("3,1")), HasSubstr("2 proportions for 0 GPUs"));
  EXPECT_THAT(Refusal(RowOptions("cpu:1G,several0:3")), HasSubstr("all of one kind"));
  EXPECT_THAT(Refusal(RowOptions("cpu:0,several0:0")), HasSubstr("the shares are all 0"));
  options = RowOptions("");
  options.placement.gpu_layers = 2;
  EXPECT_THAT(Refusal(options), HasSubstr("goes with the split mode layer"));
}

TEST(ParseOverridesTest, ACommaMayBeTheExpressionsOwn) {
  const auto overrides = ParseOverrides("a{1,2}=cpu,b=dgpu0");
  ASSERT_TRUE(overrides.ok()) << overrides.status();
  ASSERT_EQ(overrides->size(), 2u);
  EXPECT_EQ((*overrides)[0].expression, "a{1,2}");
  EXPECT_EQ((*overrides)[0].device, "cpu");
  EXPECT_EQ((*overrides)[1].expression, "b");
  EXPECT_EQ((*overrides)[1].device, "dgpu0");
}

}  // namespace
}  // namespace trine
