// Options for loading a model.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plugins/host_services.h"
#include "plugins/registry.h"
#include "runtime/engine/readmission.h"
#include "runtime/model/run/model.h"
#include "runtime/model/weights/load_progress.h"
#include "runtime/placement/placement_request.h"
#include "runtime/placement/team_choice.h"

namespace trine {

struct EngineOptions {
  std::string model_path;
  int64_t context = kDefaultContext;  // positions of a sequence; 0: the model's own number
  // The most tokens of a pass. 0: 512, or more, up to most_batch_tokens, where a device fetches
  // weights for each pass that reads a prompt.
  int64_t batch_tokens = 0;
  int64_t most_batch_tokens = 4096;
  // The most sequences of a pass. The KV cache has room for this many full sequences.
  int64_t max_sequences = 1;
  // The number of forks that fit in a pass in addition to max_sequences, with one KV block each. A
  // fork is evaluated for one token, then discarded or taken over by its origin (docs/branching.md,
  // "Reranking tokens").
  int64_t branches = 0;
  // The most tokens of a pass in which some sequences read their prompts and others generate; 0:
  // batch_tokens. runtime/batch/batcher.h explains it.
  int64_t mixed_tokens = 0;
  int64_t threads = 0;            // 0: one per core, or as many as the team's threads are
  TeamRequest team;               // whose threads compute
  std::string kv_type_k = "f16";  // f16, f32, bf16, q8_0
  std::string kv_type_v = "f16";
  PlacementRequest placement;
  // The counts of the model's experts, which say which hot experts to begin with, and go on
  // counting. null: they begin at 0, or at those of `expert_stats`.
  std::shared_ptr<ExpertHits> expert_hits;
  // The file that keeps these counts between runs; "": none. It is read when the model is loaded
  // and written when the engine is destroyed, which may wait for other engines that write to the
  // folder, up to 2 s. Then all choices of experts are counted. `expert_hits` must be null: only
  // the engine may add to counts that it writes.
  std::string expert_stats;
  // true: the file is only read, and nothing is counted for its sake.
  bool expert_stats_read_only = false;
  // true: the engine can only embed. No output matrix is placed, and texts share a KV cache of one
  // full context, or of max_sequences blocks if that is more.
  bool embeddings = false;
  // true: the engine can embed and generate. A text then takes KV blocks as a sequence does.
  bool hidden_rows = false;
  bool use_mmap = true;
  bool lock_memory = false;
  bool pack = true;               // pack weights for devices that have their own layout
  bool pack_cache = false;        // keep packed weights in a file between runs
  std::string pack_cache_folder;  // the folder of that file; "": the model's folder
  // The block keeper: docs/kv.md.
  std::string kv_store;                          // the folder of the store on disk; "": none
  uint64_t kv_store_bytes = uint64_t{16} << 30;  // the most bytes on disk
  uint64_t kv_host_bytes = 0;                    // the most bytes in memory
  uint64_t kv_prefetch_bytes = 0;     // the most bytes that Engine::Prefetch holds in memory
  std::string kv_store_form = "raw";  // raw, q8_0, q4_0, mxfp4
  bool kv_lossy = false;              // allow forms that lose bits
  RegistryOptions plugins;
  // The most time that a device may take for a pass. A device that takes longer is lost; the CPU is
  // watched only if `faults` are injected.
  std::chrono::milliseconds stage_limit = std::chrono::minutes(5);
  // Faults to inject, in the syntax of docs/faults.md. TRINE_FAULT overrides it if `plugins` may
  // look at the environment.
  std::string faults;
  // The file that a trace is written to when the engine is destroyed (docs/tracing.md); "": none.
  std::string trace;
  // The number of trace events that are kept in memory for Engine::trace. 0: none or, if there is a
  // trace file, the default number.
  size_t trace_events = 0;
  // Says which taps of the model can be read (docs/branching.md).
  TapLevel taps = TapLevel::kNone;
  StageObserver observer;          // called after each stage of a pass; null: none
  bool explain = false;            // keep the placement's reasons for Engine::plan
  ReadmissionOptions readmission;  // says when lost devices are tried again
  LoadProgress progress;           // called on the calling thread
  LogSink log;                     // warnings and plugins' messages; called on any thread

  // A value of `context`: the model's own context, but at most kDefaultContextLimit.
  static constexpr int64_t kDefaultContext = -1;
  static constexpr int64_t kDefaultContextLimit = 4096;
  // The default of max_sequences for embeddings: many short texts fill a pass.
  static constexpr int64_t kDefaultTexts = 32;
};

// Returns the ABI's number of f16, f32, bf16 or q8_0. Returns INVALID_ARGUMENT, which lists these
// names, for any other name.
absl::StatusOr<uint32_t> ParseKvType(const std::string& name);

}  // namespace trine
