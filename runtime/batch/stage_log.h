// Counts what the stages of one placement have done, and traces it if tracing is on. Thread-safe.
// Passes share it, because they may outlive the placement.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/exec/pipeline.h"
#include "dispatch/exec/trace.h"
#include "runtime/model/run/model.h"

namespace trine {

// What a device has done in a segment that several devices run.
struct DeviceUse {
  std::string device_name;
  uint64_t passes = 0;   // passes that it took part in
  uint64_t busy_ns = 0;  // its time in calls for the segment
};

// The counters of a segment since its placement began.
struct SegmentCounters {
  std::string device_name;
  int64_t begin = 0, end = 0;  // the segment's layers
  uint64_t placement = 0;      // the number of the placement (epoch)
  Trace::Track track = 0;      // the segment's track, if tracing is on
  StageCounters stage;
  uint64_t tokens = 0;
  uint64_t bytes_in = 0, bytes_out = 0;  // inputs and results, without weights
  std::string helper;                    // the device that helps with some passes; "": none
  uint64_t detours = 0;                  // passes that the helper took part in
  std::vector<DeviceUse> devices;        // if several devices run the segment

  // Returns this segment's share of the time in which any segment had work.
  double busy_ratio() const;
};

class StageLog {
 public:
  // The facts about a pass that trace events show.
  struct PassNote {
    uint64_t number = 0;
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t replayed = 0;  // tokens that were evaluated by an earlier placement
  };

  // `devices`: the devices of each stage.
  StageLog(const std::vector<SegmentPlace>& places, const std::vector<RouteInfo>& routes,
           const std::vector<std::vector<std::string>>& devices, uint64_t placement,
           std::shared_ptr<Trace> trace);

  // Records one run of a stage, whether it succeeded or not.
  void Ran(size_t stage, const PassNote& pass, const StageRun& run);
  // Records that a stage was given up in the middle of a pass.
  void Hung(size_t stage, Trace::Clock::duration time);

  // Return the trace and its tracks, by stage, for the pipeline; null and empty without a trace.
  const std::shared_ptr<Trace>& trace() const { return trace_; }
  const std::vector<Trace::Track>& tracks() const { return tracks_; }

  // Returns the counters of all segments. `stages` has the pipeline's counters.
  std::vector<SegmentCounters> Counters(const std::vector<StageCounters>& stages) const;

 private:
  struct Sums {
    std::atomic<uint64_t> tokens = 0, bytes_in = 0, bytes_out = 0, detours = 0;
    // By device, as in SegmentCounters::devices.
    struct Device {
      std::atomic<uint64_t> passes = 0, busy_ns = 0;
    };
    std::deque<Device> devices;
  };
  void AddDevices(size_t stage, const StageRun& run);

  std::vector<SegmentCounters> segments_;  // without the counts, which are in sums_
  std::unique_ptr<Sums[]> sums_;
  const std::shared_ptr<Trace> trace_;
  std::vector<Trace::Track> tracks_;
};

}  // namespace trine
