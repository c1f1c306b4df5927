// The plugin under test, opened: a host, a backend, one of its devices, and handles that go back to
// it by themselves. Handles must go before their session.
#ifndef TRINE_PLUGINS_CONFORMANCE_SESSION_H_
#define TRINE_PLUGINS_CONFORMANCE_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/conformance/observing_host.h"
#include "plugins/conformance/trial.h"

namespace trine::conformance {

using BufferPtr = std::unique_ptr<trine_buffer, std::function<void(trine_buffer*)>>;
using PlanPtr = std::unique_ptr<trine_plan, std::function<void(trine_plan*)>>;
using TimelinePtr = std::unique_ptr<trine_timeline, std::function<void(trine_timeline*)>>;

class Session {
 public:
  // Null, with the failure noted, when a call fails.
  static std::unique_ptr<Session> Open(Trial& trial, Runner& runner, const trine_plugin& table,
                                       uint32_t device_index, uint32_t workers,
                                       const std::string& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const trine_plugin& table() const { return table_; }
  trine_backend* backend() const { return backend_; }
  trine_device* device() const { return device_; }
  const trine_device_info& info() const { return info_; }
  ObservingHost& host() { return *host_; }

  // Null with the failure noted.
  BufferPtr Alloc(Trial& trial, uint64_t bytes, uint32_t memory = TRINE_MEMORY_IO);
  Answer TryAlloc(Trial& trial, uint64_t bytes, uint32_t memory, BufferPtr* out);
  Answer Write(Trial& trial, trine_buffer* buffer, uint64_t offset, const void* src,
               uint64_t bytes);
  Answer Read(Trial& trial, trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes);
  TimelinePtr NewTimeline(Trial& trial, uint64_t initial);
  Answer CreatePlan(Trial& trial, const trine_plan_desc& desc, PlanPtr* out);
  BufferPtr Own(trine_buffer* buffer);

  // Moves what the host saw amiss into the trial.
  void ReportBreaches(Trial& trial);

 private:
  Session(Runner& runner, const trine_plugin& table, uint32_t workers)
      : runner_(runner), table_(table), host_(std::make_unique<ObservingHost>(workers)) {}

  template <class F>
  void CallVoid(const char* function, F call) {
    try {
      call();
    } catch (...) {
      runner_.NoteThrown(function);
    }
  }

  Runner& runner_;
  const trine_plugin& table_;
  std::unique_ptr<ObservingHost> host_;
  trine_backend* backend_ = nullptr;
  trine_device* device_ = nullptr;
  trine_device_info info_{};
};

// Sessions of one device, opened when first asked for: opening a GPU can take a second.
class Sessions {
 public:
  Sessions(Runner& runner, const trine_plugin& table, const KitOptions& options, uint32_t device);

  // With as many workers; null with the failure noted. Owned here.
  Session* Get(Trial& trial, uint32_t workers);
  Session* Get(Trial& trial) { return Get(trial, worker_counts_.back()); }
  const std::vector<uint32_t>& worker_counts() const { return worker_counts_; }

 private:
  Runner& runner_;
  const trine_plugin& table_;
  const KitOptions& options_;
  uint32_t device_;
  std::vector<uint32_t> worker_counts_;
  std::map<uint32_t, std::unique_ptr<Session>> open_;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_SESSION_H_
