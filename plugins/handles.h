// Owns a plugin's handles. Each object keeps alive the objects that it needs (a buffer its device,
// a device its backend, a backend its library), so that any order of destruction is right. The ABI
// says which calls may run at the same time (docs/plugin-abi.md, "Threads").
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/host_services.h"
#include "plugins/library.h"
#include "plugins/packed_layout.h"
#include "trine/backend.h"

namespace trine {

// Returns the status with the device's name added, so that code which can do without the device
// knows which one failed. Returns the status unchanged if it is OK, has a name already, or `device`
// is "".
absl::Status OnDevice(const std::string& device, absl::Status status);

// Returns the status of a plugin's call. Adds the reason why the host's team did not run, if the
// status is an error and there is such a reason.
absl::Status WithWhyNotRun(absl::Status status);

// Returns the name that OnDevice has added. Returns "" if there is none, or if the status is a
// refusal: the device would refuse again, but it still works.
std::string FaultyDevice(const absl::Status& status);

// Measures how long calls into a device have been in flight. Thread-safe.
class CallClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Stands for one call in flight, as long as the object lives. Does not allocate, so destructors
  // can use it.
  class Call {
   public:
    explicit Call(CallClock* clock) : clock_(clock) {
      const std::lock_guard lock(clock_->mutex_);
      began_ = Clock::now();
      before_ = clock_->newest_;
      (before_ != nullptr ? before_->after_ : clock_->oldest_) = this;
      clock_->newest_ = this;
    }
    ~Call() {
      const std::lock_guard lock(clock_->mutex_);
      (before_ != nullptr ? before_->after_ : clock_->oldest_) = after_;
      (after_ != nullptr ? after_->before_ : clock_->newest_) = before_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class CallClock;
    CallClock* const clock_;
    Clock::time_point began_;
    Call *before_ = nullptr, *after_ = nullptr;  // guarded by the clock's mutex
  };

  // Returns when the oldest call in flight began, or nullopt if no call is in flight.
  std::optional<Clock::time_point> Oldest() const {
    const std::lock_guard lock(mutex_);
    if (oldest_ == nullptr) return std::nullopt;
    return oldest_->began_;
  }

 private:
  mutable std::mutex mutex_;
  Call *oldest_ = nullptr, *newest_ = nullptr;  // guarded by mutex_
};

// An open backend and the function table to call it through.
struct OpenedBackend {
  const trine_plugin* table = nullptr;  // valid until the backend is closed
  trine_backend* handle = nullptr;
};

// Wraps a backend that was just opened. Returns the backend that the host uses in its place.
using BackendWrapper = std::function<OpenedBackend(const trine_plugin& table,
                                                   const trine_host* host, trine_backend* handle)>;

// An open backend of a plugin. Closes it when destroyed.
class Backend {
 public:
  // Opens a backend of the library. `host` must outlive the backend. `wrap` may be null.
  static absl::StatusOr<std::shared_ptr<Backend>> Open(std::shared_ptr<PluginLibrary> library,
                                                       const HostServices& host,
                                                       const std::string& options = "",
                                                       const BackendWrapper& wrap = nullptr);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const trine_plugin& table() const { return *opened_.table; }
  std::string name() const { return table().name; }
  uint32_t device_count() const {
    return CallPluginOr(uint32_t{0}, [&] { return table().device_count(opened_.handle); });
  }
  absl::StatusOr<trine_device_info> DeviceInfo(uint32_t index) const;
  trine_backend* handle() const { return opened_.handle; }

 private:
  Backend(std::shared_ptr<PluginLibrary> library, const OpenedBackend& opened)
      : library_(std::move(library)), opened_(opened) {}

  std::shared_ptr<PluginLibrary> library_;
  OpenedBackend opened_;
};

// An open device. Closes it when destroyed.
class Device {
 public:
  // Opens a device. Statuses of its calls carry `label`, the host's name for it: see FaultyDevice.
  static absl::StatusOr<std::shared_ptr<Device>> Open(std::shared_ptr<Backend> backend,
                                                      uint32_t index, std::string label = "");
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const trine_plugin& table() const { return backend_->table(); }
  const trine_device_info& info() const { return info_; }
  trine_device* handle() const { return handle_; }
  // Returns the beginning of every error about this device, such as "cpu: device_open".
  std::string Name(const char* call) const { return backend_->name() + ": " + call; }
  const std::string& label() const { return label_; }
  // Callers hold this mutex around each run, because a device runs one plan at a time
  // (docs/plugin-abi.md, "Threads").
  std::mutex& run_mutex() const { return run_mutex_; }
  // Calls a function of the plugin's table, whose last argument is a place for the error. Names the
  // device in the status that it returns. calls() measures the call.
  template <class Function, class... Args>
  absl::Status Call(const char* name, Function trine_plugin::*function, Args... args) const {
    const CallClock::Call under_way(&calls_);
    absl::Status status =
        OnDevice(label_, WithWhyNotRun(CallPluginAs(
                             [&] { return Name(name); },
                             [&](trine_error* err) { return (table().*function)(args..., err); })));
    if (absl::IsUnavailable(status)) was_lost_ = true;
    return status;
  }
  // Returns whether a Call has returned UNAVAILABLE. The device may still be at work, so host
  // memory that it writes to must not be reused.
  bool was_lost() const { return was_lost_; }
  // The calls in flight, for a watchdog.
  CallClock& calls() const { return calls_; }

  // Makes QueryOp report EXACT as FAST, because the device was found not to be exact. Call it
  // before the device is used.
  void Distrust() { trusted_ = false; }

  // Asks how the device supports an op. Reports EXACT as FAST if the device is not trusted: its
  // results are FAST, or its plugin follows another version of the contract.
  absl::StatusOr<trine_op_support> QueryOp(const trine_graph& graph, uint32_t op,
                                           const int64_t* params = nullptr) const;
  absl::StatusOr<trine_plan_info> QueryPlan(const trine_graph& graph) const;
  absl::Status Copy(const trine_copy_args& args) const;

  // Returns the layouts that the device offers for a weight of the graph, best first; none if it
  // offers only the plain one. Returns INTERNAL if a layout's numbers are impossible.
  absl::StatusOr<std::vector<PackedLayout>> ListLayouts(const trine_graph& graph,
                                                        uint32_t tensor) const;
  // Packs groups [begin, end). `plain` and `packed` point to where the whole tensor would begin;
  // only the rows and groups of the range need be there. Any thread may call it, workers too.
  absl::Status Pack(const PackedLayout& layout, uint64_t begin, uint64_t end,
                    const std::byte* plain, std::byte* packed) const;

 private:
  Device(std::shared_ptr<Backend> backend, trine_device* handle, const trine_device_info& info,
         std::string label)
      : backend_(std::move(backend)), handle_(handle), info_(info), label_(std::move(label)) {}

  std::shared_ptr<Backend> backend_;
  trine_device* handle_;
  trine_device_info info_;
  std::string label_;
  bool trusted_ = true;
  mutable std::mutex run_mutex_;
  mutable CallClock calls_;
  mutable std::atomic<bool> was_lost_ = false;
};

// Owns one handle of a device. `Free` is the function of the table that frees it.
template <class Handle, auto Free>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<Device> device, Handle* handle)
      : device_(std::move(device)), handle_(handle) {}
  Owned(Owned&& other) noexcept { swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (handle_ == nullptr) return;
    const CallClock::Call under_way(&device_->calls());
    CallPluginQuietly([&] { (device_->table().*Free)(handle_); });
  }
  Handle* handle() const { return handle_; }
  const Device& device() const { return *device_; }
  explicit operator bool() const { return handle_ != nullptr; }

 protected:
  template <class Function, class... Args>
  absl::Status Call(const char* name, Function trine_plugin::*function, Args... args) const {
    return device_->Call(name, function, handle_, args...);
  }

 private:
  void swap(Owned& other) noexcept {
    device_.swap(other.device_);
    std::swap(handle_, other.handle_);
  }
  std::shared_ptr<Device> device_;
  Handle* handle_ = nullptr;
};

// Memory of a device, allocated or imported. Write and Read return when the bytes are copied.
class Buffer : public Owned<trine_buffer, &trine_plugin::buffer_free> {
 public:
  using Owned::Owned;
  static absl::StatusOr<Buffer> Allocate(std::shared_ptr<Device> device, uint64_t bytes,
                                         uint32_t memory);
  // Imports host memory. Returns UNIMPLEMENTED if the plugin can't; the caller copies instead.
  static absl::StatusOr<Buffer> Import(std::shared_ptr<Device> device,
                                       const trine_import_desc& desc);
  absl::Status Write(uint64_t offset, const void* data, uint64_t bytes) const;
  absl::Status Read(uint64_t offset, void* data, uint64_t bytes) const;
  void* host_ptr() const;  // null where the host can't see the memory
  trine_span Span(uint64_t offset, uint64_t bytes) const { return {handle(), offset, bytes}; }
};

// A graph that a device has recorded.
class Plan : public Owned<trine_plan, &trine_plugin::plan_destroy> {
 public:
  using Owned::Owned;
  static absl::StatusOr<Plan> Create(std::shared_ptr<Device> device, const trine_plan_desc& desc);
  absl::Status Run(const trine_run_args& args) const;
};

}  // namespace trine
