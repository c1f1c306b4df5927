// What the stages of a model, placed as it is, have done: counted always, traced where somebody
// asked for it. Thread-safe; shared with passes, which may outlive the placement.
#ifndef TRINE_RUNTIME_STAGE_LOG_H_
#define TRINE_RUNTIME_STAGE_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/pipeline.h"
#include "dispatch/trace.h"
#include "runtime/model/model.h"

namespace trine {

// What a segment of the model has done since it was placed there.
struct SegmentCounters {
  std::string device_name;
  int64_t begin = 0, end = 0;  // layers
  uint64_t placement = 0;      // counts up when the model is placed anew
  Trace::Track track = 0;      // where it is traced, if it is
  StageCounters stage;
  uint64_t tokens = 0;
  uint64_t bytes_in = 0, bytes_out = 0;  // of inputs and results, not of weights
  std::string helper;                    // the device that some passes go to; "": none
  uint64_t detours = 0;                  // passes that did

  // Of the time in which there was work for some segment, the share that this one worked.
  double busy_ratio() const;
};

class StageLog {
 public:
  // A pass, as events tell of it.
  struct PassNote {
    uint64_t number = 0;
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t replayed = 0;  // tokens that an earlier placement had read
  };

  StageLog(const std::vector<SegmentPlace>& places, const std::vector<DetourInfo>& detours,
           uint64_t placement, std::shared_ptr<Trace> trace);

  void Ran(size_t stage, const PassNote& pass, const StageRun& run);
  // A stage that was given up in mid-pass.
  void Hung(size_t stage, Trace::Clock::duration time);

  // For the pipeline; null and empty without a trace.
  const std::shared_ptr<Trace>& trace() const { return trace_; }
  const std::vector<Trace::Track>& tracks() const { return tracks_; }

  std::vector<SegmentCounters> Counters(const std::vector<StageCounters>& stages) const;

 private:
  struct Sums {
    std::atomic<uint64_t> tokens = 0, bytes_in = 0, bytes_out = 0, detours = 0;
  };

  std::vector<SegmentCounters> segments_;  // names and numbers that stay
  std::unique_ptr<Sums[]> sums_;
  const std::shared_ptr<Trace> trace_;
  std::vector<Trace::Track> tracks_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_STAGE_LOG_H_
