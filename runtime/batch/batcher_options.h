// The options of a batcher, and its account of the host's time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/trace.h"
#include "runtime/kv/block_keeper.h"
#include "runtime/kv/prefix_cache.h"
#include "runtime/model/run/model.h"

namespace trine {

struct BatcherOptions {
  // Called after a device has failed (FaultyDevice of the status). Returns the model to use next,
  // for which sequences replay their tokens, or why there is none. Without this function, and after
  // other failures, the requests in the failed pass get its error and the other requests continue.
  std::function<absl::StatusOr<std::shared_ptr<Model>>(const absl::Status&)> recover;
  // The longest time that a stage may take for a pass; after that the stage is taken for hung.
  std::chrono::milliseconds stage_limit = std::chrono::minutes(5);
  // true: stage_limit holds for the CPU too. That costs a thread if the CPU is the only device. The
  // CPU hangs only if a fault is injected.
  bool watch_cpu = false;
  // The most tokens of a pass in which some sequences decode (one token each). Prompts share the
  // rest of such a pass. A pass has at least one token for each sequence. 0: no limit but the
  // pass's own. With a limit, even a single stage waits for owners that have just received logits,
  // so that a piece of a prompt does not go ahead of their tokens.
  int64_t mixed_tokens = 0;
  std::shared_ptr<Trace> trace;  // null: tracing is off
  // The cache in which sequences of a space share blocks; null: they share none. Must outlive the
  // batcher. The batcher empties it when it changes to another model.
  PrefixCache* prefix_cache = nullptr;
  // Sequences of a space fetch blocks that are not in the KV cache from this keeper, and hand it
  // the blocks that they fill; null: they do neither. The keeper calls the batcher until it is
  // destroyed, so it must be destroyed first.
  BlockKeeper* block_keeper = nullptr;
};

// The time that the host spent around passes, over all placements. Excludes what the host computes
// as the CPU device, which is in SegmentCounters.
struct HostTimes {
  uint64_t prepare_ns = 0;  // forming passes when they are due
  uint64_t ahead_ns = 0;    // preparing passes while others are in flight
  uint64_t deliver_ns = 0;  // delivering rows to sequences
  uint64_t passes = 0;
  uint64_t passes_ahead = 0;  // passes that were prepared ahead, except for their tokens
  // Time spent waiting:
  std::map<std::string, uint64_t> device_ns;  // for a device to finish a pass
  uint64_t owners_ns = 0;                     // for owners that are sampling
  uint64_t blocks_ns = 0;                     // for blocks of the keeper
};

}  // namespace trine
