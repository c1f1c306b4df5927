#include "runtime/model/weights/weight_store.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/validate.h"
#include "runtime/model/weights/team_pieces.h"

namespace trine {
namespace {

// Returns the tensor's bytes as the device needs them. `data` has the file's bytes.
std::vector<std::byte> Converted(const gguf::TensorInfo& tensor, const std::byte* data,
                                 bool as_f32) {
  if (!as_f32 || tensor.type == quant::Type::kF32) {
    return std::vector<std::byte>(data, data + tensor.bytes);
  }
  const uint64_t row_bytes = tensor.bytes / static_cast<uint64_t>(tensor.Rows());
  const auto row_values = static_cast<size_t>(tensor.dims[0]);
  std::vector<std::byte> out(static_cast<size_t>(tensor.Rows()) * row_values * sizeof(float));
  for (int64_t r = 0; r < tensor.Rows(); ++r) {
    auto* to = reinterpret_cast<float*>(out.data()) + static_cast<size_t>(r) * row_values;
    quant::DequantizeRow(tensor.type, data + static_cast<uint64_t>(r) * row_bytes, tensor.dims[0],
                         to);
  }
  return out;
}

ByteRange FileRange(const gguf::TensorInfo& tensor) {
  return {tensor.offset, tensor.offset + tensor.bytes};
}

void Note(const std::string& what, absl::string_view why, WeightBytes* bytes) {
  absl::StrAppend(&bytes->refusal, bytes->refusal.empty() ? "" : "; ", what, ": ", why);
}

}  // namespace

bool WeightStore::InPlace(const gguf::TensorInfo& tensor, bool as_f32, bool canon) {
  return !canon && (!as_f32 || tensor.type == quant::Type::kF32);
}

bool WeightStore::NeedsArena(const Client& client) {
  return !client.optional && client.refused_file && MayImport(client.device->info(), false);
}

WeightStore::Client& WeightStore::ClientOf(const std::shared_ptr<Device>& device, bool optional) {
  for (Client& client : clients_) {
    if (client.device == device && client.optional == optional) return client;
  }
  Client& client = clients_.emplace_back();
  client.device = device;
  client.optional = optional;
  return client;
}

void WeightStore::Want(const std::shared_ptr<Device>& device, const gguf::TensorInfo& tensor) {
  ClientOf(device).wanted.push_back(&tensor);
}

void WeightStore::WantShared(const std::shared_ptr<Device>& device,
                             const gguf::TensorInfo& tensor) {
  ClientOf(device, /*optional=*/true).wanted.push_back(&tensor);
}

absl::StatusOr<bool> WeightStore::ImportRanges(Client* client, size_t part, std::byte* memory,
                                               uint64_t bytes, std::vector<ByteRange> ranges) {
  const trine_device_info& info = client->device->info();
  std::vector<Window> windows;
  for (const ByteRange& range :
       ImportWindows(std::move(ranges), info.import_alignment, info.max_allocation_bytes, bytes)) {
    trine_import_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.memory = TRINE_MEMORY_WEIGHTS;
    desc.flags = part == kArena ? 0 : TRINE_IMPORT_READ_ONLY;
    desc.host_ptr = memory + range.begin;
    desc.bytes = range.end - range.begin;
    auto buffer = Buffer::Import(client->device, desc);
    if (absl::IsUnavailable(buffer.status())) return buffer.status();
    if (!buffer.ok()) {
      Note(part == kArena ? "memory" : "mapped files", buffer.status().message(), &client->bytes);
      return false;
    }
    windows.push_back({part, range, *std::move(buffer)});
  }
  std::move(windows.begin(), windows.end(), std::back_inserter(client->windows));
  return true;
}

absl::StatusOr<bool> WeightStore::ImportFile(Client* client) {
  std::map<size_t, std::vector<ByteRange>> by_part;
  for (const gguf::TensorInfo* tensor : client->wanted) {
    by_part[tensor->part].push_back(FileRange(*tensor));
  }
  for (auto& [part, ranges] : by_part) {
    const gguf::Part& memory = file_->parts()[part];
    auto* data = const_cast<std::byte*>(memory.data);  // the import is READ_ONLY
    const auto taken = ImportRanges(client, part, data, memory.mapped_bytes, std::move(ranges));
    if (taken.ok() && *taken) continue;
    client->windows.clear();  // all or nothing: a device reads all its weights in one way
    return taken;
  }
  return true;
}

absl::StatusOr<bool> WeightStore::ImportArena(Client* client) {
  std::vector<ByteRange> ranges;
  for (const gguf::TensorInfo* tensor : client->wanted) {
    // A client that does not need the arena imports only tensors that are in it for other clients.
    const bool read = NeedsArena(*client) || in_arena_.count(tensor) != 0;
    if (read) ranges.push_back(arena_->RangeOf(tensor));
  }
  return ImportRanges(client, kArena, arena_->data(), arena_->bytes(), std::move(ranges));
}

absl::Status WeightStore::Import(const HostServices& host, LoadMeter* meter) {
  bool needs_arena = false;
  for (Client& client : clients_) {
    const trine_device_info& info = client.device->info();
    if (info.import_alignment == 0) continue;
    bool taken = false;
    if (MayImport(info, true)) {
      const auto imported = ImportFile(&client);
      if (!imported.ok()) return imported.status();
      taken = *imported;
    } else {
      client.bytes.refusal = ImportRefusal(info);
    }
    client.refused_file = !taken && !client.wanted.empty();
    needs_arena = needs_arena || NeedsArena(client);
  }
  if (needs_arena) {
    if (absl::Status s = ShareArena(); !s.ok()) return s;
  }
  if (arena_ == nullptr) return absl::OkStatus();
  DropUnusedWindows();
  return FillArena(host, meter);
}

absl::Status WeightStore::ShareArena() {
  std::vector<const gguf::TensorInfo*> tensors;
  uint64_t tensor_alignment = 64, alignment = 1;
  for (const Client& client : clients_) {
    const trine_device_info& info = client.device->info();
    tensor_alignment = std::max<uint64_t>(tensor_alignment, info.buffer_alignment);
    alignment = std::max<uint64_t>(alignment, info.import_alignment);
    if (!NeedsArena(client)) continue;
    tensors.insert(tensors.end(), client.wanted.begin(), client.wanted.end());
  }
  auto arena = WeightArena::Reserve(tensors, tensor_alignment, alignment);
  if (!arena.ok()) {  // there may still be room for copies
    for (Client& client : clients_) {
      if (NeedsArena(client)) Note("memory", arena.status().message(), &client.bytes);
    }
    return absl::OkStatus();
  }
  arena_ = *std::move(arena);
  // Clients that need the arena come first: if none of them can import it, the arena is not needed.
  for (const bool needs : {true, false}) {
    if (!needs && in_arena_.empty()) break;
    for (Client& client : clients_) {
      if (NeedsArena(client) != needs || !MayImport(client.device->info(), false)) continue;
      const auto taken = ImportArena(&client);
      if (!taken.ok()) return taken.status();
      if (needs && *taken) in_arena_.insert(client.wanted.begin(), client.wanted.end());
    }
  }
  if (in_arena_.empty()) arena_.reset();
  return absl::OkStatus();
}

const WeightStore::Window* WeightStore::WindowOf(const Client& client,
                                                 const gguf::TensorInfo& tensor) const {
  const auto find = [&](size_t part, const ByteRange& range) -> const Window* {
    for (const Window& window : client.windows) {
      if (window.part == part && window.range.Holds(range)) return &window;
    }
    return nullptr;
  };
  if (in_arena_.count(&tensor) != 0) {
    if (const Window* window = find(kArena, arena_->RangeOf(&tensor))) return window;
  }
  return find(tensor.part, FileRange(tensor));
}

void WeightStore::DropUnusedWindows() {
  for (Client& client : clients_) {
    std::set<const Window*> used;
    for (const gguf::TensorInfo* tensor : client.wanted) used.insert(WindowOf(client, *tensor));
    std::vector<Window> kept;
    for (Window& window : client.windows) {
      if (used.count(&window) != 0) kept.push_back(std::move(window));
    }
    client.windows = std::move(kept);
  }
}

absl::Status WeightStore::FillArena(const HostServices& host, LoadMeter* meter) {
  struct Filling {
    const gguf::TensorInfo* tensor;
    bool release;  // no client reads it in the file
  };
  std::vector<Filling> fillings;
  std::vector<TeamRange> ranges;
  for (const gguf::TensorInfo* tensor : in_arena_) {
    const bool read_in_file =
        std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
          const Window* window = WindowOf(client, *tensor);
          return window != nullptr && window->part != kArena;
        });
    fillings.push_back({tensor, !read_in_file});
    ranges.push_back({tensor->bytes, 1});
    meter->Expect(tensor->bytes);
  }
  const absl::Status status = RunPieces(
      ranges, host,
      [&](size_t i, uint64_t begin, uint64_t end) {
        arena_->Fill(fillings[i].tensor, begin, end);
        if (fillings[i].release) file_->Release(*fillings[i].tensor, begin, end);
        return absl::OkStatus();
      },
      meter);
  if (!status.ok()) return status;
  for (const Filling& f : fillings) {  // again as a whole, for pages that lie in two pieces
    if (f.release) file_->Release(*f.tensor, 0, f.tensor->bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightPlace> WeightStore::Copy(Client* client, const gguf::TensorInfo& tensor,
                                              bool as_f32, bool canon) {
  const auto key = std::make_pair(&tensor, as_f32);
  auto found = client->copies.find(key);
  if (found == client->copies.end()) {
    std::vector<std::byte> bytes = Converted(tensor, DataOf(tensor).data(), as_f32);
    if (canon) {
      const quant::Type type = as_f32 ? quant::Type::kF32 : tensor.type;
      quant::CanonRow(type, bytes.data(), tensor.dims[0] * tensor.Rows());
    }
    auto buffer = Buffer::Allocate(client->device, bytes.size(), TRINE_MEMORY_WEIGHTS);
    if (!buffer.ok()) return buffer.status();
    if (absl::Status s = buffer->Write(0, bytes.data(), bytes.size()); !s.ok()) return s;
    WeightBytes& count = client->bytes;
    (InPlace(tensor, as_f32, canon) ? count.copied : count.converted) += bytes.size();
    found = client->copies.emplace(key, *std::move(buffer)).first;
  }
  const uint64_t bytes =
      as_f32 ? static_cast<uint64_t>(tensor.dims[0] * tensor.Rows()) * sizeof(float) : tensor.bytes;
  return WeightPlace{found->second.Span(0, bytes), 0};
}

absl::StatusOr<WeightPlace> WeightStore::Place(const std::shared_ptr<Device>& device,
                                               const gguf::TensorInfo& tensor, bool as_f32,
                                               bool canon) {
  for (Client& client : clients_) {
    if (client.device != device || !InPlace(tensor, as_f32, canon)) continue;
    const Window* window = WindowOf(client, tensor);
    if (window == nullptr) continue;
    const bool shared = window->part == kArena;
    if (client.placed.insert(&tensor).second) {
      (shared ? client.bytes.arena : client.bytes.file) += tensor.bytes;
    }
    return PlaceIn(*window, *device, tensor);
  }
  return Copy(&ClientOf(device), tensor, as_f32, canon);
}

WeightPlace WeightStore::PlaceIn(const Window& window, const Device& device,
                                 const gguf::TensorInfo& tensor) const {
  const uint64_t alignment = std::max<uint32_t>(1, device.info().buffer_alignment);
  const ByteRange range = window.part == kArena ? arena_->RangeOf(&tensor) : FileRange(tensor);
  const uint64_t offset = range.begin - window.range.begin, rest = offset % alignment;
  return WeightPlace{window.buffer.Span(offset - rest, rest + tensor.bytes), rest};
}

bool WeightStore::Sees(const Device& device, const gguf::TensorInfo& tensor) const {
  return std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.device.get() == &device && WindowOf(client, tensor) != nullptr;
  });
}

absl::Status WeightStore::ImportStreamed(const std::shared_ptr<Device>& device,
                                         const std::vector<const gguf::TensorInfo*>& tensors) {
  Client client;
  client.device = device;
  std::vector<ByteRange> moved;  // in the arena: the file may have released them
  for (const gguf::TensorInfo* tensor : tensors) {
    if (in_arena_.count(tensor) != 0) {
      moved.push_back(arena_->RangeOf(tensor));
    } else {
      client.wanted.push_back(tensor);
    }
  }
  auto taken = ImportFile(&client);
  if (taken.ok() && *taken && !moved.empty()) {
    taken = ImportRanges(&client, kArena, arena_->data(), arena_->bytes(), std::move(moved));
  }
  if (!taken.ok()) return taken.status();
  if (!*taken) return absl::UnimplementedError(client.bytes.refusal);
  streams_.push_back(std::move(client));
  return absl::OkStatus();
}

absl::StatusOr<WeightPlace> WeightStore::PlaceStreamed(const Device& device,
                                                       const gguf::TensorInfo& tensor) const {
  for (const Client& client : streams_) {
    if (client.device.get() != &device) continue;
    const Window* window = WindowOf(client, tensor);
    if (window != nullptr) return PlaceIn(*window, device, tensor);
  }
  return absl::InternalError(absl::StrCat(std::string(tensor.name), " is not to be streamed"));
}

WeightBytes WeightStore::BytesOf(const Device& device) const {
  WeightBytes sum;
  for (const Client& client : clients_) {
    if (client.device.get() != &device) continue;
    sum.file += client.bytes.file;
    sum.arena += client.bytes.arena;
    sum.copied += client.bytes.copied;
    sum.converted += client.bytes.converted;
    if (sum.refusal.empty()) sum.refusal = client.bytes.refusal;
  }
  return sum;
}

uint64_t WeightStore::ImportedBytes(const Device& device) const {
  uint64_t bytes = 0;
  for (const Client& client : clients_) {
    if (client.device.get() != &device) continue;
    for (const Window& window : client.windows) bytes += window.range.end - window.range.begin;
  }
  return bytes;
}

absl::Span<const std::byte> WeightStore::DataOf(const gguf::TensorInfo& tensor) const {
  const bool moved = in_arena_.count(&tensor) != 0;
  const std::byte* data = moved ? arena_->data() + arena_->RangeOf(&tensor).begin : tensor.data;
  return {data, tensor.bytes};
}

}  // namespace trine
