// Where a model's weights lie for its devices. What a device reads as the file has it lies once for
// all of them, where drivers let it: in the file's own memory, else in an arena that is filled from
// the file; only else in a copy of the device's own. Keeps the file and all buffers alive. Not
// thread-safe.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/import_windows.h"
#include "runtime/model/load_progress.h"
#include "runtime/model/weight_arena.h"

namespace trine {

struct WeightPlace {
  trine_span span{};           // aligned as the device wants it
  uint64_t tensor_offset = 0;  // of the weight within the span
};

// How a device came by its weights, in bytes of them.
struct WeightBytes {
  uint64_t file = 0;       // read where the file's memory lies
  uint64_t arena = 0;      // read in memory that devices share
  uint64_t copied = 0;     // copied, since the device took neither
  uint64_t converted = 0;  // copied, since the device is to have other bytes than the file
  std::string refusal;     // what was not imported, and why; "" where nothing was refused
};

class WeightStore {
 public:
  explicit WeightStore(std::shared_ptr<const gguf::File> file) : file_(std::move(file)) {}

  // Whether a weight is read as the file has it. `canon`: it has values outside the contract's
  // range, so that devices get a copy that has not.
  static bool InPlace(const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  // In this order: every weight that a device is to read as the file has it, ...
  void Want(const std::shared_ptr<Device>& device, const gguf::TensorInfo& tensor);
  // The same, if that takes no memory: where it lies for others, or in the file.
  void WantShared(const std::shared_ptr<Device>& device, const gguf::TensorInfo& tensor);
  // ... then once, for all of them. A refusal is no error: the next best way is taken. An arena, if
  // there is to be one, is filled with the host's thread team; what nobody reads in the file any
  // more is let go of there on the way.
  absl::Status Import(const HostServices& host, LoadMeter* meter);
  // The weight as the file has it, or, `as_f32`, converted.
  absl::StatusOr<WeightPlace> Place(const std::shared_ptr<Device>& device,
                                    const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  // Whether a device reads the weight where others do, as the file has it.
  bool Sees(const Device& device, const gguf::TensorInfo& tensor) const;

  // For a device with memory of its own that is to fetch weights from the file's, each time it uses
  // them. Any number of times.
  absl::Status ImportStreamed(const std::shared_ptr<Device>& device,
                              const std::vector<const gguf::TensorInfo*>& tensors);
  absl::StatusOr<WeightPlace> PlaceStreamed(const Device& device,
                                            const gguf::TensorInfo& tensor) const;

  // Zeros for a device that has placed nothing.
  WeightBytes BytesOf(const Device& device) const;
  // Of the memory that the device has imported, with what lies between its weights.
  uint64_t ImportedBytes(const Device& device) const;
  uint64_t arena_bytes() const { return arena_ == nullptr ? 0 : arena_->bytes(); }
  // Where the CPU finds a weight as the file has it.
  absl::Span<const std::byte> DataOf(const gguf::TensorInfo& tensor) const;

 private:
  static constexpr size_t kArena = static_cast<size_t>(-1);
  struct Window {
    size_t part;  // of the file, or kArena
    ByteRange range;
    Buffer buffer;
  };
  struct Client {
    std::shared_ptr<Device> device;
    std::vector<const gguf::TensorInfo*> wanted;
    std::vector<Window> windows;
    std::map<std::pair<const gguf::TensorInfo*, bool>, Buffer> copies;
    std::set<const gguf::TensorInfo*> placed;
    bool refused_file = false;
    bool optional = false;  // nothing is put anywhere for its sake
    WeightBytes bytes;
  };

  // Whether an arena would spare it copies: it does not read in the file, but may import memory.
  static bool NeedsArena(const Client& client);
  Client& ClientOf(const std::shared_ptr<Device>& device, bool optional = false);
  // UNAVAILABLE is an error; any other refusal is noted, and none of the windows is there then.
  absl::StatusOr<bool> ImportFile(Client* client);
  absl::StatusOr<bool> ImportArena(Client* client);
  absl::StatusOr<bool> ImportRanges(Client* client, size_t part, std::byte* memory, uint64_t bytes,
                                    std::vector<ByteRange> ranges);
  absl::Status ShareArena();
  // Where the client reads a weight that is as the file has it; null: it has no such window.
  const Window* WindowOf(const Client& client, const gguf::TensorInfo& tensor) const;
  WeightPlace PlaceIn(const Window& window, const Device& device,
                      const gguf::TensorInfo& tensor) const;
  // Who took the file and then the arena too may have no use for the former any more.
  void DropUnusedWindows();
  absl::Status FillArena(const HostServices& host, LoadMeter* meter);
  absl::StatusOr<WeightPlace> Copy(Client* client, const gguf::TensorInfo& tensor, bool as_f32,
                                   bool canon);

  std::shared_ptr<const gguf::File> file_;
  std::unique_ptr<WeightArena> arena_;  // before the clients, which import it
  std::deque<Client> clients_;
  std::deque<Client> streams_;  // of devices that fetch weights, each with what it has imported
  std::set<const gguf::TensorInfo*> in_arena_;  // that it is filled with
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_
