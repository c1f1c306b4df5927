#include "runtime/model/weights/pack_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"
#include "runtime/model/weights/team_pieces.h"
#include "runtime/pack_cache/hash64.h"
#include "runtime/pack_cache/pack_file.h"

namespace trine {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;  // written, or copied to a device, at a time

// Returns the key of the plugin that the layouts belong to. Another version of the plugin may use a
// layout's id for another layout.
std::string KeyOf(const Device& device) {
  const auto field = [](const char* text, size_t size) {
    return std::string(text, strnlen(text, size));
  };
  const char* version = device.table().version;
  return absl::StrCat(device.table().name, " ", version != nullptr ? version : "", " ",
                      field(device.info().arch, sizeof(device.info().arch)));
}

PackEntry EntryOf(const PackedWeight& weight) {
  PackEntry e;
  e.device = KeyOf(*weight.device);
  e.name = std::string(weight.tensor->name);
  e.layout = weight.layout.id();
  e.type = static_cast<uint64_t>(weight.tensor->type);
  std::copy(std::begin(weight.tensor->dims), std::end(weight.tensor->dims), std::begin(e.dims));
  e.source_bytes = weight.tensor->bytes;
  e.source_hash = weight.source_hash;
  e.group_rows = weight.layout.group_rows();
  e.group_bytes = weight.layout.group_bytes();
  e.groups = weight.layout.groups();
  e.packed_bytes = weight.layout.packed_bytes();
  e.checksum = weight.checksum;
  return e;
}

bool Serves(const PackEntry& e, const PackEntry& wanted) {
  PackEntry same = wanted;  // apart from what is known only after packing
  same.source_hash = e.source_hash;
  same.offset = e.offset;
  same.checksum = e.checksum;
  return e == same;
}

std::vector<gguf::FileStamp> StampsOf(const gguf::File& file) {
  std::vector<gguf::FileStamp> stamps;
  for (const gguf::Part& part : file.parts()) stamps.push_back(part.stamp);
  return stamps;
}

// A weight with its entry in the cache.
struct Found {
  PackedWeight* weight;
  PackEntry entry;
};

absl::StatusOr<std::vector<Found>> Match(const PackTable& table, PackedWeights* weights) {
  std::vector<Found> found;
  for (PackedWeight& weight : weights->items()) {
    const PackEntry wanted = EntryOf(weight);
    const auto entry = std::find_if(table.entries.begin(), table.entries.end(),
                                    [&](const PackEntry& e) { return Serves(e, wanted); });
    if (entry == table.entries.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "was made for another model, device or version: it lacks ", gguf::Quoted(wanted.name),
          " as ", gguf::Quoted(wanted.device), " packs it"));
    }
    found.push_back({&weight, *entry});
  }
  return found;
}

// Sums of HashRows that the threads of the team add to.
class Sums {
 public:
  explicit Sums(size_t n) : sums_(n) {}
  void Add(size_t i, uint64_t value) { sums_[i] += value; }
  uint64_t operator[](size_t i) const { return sums_[i]; }

 private:
  std::vector<std::atomic<uint64_t>> sums_;
};

// Checks the checksums. `release`: lets the system drop checked pages until they are used.
absl::Status VerifyData(const gguf::FileMemory& cache, const std::vector<Found>& found,
                        bool release, const HostServices& host, LoadMeter* meter) {
  Sums sums(found.size());
  std::vector<TeamRange> ranges;
  for (const Found& f : found) ranges.push_back({f.entry.groups, f.entry.group_bytes});
  const absl::Status s = RunPieces(
      ranges, host,
      [&](size_t i, uint64_t begin, uint64_t end) {
        const PackEntry& e = found[i].entry;
        const uint64_t from = e.offset + begin * e.group_bytes;
        sums.Add(i, HashRows(cache.data() + from, e.group_bytes, begin, end));
        if (release) cache.Release(from, e.offset + end * e.group_bytes);
        return absl::OkStatus();
      },
      meter);
  if (!s.ok()) return s;
  for (size_t i = 0; i < found.size(); ++i) {
    if (sums[i] == found[i].entry.checksum) continue;
    return absl::DataLossError(absl::StrCat("is damaged in ", gguf::Quoted(found[i].entry.name)));
  }
  return absl::OkStatus();
}

// Checks that the file has the contents that the cache was made from. Needed if its stamps differ
// from those in the cache.
absl::Status VerifySource(const gguf::File& file, const std::vector<Found>& found,
                          const HostServices& host, LoadMeter* meter) {
  Sums sums(found.size());
  std::vector<TeamRange> ranges;
  uint64_t bytes = 0;
  for (const Found& f : found) {
    const gguf::TensorInfo& t = *f.weight->tensor;
    ranges.push_back({static_cast<uint64_t>(t.Rows()), f.weight->layout.row_bytes()});
    bytes += t.bytes;
  }
  meter->Expect(bytes);
  const absl::Status s = RunPieces(
      ranges, host,
      [&](size_t i, uint64_t begin, uint64_t end) {
        const uint64_t row_bytes = ranges[i].unit_bytes;
        const gguf::TensorInfo& t = *found[i].weight->tensor;
        sums.Add(i, HashRows(t.data + begin * row_bytes, row_bytes, begin, end));
        if (file.mapped()) file.Release(t, begin * row_bytes, end * row_bytes);
        return absl::OkStatus();
      },
      meter);
  if (!s.ok()) return s;
  for (size_t i = 0; i < found.size(); ++i) {
    if (sums[i] == found[i].entry.source_hash) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "was made from another model: ", gguf::Quoted(found[i].entry.name), " differs"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Buffer> Import(const std::shared_ptr<Device>& device,
                              const gguf::FileMemory& memory) {
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = TRINE_IMPORT_READ_ONLY;
  desc.host_ptr = const_cast<std::byte*>(memory.data());  // the import is READ_ONLY
  desc.bytes = memory.mapped_bytes();
  return Buffer::Import(device, desc);
}

bool CanImport(const Device& device) {
  const trine_device_info& info = device.info();
  return MayImport(info, true) && info.import_alignment <= kPackAlignment &&
         info.buffer_alignment <= kPackAlignment;
}

// Places weights in the mapped cache if the device imports it; otherwise copies them.
absl::Status PlaceAll(const std::vector<Found>& found, gguf::FileMemory memory,
                      PackedWeights* weights) {
  std::deque<Buffer> imports;
  std::vector<std::pair<const Device*, const Buffer*>> by_device;  // null: not imported
  for (const Found& f : found) {
    const std::shared_ptr<Device>& device = f.weight->device;
    auto known = std::find_if(by_device.begin(), by_device.end(),
                              [&](const auto& d) { return d.first == device.get(); });
    if (known == by_device.end()) {
      const Buffer* buffer = nullptr;
      if (CanImport(*device)) {
        auto imported = Import(device, memory);
        if (imported.ok()) buffer = &imports.emplace_back(*std::move(imported));
      }
      known = by_device.insert(by_device.end(), {device.get(), buffer});
    }
    if (known->second == nullptr) continue;
    f.weight->span = known->second->Span(f.entry.offset, f.entry.packed_bytes);
    f.weight->visible = memory.data() + f.entry.offset;
  }
  if (absl::Status s = weights->Allocate(); !s.ok()) return s;
  for (const Found& f : found) {
    if (f.weight->buffer == nullptr) continue;
    for (uint64_t at = 0; at < f.entry.packed_bytes; at += kChunkBytes) {
      const uint64_t n = std::min(kChunkBytes, f.entry.packed_bytes - at);
      const std::byte* from = memory.data() + f.entry.offset + at;
      if (absl::Status s = f.weight->Write(at, from, n); !s.ok()) return s;
      memory.Release(f.entry.offset + at, f.entry.offset + at + n);
    }
  }
  weights->Keep(std::move(memory), std::move(imports));
  return absl::OkStatus();
}

absl::Status WriteData(const PackedWeight& weight, gguf::OutputFile* out, LoadMeter* meter) {
  const uint64_t bytes = weight.layout.groups() * weight.layout.group_bytes();
  std::vector<std::byte> staging;
  for (uint64_t at = 0; at < bytes; at += kChunkBytes) {
    const uint64_t n = std::min(kChunkBytes, bytes - at);
    const std::byte* from = nullptr;
    if (weight.visible != nullptr) {
      from = weight.visible + at;
    } else {
      staging.resize(n);
      if (absl::Status s = weight.Read(at, staging.data(), n); !s.ok()) return s;
      from = staging.data();
    }
    if (absl::Status s = out->Append(from, n); !s.ok()) return s;
    if (absl::Status s = meter->Done(n); !s.ok()) return s;
  }
  return out->AppendZeros(weight.layout.packed_bytes() - bytes);
}

}  // namespace

std::string PackCachePath(const gguf::File& file, const std::string& folder, bool exact) {
  const std::filesystem::path model(file.parts().front().path);
  const std::filesystem::path where =
      folder.empty() ? model : std::filesystem::path(folder) / model.filename();
  return where.string() + (exact ? ".trine-pack" : ".fast.trine-pack");
}

absl::Status LoadPackCache(const std::string& path, const gguf::File& file,
                           const HostServices& host, LoadMeter* meter, PackedWeights* weights) {
  auto memory = gguf::FileMemory::Map(path);
  if (!memory.ok()) return memory.status();
  const auto table = ParsePackHead(memory->data(), memory->bytes());
  if (!table.ok()) return table.status();
  const auto found = Match(*table, weights);
  if (!found.ok()) return found.status();
  uint64_t bytes = 0;
  for (const Found& f : *found) bytes += f.entry.groups * f.entry.group_bytes;
  meter->Expect(bytes);
  if (table->model != StampsOf(file)) {
    if (absl::Status s = VerifySource(file, *found, host, meter); !s.ok()) return s;
  }
  // A model file that was read into memory, not mapped, still takes all of its memory here.
  const bool release = !file.mapped();
  if (absl::Status s = VerifyData(*memory, *found, release, host, meter); !s.ok()) return s;
  const absl::Status placed = PlaceAll(*found, *std::move(memory), weights);
  // The cache itself is valid, whatever error the device returned.
  return placed.ok() ? placed : absl::UnavailableError(placed.message());
}

bool IsFaultOfCache(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDataLoss(status);
}

absl::Status WritePackCache(const std::string& path, const gguf::File& file,
                            const PackedWeights& weights, LoadMeter* meter) {
  PackTable table;
  table.model = StampsOf(file);
  for (const PackedWeight& weight : weights.items()) table.entries.push_back(EntryOf(weight));
  const uint64_t file_bytes = PlacePackEntries(&table);
  if (absl::Status s = gguf::CheckDiskSpace(path, file_bytes); !s.ok()) return s;
  auto out = gguf::OutputFile::Create(path);
  if (!out.ok()) return out.status();
  const std::vector<std::byte> head = EncodePackHead(table);
  absl::Status s = (*out)->Append(head.data(), head.size());
  uint64_t at = head.size();
  for (size_t i = 0; s.ok() && i < table.entries.size(); ++i) {
    s = (*out)->AppendZeros(table.entries[i].offset - at);
    if (s.ok()) s = WriteData(weights.items()[i], out->get(), meter);
    at = table.entries[i].offset + table.entries[i].packed_bytes;
  }
  if (s.ok()) s = (*out)->AppendZeros(file_bytes - at);
  if (s.ok()) s = (*out)->Close();
  if (s.ok()) s = (*out)->Publish();
  return s;
}

}  // namespace trine
