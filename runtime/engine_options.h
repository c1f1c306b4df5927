// What a model is to be loaded with.
#ifndef TRINE_RUNTIME_ENGINE_OPTIONS_H_
#define TRINE_RUNTIME_ENGINE_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/planner.h"
#include "dispatch/size_rule.h"
#include "plugins/host_services.h"
#include "plugins/registry.h"
#include "runtime/model/load_progress.h"
#include "runtime/model/model.h"
#include "runtime/readmission.h"

namespace trine {

// What a model is split into over devices (docs/split-modes.md).
enum class SplitMode { kLayer, kRow, kNone };

struct EngineOptions {
  std::string model_path;
  int64_t context = kDefaultContext;  // positions of a sequence; 0: the model's own
  int64_t batch_tokens = 512;         // in one pass
  int64_t max_sequences = 1;          // in one pass; the cache holds as many full ones
  // Forks that are read for one token each and then let go of or taken for their origin: so many
  // beside max_sequences have a place in one pass, and a block of the cache each
  // (docs/branching.md, "Reranking tokens").
  int64_t branches = 0;
  int64_t mixed_tokens = 0;       // in one in which some decode; 0: batch_tokens. See Batcher
  uint32_t threads = 0;           // 0: one per core
  std::string kv_type_k = "f16";  // f16, f32, bf16, q8_0
  std::string kv_type_v = "f16";
  // Where layers go: as one of these two says, else as the planner finds best.
  std::string tensor_split;
  int64_t gpu_layers = -1;  // the last n on the first GPU, where there is one; -1: not said
  SplitMode split_mode = SplitMode::kLayer;
  std::vector<std::string> override_tensors;  // "REGEX=DEVICE,...": matrices that go elsewhere
  std::vector<std::string> devices;  // by any name: the planner keeps to them; empty: to all it may
  Strategy strategy = Strategy::kAuto;
  Optimize optimize = Optimize::kLatency;
  std::string device_memory;    // most that devices may be given: "dgpu:2G,igpu:512M"
  DispatchMode dispatch;        // passes that leave the devices of their layers: docs/dispatch.md
  bool allow_degraded = false;  // goes on without devices that are named and absent
  std::string calibration;  // the file; "": Calibration::DefaultPath where `plugins` may look at
                            // the environment, else none
  // For Embed alone: no output matrix is placed, and the texts share a cache of one full context,
  // or of one block for each of max_sequences where that is more.
  bool embeddings = false;
  // For Embed too, beside generation: a text then takes blocks of the cache as a sequence does.
  bool hidden_rows = false;
  bool use_mmap = true;
  bool lock_memory = false;
  bool pack = true;               // weights in the devices' own layouts, where they have any
  bool pack_cache = false;        // and kept in a file between runs,
  std::string pack_cache_folder;  // in this folder; "": beside the model
  // KV blocks beyond the devices' caches: docs/kv.md.
  std::string kv_store;                          // a folder; "": none
  uint64_t kv_store_bytes = uint64_t{16} << 30;  // most there
  uint64_t kv_host_bytes = 0;                    // most in memory
  uint64_t kv_prefetch_bytes = 0;                // most that Engine::Prefetch brings into memory
  std::string kv_store_form = "raw";             // raw, q8_0, q4_0, mxfp4
  bool kv_lossy = false;                         // forms that lose bits may be used
  RegistryOptions plugins;
  // A device that takes longer with a pass counts as lost, unless it is the CPU by itself.
  std::chrono::milliseconds stage_limit = std::chrono::minutes(5);
  // What is to go wrong on purpose, as docs/faults.md writes it. TRINE_FAULT overrides it, where
  // `plugins` may look at the environment.
  std::string faults;
  // Where a timeline of what happens is written to when the engine goes (docs/tracing.md); "":
  // nowhere.
  std::string trace;
  // Events that are kept in memory for whoever asks (Engine::trace), with a file or without one; 0:
  // none, or with a file as many as it takes.
  size_t trace_events = 0;
  // What can be read of passes, and by whom (docs/branching.md).
  TapLevel taps = TapLevel::kNone;
  StageObserver observer;
  bool explain = false;            // Engine::plan is kept
  ReadmissionOptions readmission;  // of devices that were lost
  LoadProgress progress;           // on the calling thread
  LogSink log;                     // warnings, and what plugins say; from any thread

  // Not more than the model's own context, unless asked for.
  static constexpr int64_t kDefaultContext = -1;
  static constexpr int64_t kDefaultContextLimit = 4096;
  // max_sequences for embeddings, where nothing else is asked for: short texts fill a pass.
  static constexpr int64_t kDefaultTexts = 32;
};

// f16, f32, bf16, q8_0 as the ABI's number. INVALID_ARGUMENT lists them.
absl::StatusOr<uint32_t> ParseKvType(const std::string& name);

}  // namespace trine

#endif  // TRINE_RUNTIME_ENGINE_OPTIONS_H_
