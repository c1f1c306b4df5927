// Places a model's plain weights for its devices. A weight whose bytes are those of the file is in
// memory once for all devices, if their drivers allow it: in the file's own memory, or in an arena
// that is filled from the file. Otherwise a device gets its own copy. Keeps the file and all
// buffers alive. Not thread-safe.
#pragma once

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
#include "runtime/model/weights/load_progress.h"
#include "runtime/model/weights/weight_arena.h"

namespace trine {

// The memory in which a device reads a weight.
struct WeightPlace {
  trine_span span{};           // aligned as the device wants it
  uint64_t tensor_offset = 0;  // the weight's offset within the span
};

// The bytes of plain weights that a device has, by the way in which it got them.
struct WeightBytes {
  uint64_t file = 0;       // read in the file's memory
  uint64_t arena = 0;      // read in the arena
  uint64_t copied = 0;     // copied, because the device imports neither
  uint64_t converted = 0;  // copied, because the device needs other bytes than the file's
  std::string refusal;     // which memory was not imported, and why; "": nothing was refused
};

class WeightStore {
 public:
  explicit WeightStore(std::shared_ptr<const gguf::File> file) : file_(std::move(file)) {}

  // Returns whether devices read the weight's bytes as they are in the file. `canon`: the weight
  // has values outside the contract's range, so devices get a corrected copy.
  static bool InPlace(const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  // Registers a weight whose bytes a device is to read as they are in the file. Call it for all
  // such weights before Import.
  void Want(const std::shared_ptr<Device>& device, const gguf::TensorInfo& tensor);
  // Registers a weight that a device may read only if that takes no more memory: in the file, or in
  // an arena that other devices need.
  void WantShared(const std::shared_ptr<Device>& device, const gguf::TensorInfo& tensor);
  // Imports the registered weights; call it once. A device that refuses the file's memory gets the
  // arena, or else copies. Fills the arena, if there is one, with the host's thread team, and
  // releases bytes of the file that are not read any more.
  absl::Status Import(const HostServices& host, LoadMeter* meter);
  // Returns where the device reads the weight; makes a copy if it has to. `as_f32`: the device
  // reads it converted to f32. `canon`: as in InPlace.
  absl::StatusOr<WeightPlace> Place(const std::shared_ptr<Device>& device,
                                    const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  // Does the same with a copy of the device's own in any case, which may be written to.
  absl::StatusOr<WeightPlace> PlaceCopy(const std::shared_ptr<Device>& device,
                                        const gguf::TensorInfo& tensor, bool as_f32, bool canon) {
    return Copy(&ClientOf(device), tensor, as_f32, canon);
  }

  // Returns whether the device reads the weight in memory that it has imported, not in a copy.
  bool Sees(const Device& device, const gguf::TensorInfo& tensor) const;

  // Imports weights for a device with its own memory, which fetches them from the host's memory
  // each time it uses them. May be called any number of times.
  absl::Status ImportStreamed(const std::shared_ptr<Device>& device,
                              const std::vector<const gguf::TensorInfo*>& tensors);
  absl::StatusOr<WeightPlace> PlaceStreamed(const Device& device,
                                            const gguf::TensorInfo& tensor) const;

  // Returns zeros for a device without weights.
  WeightBytes BytesOf(const Device& device) const;
  // Returns the bytes that the device has imported, including gaps between its weights.
  uint64_t ImportedBytes(const Device& device) const;
  uint64_t arena_bytes() const { return arena_ == nullptr ? 0 : arena_->bytes(); }
  // Returns the CPU's view of a weight's bytes as in the file.
  absl::Span<const std::byte> DataOf(const gguf::TensorInfo& tensor) const;

 private:
  static constexpr size_t kArena = static_cast<size_t>(-1);
  struct Window {
    size_t part;  // a part of the file, or kArena
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
    bool optional = false;  // uses only memory that is needed anyway
    WeightBytes bytes;
  };

  // Returns whether the client should read its weights in an arena, which spares it copies: it
  // can't import the file's pages, but may import other memory.
  static bool NeedsArena(const Client& client);
  Client& ClientOf(const std::shared_ptr<Device>& device, bool optional = false);
  // Import the client's weights. If the device refuses, they return false, note why, and keep none
  // of the windows. They fail only if the device is lost.
  absl::StatusOr<bool> ImportFile(Client* client);
  absl::StatusOr<bool> ImportArena(Client* client);
  absl::StatusOr<bool> ImportRanges(Client* client, size_t part, std::byte* memory, uint64_t bytes,
                                    std::vector<ByteRange> ranges);
  absl::Status ShareArena();
  // Returns the imported window in which the client reads a weight; null: there is none.
  const Window* WindowOf(const Client& client, const gguf::TensorInfo& tensor) const;
  WeightPlace PlaceIn(const Window& window, const Device& device,
                      const gguf::TensorInfo& tensor) const;
  // Drops windows of the file that a client does not need because it has imported the arena.
  void DropUnusedWindows();
  absl::Status FillArena(const HostServices& host, LoadMeter* meter);
  absl::StatusOr<WeightPlace> Copy(Client* client, const gguf::TensorInfo& tensor, bool as_f32,
                                   bool canon);

  std::shared_ptr<const gguf::File> file_;
  std::unique_ptr<WeightArena> arena_;  // declared before the clients, which import it
  std::deque<Client> clients_;
  std::deque<Client> streams_;                  // one for each ImportStreamed
  std::set<const gguf::TensorInfo*> in_arena_;  // the tensors that the arena is filled with
};

}  // namespace trine
