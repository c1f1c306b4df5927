// RAII over a plugin's handles. Each object keeps alive what it stands on (a buffer its device, a
// device its backend, a backend its library), so that any order of destruction is right. Moves
// only; which calls may run at the same time is the ABI's rule (docs/plugin-abi.md, "Threads").
#ifndef TRINE_PLUGINS_HANDLES_H_
#define TRINE_PLUGINS_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/call_clock.h"
#include "plugins/device_fault.h"
#include "plugins/host_services.h"
#include "plugins/library.h"
#include "plugins/packed_layout.h"
#include "plugins/plugin_table.h"
#include "trine/backend.h"

namespace trine {

// An open backend, and the functions to call on it.
struct OpenedBackend {
  const trine_plugin* table = nullptr;  // until the backend is closed
  trine_backend* handle = nullptr;
};

// Puts something between the host and what it has just opened: what is to be used in its place.
using BackendWrapper = std::function<OpenedBackend(const trine_plugin& table,
                                                   const trine_host* host, trine_backend* handle)>;

class Backend : public std::enable_shared_from_this<Backend> {
 public:
  // `host` outlives the backend. `wrap` may be null.
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

class Device {
 public:
  // `label`: what the host calls it. Statuses of its calls carry that (FaultyDevice).
  static absl::StatusOr<std::shared_ptr<Device>> Open(std::shared_ptr<Backend> backend,
                                                      uint32_t index, std::string label = "");
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const trine_plugin& table() const { return backend_->table(); }
  const trine_device_info& info() const { return info_; }
  trine_device* handle() const { return handle_; }
  // "cpu: device_open", the beginning of every error about this device.
  std::string Name(const char* call) const { return backend_->name() + ": " + call; }
  const std::string& label() const { return label_; }
  // A device runs one plan at a time (docs/plugin-abi.md, "Threads"): held around each run.
  std::mutex& run_mutex() const { return run_mutex_; }
  // Calls into the plugin on this device's behalf.
  template <class Function>
  absl::Status Call(const char* name, Function call) const {
    const CallClock::Call under_way(&calls_);
    absl::Status status = OnDevice(label_, CallPluginAs([&] { return Name(name); }, call));
    if (absl::IsUnavailable(status)) was_lost_ = true;
    return status;
  }
  // One of its calls has answered UNAVAILABLE. It may still be at work: memory of the host's that
  // it writes to is not to be used for anything else.
  bool was_lost() const { return was_lost_; }
  // Calls that have not come back yet. For a watchdog.
  CallClock& calls() const { return calls_; }

  // A plugin of another numerics version is at best fast, whatever it says.
  absl::StatusOr<trine_op_support> QueryOp(const trine_graph& graph, uint32_t op,
                                           const int64_t* params = nullptr) const;
  absl::StatusOr<trine_plan_info> QueryPlan(const trine_graph& graph) const;
  absl::Status Copy(const trine_copy_args& args) const;

  // The layouts the device takes for a weight of the graph, best first; none where it has none of
  // its own. INTERNAL when one of them is described in a way that can't be.
  absl::StatusOr<std::vector<PackedLayout>> ListLayouts(const trine_graph& graph,
                                                        uint32_t tensor) const;
  // Packs groups [begin, end). `plain` and `packed` are where the whole tensor would begin: only
  // the rows and groups of the range need be there. From any thread, also a worker of the team.
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
  mutable std::mutex run_mutex_;
  mutable CallClock calls_;
  mutable std::atomic<bool> was_lost_ = false;
};

// One owned handle of a device: Free is the table's function that takes it back.
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

 private:
  void swap(Owned& other) noexcept {
    device_.swap(other.device_);
    std::swap(handle_, other.handle_);
  }
  std::shared_ptr<Device> device_;
  Handle* handle_ = nullptr;
};

class Buffer : public Owned<trine_buffer, &trine_plugin::buffer_free> {
 public:
  using Owned::Owned;
  static absl::StatusOr<Buffer> Allocate(std::shared_ptr<Device> device, uint64_t bytes,
                                         uint32_t memory);
  // UNIMPLEMENTED where the plugin does not import; the caller copies instead.
  static absl::StatusOr<Buffer> Import(std::shared_ptr<Device> device,
                                       const trine_import_desc& desc);
  absl::Status Write(uint64_t offset, const void* data, uint64_t bytes) const;
  absl::Status Read(uint64_t offset, void* data, uint64_t bytes) const;
  void* host_ptr() const;  // null where the host can't see the memory
  trine_span Span(uint64_t offset, uint64_t bytes) const { return {handle(), offset, bytes}; }
};

class Plan : public Owned<trine_plan, &trine_plugin::plan_destroy> {
 public:
  using Owned::Owned;
  static absl::StatusOr<Plan> Create(std::shared_ptr<Device> device, const trine_plan_desc& desc);
  absl::Status Run(const trine_run_args& args) const;
};

class TimelineHandle : public Owned<trine_timeline, &trine_plugin::timeline_destroy> {
 public:
  using Owned::Owned;
  static absl::StatusOr<TimelineHandle> Create(std::shared_ptr<Device> device, uint64_t initial);
  absl::Status Signal(uint64_t value) const;
  absl::Status SetFailed(const absl::Status& failure) const;
  absl::Status Wait(uint64_t value, uint64_t timeout_ns) const;
  absl::StatusOr<uint64_t> Value() const;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_HANDLES_H_
