// Keeps the counts of an engine's experts in a file between runs (--expert-stats).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/experts/expert_hits.h"
#include "runtime/model/experts/expert_profile.h"

namespace trine {

class ExpertStats {
 public:
  // Reads the file, if there is one, and adds its hits to `hits`, which count for the engine. It is
  // an error if the file is no profile of the model's experts, or if the model has none. If there
  // is no file, it must be possible to create it; `must_exist`: it is an error. All errors name
  // --expert-stats and the file.
  static absl::StatusOr<std::unique_ptr<ExpertStats>> Open(const std::string& path,
                                                           const gguf::File& file,
                                                           const ModelConfig& config,
                                                           ExpertHits* hits, bool must_exist);
  ExpertStats(const ExpertStats&) = delete;
  ExpertStats& operator=(const ExpertStats&) = delete;

  // Adds the hits since Open to the file. Does nothing if there are none. Call it once.
  absl::Status Write(const ExpertCounts& run) const;

 private:
  ExpertStats(std::string path, ExpertProfile read);
  static absl::StatusOr<std::unique_ptr<ExpertStats>> OpenFile(const std::string& path,
                                                               const gguf::File& file,
                                                               const ModelConfig& config,
                                                               ExpertHits* hits, bool must_exist);

  const std::string path_;
  const ExpertProfile read_;
};

}  // namespace trine
