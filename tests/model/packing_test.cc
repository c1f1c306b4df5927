// Tests weights in a device's own layouts: the same bits as plain ones, one copy in memory, and a
// cache that is used when it is complete and rewritten when it is not.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/make_model/make_model.h"
#include "runtime/make_model/presets.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int32_t> Prompt() {
  std::vector<int32_t> tokens;
  uint32_t state = 99;
  for (int i = 0; i < 40; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 8) % 250u));
  }
  return tokens;
}

class PackingTest : public testing::Test {
 protected:
  PackingTest() {
    folder_ =
        (std::filesystem::temp_directory_path() / ("trine-packing-" + std::to_string(getpid())))
            .string();
    std::filesystem::create_directories(folder_);
  }
  ~PackingTest() override {
    unsetenv("TRINE_FIXTURE_PACKING");
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }

  // Sets how the fixture behaves from here on: see packing_backend.cc.
  static void Fixture(const char* words) { setenv("TRINE_FIXTURE_PACKING", words, 1); }

  std::string Make(const char* preset, uint64_t max_part_bytes = 0) {
    MakeModelOptions make;
    make.max_part_bytes = max_part_bytes;
    const std::string path = folder_ + "/" + preset + ".gguf";
    const absl::Status s = MakeModel(*FindPreset(preset), make, path);
    EXPECT_TRUE(s.ok()) << s;
    if (max_part_bytes == 0) return path;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().string().find("-00001-of-") != std::string::npos) return entry.path();
    }
    return path;
  }

  EngineOptions Options(const std::string& model) {
    EngineOptions options = TestOptions(model);
    options.plugins.search.explicit_paths = {TRINE_PACKING_PLUGIN};
    options.context = 64;
    options.threads = 2;
    options.log = [this](uint32_t level, const std::string& message) {
      const bool of_threads = message.find("processors") != std::string::npos;
      if (level >= TRINE_LOG_WARNING && !of_threads) warnings_ += message + "\n";
    };
    return options;
  }

  // Returns the hash of the prompt's logits. Sets packed_ (bytes) and warnings_.
  std::string Run(const EngineOptions& options) {
    warnings_.clear();
    auto engine = Engine::Load(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    if (!engine.ok()) return "no engine";
    packed_ = (*engine)->model()->packed_bytes();
    return HashOf(engine->get(), Prompt());
  }
  std::string Plain(const std::string& model) {
    EngineOptions options = Options(model);
    options.pack = false;
    const std::string hash = Run(options);
    EXPECT_EQ(packed_, 0u);
    return hash;
  }

  std::string folder_, warnings_;
  uint64_t packed_ = 0;
};

TEST_F(PackingTest, PackedWeightsDoNotShow) {
  for (const char* preset : {"tiny-llama", "tiny-llama-q4_k", "tiny-mixtral", "tiny-qwen2-tied",
                             "tiny-phi3", "tiny-gpt-oss", "tiny-gemma3"}) {
    const std::string model = Make(preset);
    Fixture("");
    const std::string plain = Plain(model);
    for (const char* mode : {"", "same", "no-gather", "hidden", "no-import", "hidden,no-import"}) {
      Fixture(mode);
      EXPECT_EQ(Run(Options(model)), plain) << preset << " " << mode;
      EXPECT_GT(packed_, 0u) << preset << " " << mode;
      EXPECT_THAT(warnings_, IsEmpty());
      EngineOptions read = Options(model);
      read.use_mmap = false;
      EXPECT_EQ(Run(read), plain) << preset << " " << mode << ", not mapped";
    }
  }
}

// The output of a segment is not copied if devices import the border's memory; the bits are the
// same if they don't.
TEST_F(PackingTest, BordersAreImportedOrCopied) {
  const std::string model = Make("tiny-llama");
  Fixture("");
  const std::string whole = Plain(model);
  EngineOptions options = Options(model);
  options.placement.split = SplitOf("cpu:1,packing1:1,cpu:1");
  const auto hidden_bytes = static_cast<uint64_t>(Prompt().size() * sizeof(float));
  for (const char* mode :
       {"", "hidden", "coarse", "no-import", "hidden,no-import", "no-memory", "no-memory,told"}) {
    SCOPED_TRACE(mode);
    Fixture(mode);
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(HashOf(engine.get(), Prompt()), whole);
    const std::vector<SegmentCounters> segments = engine->segments();
    ASSERT_EQ(segments.size(), 3u);
    const bool imports = std::string(mode).find("no-") == std::string::npos;
    const uint64_t bytes =
        imports ? 0 : hidden_bytes * static_cast<uint64_t>(engine->config().n_embd);
    EXPECT_EQ(segments[0].bytes_out, bytes);
    EXPECT_EQ(segments[1].bytes_out, bytes);
    // All but the ids of the tokens, and what is between.
    EXPECT_EQ(segments[1].bytes_in, segments[0].bytes_in - hidden_bytes + bytes);
  }
}

TEST_F(PackingTest, ADeviceWithoutLayersIsNamed) {
  EngineOptions options = Options(Make("tiny-llama"));
  for (const char* split : {"packing1:0,cpu:3", "cpu:100%,packing1:0%"}) {
    options.placement.split = SplitOf(split);
    Run(options);
    EXPECT_EQ(warnings_, "tensor split: packing1 gets no layer\n") << split;
  }
  options.placement.split = SplitOf("packing1:1K,cpu:3");
  Run(options);
  EXPECT_THAT(warnings_, HasSubstr("packing1 gets no layer: layer 0 has "));
  options.placement.split = SplitOf("cpu:0,packing1:1,cpu:2");
  Run(options);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PackingTest, NeitherThreadsNorSplitsShow) {
  const std::string model = Make("tiny-qwen2-tied");
  const std::string plain = Plain(model);
  for (const uint32_t threads : {1u, 2u, 4u}) {
    EngineOptions options = Options(model);
    options.threads = threads;
    EXPECT_EQ(Run(options), plain);
  }
  for (const char* split : {"cpu:1,cpu:2", "cpu:2,packing1:1", "packing1:1,cpu:1,packing1:1"}) {
    EngineOptions options = Options(model);
    options.placement.split = SplitOf(split);
    for (const bool mapped : {true, false}) {
      options.use_mmap = mapped;
      EXPECT_EQ(Run(options), plain) << split;
      EXPECT_GT(packed_, 0u);
    }
  }
}

TEST_F(PackingTest, ATiedEmbeddingIsPackedOnceOrStaysInTheFile) {
  const std::string model = Make("tiny-qwen2-tied");
  Run(Options(model));
  const uint64_t shared = packed_;
  Fixture("no-gather");
  Run(Options(model));
  EXPECT_EQ(packed_, shared);
}

TEST_F(PackingTest, ADeviceThatBreaksTheRulesGetsPlainWeightsAndAWarning) {
  const std::string model = Make("tiny-llama");
  const std::string plain = Plain(model);
  Fixture("lies");
  EXPECT_EQ(Run(Options(model)), plain);
  EXPECT_EQ(packed_, 0u);
  EXPECT_THAT(warnings_, HasSubstr("do not fit"));
  Fixture("fails");
  EXPECT_EQ(Run(Options(model)), plain);
  EXPECT_EQ(packed_, 0u);
  EXPECT_THAT(warnings_, HasSubstr("it does not feel like it"));
  EngineOptions read = Options(model);
  read.use_mmap = false;  // the slices that were packed are gone
  EXPECT_THAT(std::string(Engine::Load(read).status().message()), HasSubstr("could not be packed"));
  Fixture("refuses");
  EXPECT_EQ(Run(Options(model)), plain);
  EXPECT_EQ(packed_, 0u);
  EXPECT_THAT(warnings_, IsEmpty());
  Fixture("none");
  EXPECT_EQ(Run(Options(model)), plain);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PackingTest, WithoutMemoryForPackedOnesWeightsStayPlain) {
  const std::string model = Make("tiny-llama");
  const std::string plain = Plain(model);
  Fixture("full");
  for (const bool mapped : {true, false}) {
    EngineOptions options = Options(model);
    options.use_mmap = mapped;
    options.pack_cache = true;
    EXPECT_EQ(Run(options), plain);
    EXPECT_EQ(packed_, 0u);
    EXPECT_THAT(warnings_, HasSubstr("it is full"));
    EXPECT_THAT(warnings_, HasSubstr("stay as in the file"));
    EXPECT_FALSE(std::filesystem::exists(model + ".trine-pack"));
  }
}

TEST_F(PackingTest, ValuesOutOfRangeAreBroughtIntoItOnTheWay) {
  TinyModelSpec spec;
  TinyModel tiny = MakeTinyModel(spec);
  for (size_t i = 0; i < tiny.data.size(); ++i) {
    auto* values = reinterpret_cast<float*>(tiny.data[i].data());
    if (tiny.data[i].size() < 4096) continue;  // matrices alone
    values[7] = 1e-30f;
    values[100] = -0.0f;
  }
  const TempFile file(tiny.ToBytes());
  const std::string plain = Plain(file.path());
  for (const char* mode : {"", "hidden"}) {
    Fixture(mode);
    EXPECT_EQ(Run(Options(file.path())), plain);
    EXPECT_GT(packed_, 0u);
  }
}

TEST_F(PackingTest, AValueThatIsNoNumberIsStillRefused) {
  TinyModel tiny = MakeTinyModel({});
  auto* values = reinterpret_cast<uint32_t*>(tiny.data.back().data());
  values[0] = 0x7fc00000;
  const TempFile file(tiny.ToBytes());
  EXPECT_THAT(std::string(Engine::Load(Options(file.path())).status().message()),
              HasSubstr("no finite number, in row 0"));
}

TEST_F(PackingTest, ProgressIsOneWayAndCanBeCancelled) {
  const std::string model = Make("tiny-llama");
  for (int run = 0; run < 2; ++run) {  // cold and warm
    double last = -1;
    EngineOptions options = Options(model);
    options.pack_cache = true;
    options.progress = [&](double fraction) {
      EXPECT_GE(fraction, last);
      last = fraction;
      return true;
    };
    Run(options);
    EXPECT_EQ(last, 1);
    options.progress = [](double) { return false; };
    EXPECT_TRUE(absl::IsCancelled(Engine::Load(options).status()));
  }
}

TEST_F(PackingTest, FillingAnArenaIsPartOfTheProgress) {
  const std::string model = Make("tiny-llama");
  const std::string plain = Plain(model);
  EngineOptions options = Options(model);
  Fixture("no-files,told,none");
  for (const bool mapped : {true, false}) {
    options.use_mmap = mapped;
    std::vector<double> told;
    options.progress = [&](double fraction) {
      told.push_back(fraction);
      return true;
    };
    EXPECT_EQ(Run(options), plain);
    ASSERT_GE(told.size(), 2u);
    EXPECT_LT(told.front(), 0.9) << "all is looked at, but not yet where it is to lie";
    EXPECT_EQ(told.back(), 1);
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    options.progress = [&](double fraction) { return fraction <= told.front(); };
    EXPECT_TRUE(absl::IsCancelled(Engine::Load(options).status()));
  }
}

TEST_F(PackingTest, ProgressDoesNotGoBackWhenLoadingBeginsAgain) {
  ModelShape shape = *FindPreset("tiny-llama");
  shape.layers = 24;  // so many tensors that some are done before the device tires
  const std::string model = folder_ + "/deep.gguf";
  ASSERT_TRUE(MakeModel(shape, {}, model).ok());
  const std::string plain = Plain(model);
  Fixture("tires");
  std::vector<double> told;
  EngineOptions options = Options(model);
  options.progress = [&](double fraction) {
    told.push_back(fraction);
    return true;
  };
  EXPECT_EQ(Run(options), plain);
  EXPECT_EQ(packed_, 0u);
  EXPECT_THAT(warnings_, HasSubstr("it does not feel like it"));
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  ASSERT_GE(told.size(), 3u);
  EXPECT_EQ(told.back(), 1);
}

// --- The cache

class PackCacheTest : public PackingTest {
 protected:
  void SetUp() override {
    model_ = Make("tiny-mixtral");
    plain_ = Plain(model_);
    cache_ = model_ + ".trine-pack";
  }
  EngineOptions Cached() {
    EngineOptions options = Options(model_);
    options.pack_cache = true;
    return options;
  }
  // Loads and compares. Returns whether the cache was written anew.
  bool Writes(const EngineOptions& options) {
    const ino_t before = Inode();
    EXPECT_EQ(Run(options), plain_);
    EXPECT_GT(packed_, 0u);
    return Inode() != before;
  }
  ino_t Inode() const {
    struct stat st {};
    return stat(cache_.c_str(), &st) == 0 ? st.st_ino : 0;
  }
  std::string Bytes() const {
    std::ifstream in(cache_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Writes a new file, as renaming does: the old one may still be mapped.
  void Put(const std::string& bytes) {
    std::filesystem::remove(cache_);
    std::ofstream(cache_, std::ios::binary) << bytes;
  }

  std::string model_, plain_, cache_;
};

TEST_F(PackCacheTest, IsWrittenOnceAndThenUsed) {
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_GE(std::filesystem::file_size(cache_), packed_);
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
  Fixture("fails");  // nothing is packed any more
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
  for (const char* mode : {"hidden,fails", "no-import,fails", "hidden,no-import,fails"}) {
    Fixture(mode);
    EXPECT_FALSE(Writes(Cached())) << mode;
    EXPECT_THAT(warnings_, IsEmpty()) << mode;
  }
  EngineOptions read = Cached();
  read.use_mmap = false;
  EXPECT_FALSE(Writes(read));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos);
  }
}

TEST_F(PackCacheTest, ADeviceWhoseMemoryIsHiddenWritesTheSame) {
  EXPECT_TRUE(Writes(Cached()));
  const std::string bytes = Bytes();
  std::filesystem::remove(cache_);
  Fixture("hidden,no-import");
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_EQ(Bytes(), bytes);
}

TEST_F(PackCacheTest, GoesToTheFolderThatIsNamed) {
  EngineOptions options = Cached();
  options.pack_cache_folder = folder_ + "/elsewhere";
  std::filesystem::create_directory(options.pack_cache_folder);
  cache_ = options.pack_cache_folder + "/tiny-mixtral.gguf.trine-pack";
  EXPECT_TRUE(Writes(options));
  EXPECT_FALSE(Writes(options));
}

TEST_F(PackCacheTest, DamageAnywhereIsNoticedAndMended) {
  ASSERT_TRUE(Writes(Cached()));
  const std::string good = Bytes();
  const auto damaged = [&](const std::string& bytes, const char* why) {
    Put(bytes);
    EXPECT_TRUE(Writes(Cached())) << why;
    EXPECT_THAT(warnings_, HasSubstr(why));
    EXPECT_THAT(warnings_, HasSubstr(cache_ + ": "));
    EXPECT_THAT(warnings_, HasSubstr("will be written anew"));
    EXPECT_TRUE(Bytes() == good) << why;
  };
  std::string bytes = good;
  bytes[9000] ^= 1;  // the first tensor's data
  damaged(bytes, "is damaged in");
  bytes = good;
  bytes[100] ^= 1;
  damaged(bytes, "damaged head");
  damaged(good.substr(0, good.size() / 2), "bytes, and says");
  damaged(good + "x", "bytes, and says");
  damaged("", "empty");
  damaged("TRINEPCK", "ends inside");
  damaged(std::string(10000, 'x'), "is no pack cache");
  std::filesystem::remove(cache_);
  std::filesystem::create_directory(cache_);
  EXPECT_EQ(Run(Cached()), plain_);
  EXPECT_THAT(warnings_, HasSubstr("folder"));
}

TEST_F(PackCacheTest, AnotherModelOfTheSameNameIsNoticed) {
  ASSERT_TRUE(Writes(Cached()));
  // The same bytes with another time: compared in full, and found equal.
  std::filesystem::last_write_time(
      model_, std::filesystem::last_write_time(model_) + std::chrono::seconds(10));
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
  MakeModelOptions make;
  make.seed = 2;
  ASSERT_TRUE(MakeModel(*FindPreset("tiny-mixtral"), make, model_).ok());
  plain_ = Plain(model_);
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_THAT(warnings_, HasSubstr("another model"));
  ASSERT_TRUE(MakeModel(*FindPreset("tiny-llama"), {}, model_).ok());
  plain_ = Plain(model_);
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_THAT(warnings_, HasSubstr("another model, device or version"));
}

TEST_F(PackCacheTest, AnotherModelWrittenIntoTheFileIsNoticedWhateverItsTime) {
  ASSERT_TRUE(Writes(Cached()));
  const std::string other = folder_ + "/other.gguf";
  MakeModelOptions make;
  make.seed = 2;
  ASSERT_TRUE(MakeModel(*FindPreset("tiny-mixtral"), make, other).ok());
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(model_.c_str(), &before), 0);
  {  // into the same file, which keeps its size and inode
    std::ifstream in(other, std::ios::binary);
    std::fstream out(model_, std::ios::binary | std::ios::in | std::ios::out);
    out << in.rdbuf();
    ASSERT_TRUE(out.good());
  }
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, model_.c_str(), times, 0), 0);
  ASSERT_EQ(stat(model_.c_str(), &after), 0);
  ASSERT_EQ(after.st_size, before.st_size);
  ASSERT_EQ(after.st_ino, before.st_ino);
  ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  const std::string was = plain_;
  plain_ = Plain(model_);
  ASSERT_NE(plain_, was);
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_THAT(warnings_, HasSubstr("another model"));
}

TEST_F(PackCacheTest, AnotherLayoutIsNoticed) {
  ASSERT_TRUE(Writes(Cached()));
  Fixture("same");
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_THAT(warnings_, HasSubstr("another model, device or version"));
}

TEST_F(PackCacheTest, StaysAsItIsWhenSomethingElseFails) {
  ASSERT_TRUE(Writes(Cached()));
  Fixture("no-import,full-once");  // weights are packed after all
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, HasSubstr(cache_ + ": "));
  EXPECT_THAT(warnings_, HasSubstr("it is full; it is not used\n"));
  Fixture("");
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PackCacheTest, MemoryIsCheckedBeforeItIsRead) {
  ASSERT_TRUE(Writes(Cached()));
  Fixture("no-import,free:65536");
  EngineOptions options = Cached();
  int told = 0;
  options.progress = [&](double) { return ++told > 0; };
  EXPECT_TRUE(absl::IsResourceExhausted(Engine::Load(options).status()));
  EXPECT_EQ(told, 0);
}

TEST_F(PackCacheTest, WhereNothingCanBeWrittenItGoesOn) {
  EngineOptions options = Cached();
  options.pack_cache_folder = folder_ + "/nowhere";
  EXPECT_EQ(Run(options), plain_);
  EXPECT_GT(packed_, 0u);
  EXPECT_THAT(warnings_, HasSubstr("not kept"));
}

TEST_F(PackCacheTest, ASplitOverDevicesAndASplitFileHaveOneToo) {
  EngineOptions options = Cached();
  options.placement.split = SplitOf("cpu:1,packing1:2");
  EXPECT_TRUE(Writes(options));
  EXPECT_FALSE(Writes(options));
  EXPECT_THAT(warnings_, IsEmpty());
  std::filesystem::remove(model_);
  model_ = Make("tiny-mixtral", 500000);
  ASSERT_THAT(model_, HasSubstr("-00001-of-"));
  cache_ = model_ + ".trine-pack";
  EXPECT_TRUE(Writes(Cached()));
  EXPECT_FALSE(Writes(Cached()));
  EXPECT_THAT(warnings_, IsEmpty());
}

// --- Memory

uint64_t StatusBytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) != 0) continue;
    return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) << 10;  // it says kB
  }
  return 0;
}

TEST_F(PackingTest, WhatIsReadPlainTooIsLockedToo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers lock nothing";
#endif
  const std::string model = Make("tiny-qwen2-tied");
  const auto locked = [&](const char* mode) {
    Fixture(mode);
    EngineOptions options = Options(model);
    options.lock_memory = true;
    warnings_.clear();
    const auto engine = MustLoad(options);
    return StatusBytes("VmLck");
  };
  const uint64_t packed_alone = locked("");
  if (!warnings_.empty()) {  // not allowed here: nothing may be locked
    EXPECT_EQ(packed_alone, 0u);
    return;
  }
  EXPECT_GT(packed_alone, 0u);
  EXPECT_GT(locked("no-gather"), packed_alone + 32768);  // the embedding
}

TEST_F(PackingTest, WhatPackingLetsGoOfCountsAsFree) {
  const std::string model = Make("tiny-llama");
  EngineOptions options = Options(model);
  const auto packs = [&](uint64_t free, bool mapped) {
    Fixture(("free:" + std::to_string(free)).c_str());
    options.use_mmap = mapped;
    warnings_.clear();
    const auto engine = Engine::Load(options);
    packed_ = engine.ok() ? (*engine)->model()->packed_bytes() : 0;
    return packed_ != 0;
  };
  uint64_t less = 1, enough = 1 << 30;  // of a mapped file
  ASSERT_TRUE(packs(enough, true));
  const uint64_t packed = packed_;
  while (enough - less > 4096) {
    const uint64_t middle = (less + enough) / 2;
    (packs(middle, true) ? enough : less) = middle;
  }
  const uint64_t scarce = enough - packed / 2;
  EXPECT_FALSE(packs(scarce, true));
  EXPECT_THAT(warnings_, HasSubstr("stay as in the file"));
  EXPECT_TRUE(packs(scarce, false));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_FALSE(packs((enough - packed) / 2, false));  // not even with that
}

TEST_F(PackingTest, ThePeakIsNearOneCopy) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory is in the way";
#endif
  ModelShape shape = *FindPreset("tiny-llama");
  shape.layers = 8;
  shape.embd = 512;
  shape.heads = 8;
  shape.head_dim = 64;
  shape.ff = 1024;
  const std::string model = folder_ + "/large.gguf";
  ASSERT_TRUE(MakeModel(shape, {}, model).ok());
  const auto bytes = static_cast<double>(std::filesystem::file_size(model));
  ASSERT_GT(bytes, 50e6);
  const auto expect_peak = [&](const char* mode, bool mapped, bool cache, double limit) {
    Fixture(mode);
    EngineOptions options = Options(model);
    options.use_mmap = mapped;
    options.pack_cache = cache;
    options.batch_tokens = 16;
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
    const uint64_t before = StatusBytes("VmHWM");
    auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const DeviceWeights weights = engine->model()->weights().at(0);
    EXPECT_GT(static_cast<double>(weights.packed_bytes + weights.plain.arena), 0.8 * bytes);
    const auto peak = static_cast<double>(StatusBytes("VmHWM") - before);
    const std::string how =
        std::string(mode) + (mapped ? ", mapped" : ", read") + (cache ? ", cache" : "");
    EXPECT_LT(peak, limit * bytes) << how;
    std::printf("  %s: %.2f of the file\n", how.c_str(), peak / bytes);
  };
  for (const bool mapped : {true, false}) {
    for (const bool cache : {false, true}) expect_peak("same", mapped, cache, 1.3);
    // In an arena. A large page counts as a whole as soon as one worker has begun it.
    expect_peak("no-files,none", mapped, false, 1.6);
  }
}

}  // namespace
}  // namespace trine
