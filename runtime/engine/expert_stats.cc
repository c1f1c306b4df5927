#include "runtime/engine/expert_stats.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

// Says in every message which option named the file.
absl::Status AboutOption(const absl::Status& status) {
  return gguf::About("--expert-stats", status);
}

}  // namespace

ExpertStats::ExpertStats(std::string path, ExpertProfile read)
    : path_(std::move(path)), read_(std::move(read)) {}

absl::StatusOr<std::unique_ptr<ExpertStats>> ExpertStats::Open(const std::string& named,
                                                               const gguf::File& file,
                                                               const ModelConfig& config,
                                                               ExpertHits* hits, bool must_exist) {
  auto stats = OpenFile(named, file, config, hits, must_exist);
  if (!stats.ok()) return AboutOption(stats.status());
  return stats;
}

absl::StatusOr<std::unique_ptr<ExpertStats>> ExpertStats::OpenFile(const std::string& named,
                                                                   const gguf::File& file,
                                                                   const ModelConfig& config,
                                                                   ExpertHits* hits,
                                                                   bool must_exist) {
  const std::string path = WithoutLinks(named);
  if (config.experts.count == 0) {
    return Invalid(path, ": the model has no experts, so there is nothing to count");
  }
  const ExpertModel model = {config.architecture, ModelId(file), config.n_layers,
                             config.experts.count, config.experts.used};
  auto profile = ReadExpertProfile(path);
  if (absl::IsNotFound(profile.status()) && !must_exist) {
    // Only a check, removed again: it would be a pity to count for hours in vain.
    if (const auto tried = gguf::OutputFile::Create(path); !tried.ok()) return tried.status();
    const auto experts = static_cast<size_t>(model.experts);
    profile = ExpertProfile{
        model, {std::vector(static_cast<size_t>(model.layers), std::vector<uint64_t>(experts, 0))}};
  }
  if (absl::IsNotFound(profile.status())) {
    return absl::NotFoundError(absl::StrCat(
        profile.status().message(), ": generate, chat and serve make it with the same option"));
  }
  if (!profile.ok()) return profile.status();
  if (const absl::Status s = CheckFits(*profile, model); !s.ok()) return gguf::About(path, s);
  for (size_t layer = 0; layer < profile->counts.hits.size(); ++layer) {
    const std::vector<uint64_t>& of_layer = profile->counts.hits[layer];
    for (size_t e = 0; e < of_layer.size(); ++e) {
      hits->Add(static_cast<int64_t>(layer), static_cast<int64_t>(e), of_layer[e]);
    }
  }
  return std::unique_ptr<ExpertStats>(new ExpertStats(path, *std::move(profile)));
}

absl::Status ExpertStats::Write(const ExpertCounts& run) const {
  if (run.choices() == 0) return absl::OkStatus();
  const absl::Status status = AddToExpertProfile(path_, read_, run);
  return status.ok() ? status : AboutOption(status);
}

}  // namespace trine
