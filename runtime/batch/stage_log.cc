#include "runtime/batch/stage_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Returns a name such as "dgpu0 layers 16-31". Adds the number of a placement after the first,
// because a device may appear in several placements.
std::string TrackName(const SegmentCounters& s) {
  std::string name = s.device_name;
  if (s.end - s.begin == 1) absl::StrAppend(&name, " layer ", s.begin);
  if (s.end - s.begin > 1) absl::StrAppend(&name, " layers ", s.begin, "-", s.end - 1);
  if (s.placement > 1) absl::StrAppend(&name, ", placement ", s.placement);
  return name;
}

}  // namespace

double SegmentCounters::busy_ratio() const {
  const uint64_t all = stage.busy_ns + stage.waiting_ns + stage.blocked_ns;
  return all == 0 ? 0 : static_cast<double>(stage.busy_ns) / static_cast<double>(all);
}

StageLog::StageLog(const std::vector<SegmentPlace>& places, const std::vector<RouteInfo>& routes,
                   const std::vector<std::vector<std::string>>& devices, uint64_t placement,
                   std::shared_ptr<Trace> trace)
    : sums_(std::make_unique<Sums[]>(places.size())), trace_(std::move(trace)) {
  for (const SegmentPlace& place : places) {
    SegmentCounters& segment = segments_.emplace_back();
    segment.device_name = place.device_name;
    segment.begin = place.span.begin;
    segment.end = place.span.end;
    segment.placement = placement;
    if (trace_ == nullptr) continue;
    segment.track = trace_->AddTrack(TrackName(segment));
    tracks_.push_back(segment.track);
  }
  for (const RouteInfo& route : routes) segments_[route.stage].helper = route.helper;
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (devices[i].size() < 2) continue;
    for (const std::string& name : devices[i]) segments_[i].devices.push_back({name});
    sums_[i].devices.resize(devices[i].size());
  }
}

void StageLog::AddDevices(size_t stage, const StageRun& run) {
  const std::vector<DeviceUse>& names = segments_[stage].devices;
  for (const DeviceTimes::One& one : run.devices) {
    for (size_t d = 0; d < names.size(); ++d) {
      if (names[d].device_name != one.device || one.ns == 0) continue;
      Sums::Device& sums = sums_[stage].devices[d];
      ++sums.passes;
      sums.busy_ns += one.ns;
      if (trace_ == nullptr) continue;
      trace_->Mark(tracks_[stage], "device", run.end, names[d].device_name,
                   {{"us", static_cast<int64_t>(one.ns / 1000)}});
    }
  }
}

void StageLog::Ran(size_t stage, const PassNote& pass, const StageRun& run) {
  Sums& sums = sums_[stage];
  sums.tokens += static_cast<uint64_t>(pass.tokens);
  sums.bytes_in += run.bytes_in;
  sums.bytes_out += run.bytes_out;
  sums.detours += run.detour ? 1 : 0;
  AddDevices(stage, run);
  if (trace_ == nullptr) return;
  const Trace::Track track = tracks_[stage];
  const auto number = static_cast<int64_t>(pass.number);
  // A failed pass has no later times.
  const Trace::Clock::time_point written = run.written == StageRun::kNever ? run.end : run.written;
  const Trace::Clock::time_point ran = run.ran == StageRun::kNever ? run.end : run.ran;
  trace_->Add(track, run.ok ? "pass" : "failed pass", run.begin, run.end,
              {{"pass", number},
               {"tokens", pass.tokens},
               {"sequences", pass.sequences},
               {"replayed", pass.replayed},
               {"detour", run.detour ? 1 : 0},
               {"placement", static_cast<int64_t>(segments_[stage].placement)}});
  trace_->Add(track, "write inputs", run.begin, written,
              {{"bytes", static_cast<int64_t>(run.bytes_in)}, {"pass", number}});
  if (run.written != StageRun::kNever) {
    trace_->Add(track, "run", written, ran, {{"pass", number}});
  }
  if (run.ran != StageRun::kNever) {
    trace_->Add(track, stage + 1 == segments_.size() ? "read output" : "hand on", ran, run.end,
                {{"bytes", static_cast<int64_t>(run.bytes_out)}, {"pass", number}});
  }
}

void StageLog::Hung(size_t stage, Trace::Clock::duration time) {
  if (trace_ == nullptr) return;
  const Trace::Clock::time_point now = Trace::Clock::now();
  trace_->Add(tracks_[stage], "hung", now - time, now);
}

std::vector<SegmentCounters> StageLog::Counters(const std::vector<StageCounters>& stages) const {
  std::vector<SegmentCounters> all = segments_;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].stage = stages[i];
    all[i].tokens = sums_[i].tokens;
    all[i].bytes_in = sums_[i].bytes_in;
    all[i].bytes_out = sums_[i].bytes_out;
    all[i].detours = sums_[i].detours;
    for (size_t d = 0; d < all[i].devices.size(); ++d) {
      all[i].devices[d].passes = sums_[i].devices[d].passes;
      all[i].devices[d].busy_ns = sums_[i].devices[d].busy_ns;
    }
  }
  return all;
}

}  // namespace trine
