// Prepares a model for loading: opens its file, reads its sizes and its tokenizer, finds the
// devices, and makes the placer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/expert_stats.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/kv/block_keeper.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/run/model.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/placer.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

struct ModelSetup {
  std::shared_ptr<const gguf::File> file;
  std::shared_ptr<const Tokenizer> tokenizer;
  ModelConfig config;
  SegmentLimits limits;
  std::shared_ptr<ExpertHits> hits;  // counts of the model's experts
  // null: no file keeps the counts, or it is not written.
  std::unique_ptr<ExpertStats> expert_stats;
  OwnedDevices devices;
  std::unique_ptr<Placer> placer;  // points to `devices`, so it must be destroyed before them
};

// Checks what can be checked without the model and the machine. Returns INVALID_ARGUMENT for an
// option that makes no sense.
absl::Status CheckEngineOptions(const EngineOptions& options);

// Returns the part of the options that is about keeping KV blocks, as options of a BlockKeeper. The
// caller sets the callbacks.
absl::StatusOr<BlockKeeperOptions> KeepingOf(const EngineOptions& options);

// Checks the file that keeps counts of experts, if there is to be one: that it is readable, of this
// model, and that it can be made if it is not there. Takes no time, as loading does.
absl::Status CheckExpertStats(const EngineOptions& options, const gguf::File& file);

// Checks the options and prepares the model. Probes the plugins but opens no device. Errors about
// the file name it.
absl::StatusOr<ModelSetup> PrepareModel(const EngineOptions& options);

// Puts `path` before the status's message, unless the message contains it already.
absl::Status AboutFile(const std::string& path, const absl::Status& status);

// Describes where a model is placed, without holding any part of it.
struct PlacedSegment {
  std::string device;  // its tier name
  std::string chip;    // the maker's name
  LayerSpan span;
  // Shares of the total bytes, in proportion to layers: weights of the device's, the others of the
  // model's.
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t scratch_bytes = 0;
};

struct PlacedModel {
  std::vector<PlacedSegment> segments;  // empty while the model is placed anew
};

PlacedModel Describe(const Model& model);

}  // namespace trine
