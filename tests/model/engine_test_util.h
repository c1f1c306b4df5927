// What tests that run models share: where the models are, engines with the backend just built, and
// the logits of a sequence.
#ifndef TRINE_TESTS_MODEL_ENGINE_TEST_UTIL_H_
#define TRINE_TESTS_MODEL_ENGINE_TEST_UTIL_H_

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/engine.h"
#include "runtime/logits_hash.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"

namespace trine {

// The model that comes with the project.
inline std::string ShippedModel() { return TRINE_SHIPPED_MODEL; }

// A folder of models and golden data outside the project; "" where it is absent.
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

inline std::unique_ptr<Engine> MustLoad(const EngineOptions& options) {
  auto engine = Engine::Load(options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

// Rows of logits of every position.
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

#endif  // TRINE_TESTS_MODEL_ENGINE_TEST_UTIL_H_
