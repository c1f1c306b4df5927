// Everything about a model that is known before it is loaded: its file, its sizes, the devices
// there are, and who decides which of them it goes on.
#ifndef TRINE_RUNTIME_MODEL_SETUP_H_
#define TRINE_RUNTIME_MODEL_SETUP_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/block_keeper.h"
#include "runtime/device_set.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model/segment_graph.h"
#include "runtime/placement/placer.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

struct ModelSetup {
  std::shared_ptr<const gguf::File> file;
  std::shared_ptr<const Tokenizer> tokenizer;
  ModelConfig config;
  SegmentLimits limits;
  OwnedDevices devices;
  std::unique_ptr<Placer> placer;  // stands on `devices`
};

// What is wrong with the options by themselves, whatever the model and the machine are.
absl::Status CheckEngineOptions(const EngineOptions& options);

// Where KV blocks are kept and how, but for who is told of it.
absl::StatusOr<BlockKeeperOptions> KeepingOf(const EngineOptions& options);

absl::StatusOr<ModelSetup> PrepareModel(const EngineOptions& options);

// The status with the file's name, where it has not got it.
absl::Status AboutFile(const std::string& path, const absl::Status& status);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_SETUP_H_
