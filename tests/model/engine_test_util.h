// Helpers of tests that run models: the models' paths, engines with the backend of this build, and
// the logits of a sequence.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/logits_hash.h"
#include "runtime/engine/engine.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"

namespace trine {

// The model that comes with the project.
inline std::string ShippedModel() { return TRINE_SHIPPED_MODEL; }

// Returns a folder of models and golden data outside the project; "" if it is absent.
inline std::string SharedFolder() {
  const char* named = std::getenv("TRINE_SHARED_DIR");
  const std::string folder = named != nullptr ? named : TRINE_SHARED_FOLDER;
  return std::filesystem::exists(folder + "/golden") ? folder : "";
}

inline EngineOptions TestOptions(const std::string& model) {
  EngineOptions options;
  options.model_path = model;
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN};
  options.plugins.search.use_environment = false;
  options.plugins.search.use_default_folders = false;
  return options;
}

// Parse what users write. A wrong text fails the test.
inline std::vector<SplitShare> SplitOf(const std::string& text) {
  if (text.empty()) return {};
  auto split = ParseSplit(text);
  EXPECT_TRUE(split.ok()) << split.status();
  return split.value_or(std::vector<SplitShare>());
}
inline std::vector<SplitShare> LimitsOf(const std::string& text) {
  auto limits = ParseDeviceMemory(text);
  EXPECT_TRUE(limits.ok()) << limits.status();
  return limits.value_or(std::vector<SplitShare>());
}
inline std::vector<TensorOverride> OverridesOf(const std::string& text) {
  auto overrides = ParseOverrides(text);
  EXPECT_TRUE(overrides.ok()) << overrides.status();
  return overrides.value_or(std::vector<TensorOverride>());
}

inline std::unique_ptr<Engine> MustLoad(const EngineOptions& options) {
  auto engine = Engine::Load(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

// Returns the logits of every position.
inline std::vector<std::vector<float>> AllLogits(Engine* engine,
                                                 const std::vector<int32_t>& tokens) {
  std::vector<std::vector<float>> rows;
  auto sequence = engine->NewSequence();
  sequence->set_row_observer([&](int64_t position, std::span<const float> row) {
    EXPECT_EQ(position, static_cast<int64_t>(rows.size()));
    rows.emplace_back(row.begin(), row.end());
  });
  EXPECT_TRUE(sequence->Append(tokens).ok());
  Sequence* const one[] = {sequence.get()};
  const absl::Status status = engine->Evaluate(one);
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

inline std::string HashOf(Engine* engine, const std::vector<int32_t>& tokens) {
  LogitsHash hash;
  int64_t position = 0;
  for (const std::vector<float>& row : AllLogits(engine, tokens)) hash.Add(position++, row);
  return hash.Text();
}

}  // namespace trine
