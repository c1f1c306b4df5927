// Generates answers of the shipped model under random schemas, hot enough to be nonsense. Prints a
// line of JSON for each: {"schema": ..., "text": ..., "complete": ...}. One schema is a bare "{}",
// where everything is up to the model.
//
//   constrained-answers COUNT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/engine/engine.h"
#include "runtime/engine/generate.h"
#include "tests/constraint/random_schema.h"

namespace trine {
namespace {

constexpr int64_t kTogether = 16;
constexpr int64_t kSpareTokens = 24;  // beyond those of the shortest answer
constexpr int64_t kMaxTokens = 100;

int Fail(const std::string& what) {
  std::fprintf(stderr, "constrained-answers: %s\n", what.c_str());
  return 1;
}

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine() {
  EngineOptions options;
  options.model_path = TRINE_SHIPPED_MODEL;
  options.context = 256;
  options.max_sequences = kTogether;
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN};
  options.plugins.search.use_environment = false;
  options.plugins.search.use_default_folders = false;
  return Engine::Load(options);
}

absl::StatusOr<std::unique_ptr<Session>> Open(Engine* engine, const std::string& schema,
                                              uint64_t seed) {
  auto constraint = Constraint::FromJsonSchema(schema, engine->constraint_vocabulary());
  if (!constraint.ok()) {
    return absl::Status(constraint.status().code(),
                        std::string(constraint.status().message()) + ": " + schema);
  }
  SessionOptions options;
  options.constraint = *std::move(constraint);
  options.sampler.temp = 1.5f;
  options.sampler.top_k = 0;
  options.sampler.top_p = 1.0f;
  options.sampler.min_p = 0.0f;
  options.sampler.seed = seed;
  auto session = Session::Create(engine, options);
  if (!session.ok()) return session;
  if (absl::Status s = (*session)->AppendText("The answer is: ", {}); !s.ok()) return s;
  return session;
}

int Main(int count) {
  auto engine = LoadEngine();
  if (!engine.ok()) return Fail(std::string(engine.status().message()));
  std::mt19937 random(2026);
  for (int done = 0; done < count;) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<nlohmann::ordered_json> schemas;
    for (; done < count && sessions.size() < kTogether; ++done) {
      schemas.push_back(done % 50 == 0 ? nlohmann::ordered_json::object() : RandomSchema(&random));
      auto session = Open(engine->get(), schemas.back().dump(), static_cast<uint64_t>(done));
      if (!session.ok()) return Fail(std::string(session.status().message()));
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
    }
    std::vector<GenerateOptions> all(sessions.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const auto state = sessions[i]->FollowConstraint();
      if (!state.ok()) return Fail(std::string(state.status().message()));
      all[i].max_tokens = std::min((*state)->TokensToFinish() + kSpareTokens, kMaxTokens);
    }
    std::vector<Generation> results(sessions.size());
    const absl::Status status = GenerateTogether(pointers, all, results);
    if (!status.ok()) return Fail(std::string(status.message()));
    for (size_t i = 0; i < results.size(); ++i) {
      const nlohmann::ordered_json line = {{"schema", schemas[i]},
                                           {"text", results[i].text},
                                           {"complete", results[i].complete},
                                           {"finish", FinishReasonName(results[i].finish)}};
      std::printf("%s\n", line.dump().c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) { return trine::Main(argc > 1 ? std::atoi(argv[1]) : 500); }
