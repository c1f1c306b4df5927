#include "runtime/kv_store/model_hash.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr std::chrono::seconds kSettled{2};  // file systems have coarse clocks
constexpr auto kModel = KvFolder::Kind::kModel;

void HashValue(const gguf::Value& value, Sha256* hash);

void HashArray(const gguf::Array& array, Sha256* hash) {
  hash->Number(array.element_type);
  hash->Number(array.size);
  for (const gguf::Value& nested : array.nested) HashValue(nested, hash);
  for (const int64_t n : array.integers) hash->Number(n);
  for (const double x : array.floats) hash->Number(std::bit_cast<uint64_t>(x));
  for (const std::string_view text : array.strings) hash->Text(text);
}

void HashValue(const gguf::Value& value, Sha256* hash) {
  hash->Number(value.type);
  hash->Number(static_cast<uint64_t>(value.value.index()));
  if (const auto* yes = std::get_if<bool>(&value.value)) hash->Number(uint8_t{*yes});
  if (const auto* n = std::get_if<int64_t>(&value.value)) hash->Number(*n);
  if (const auto* n = std::get_if<uint64_t>(&value.value)) hash->Number(*n);
  if (const auto* x = std::get_if<double>(&value.value)) hash->Number(std::bit_cast<uint64_t>(*x));
  if (const auto* text = std::get_if<std::string_view>(&value.value)) hash->Text(*text);
  if (const auto* array = std::get_if<gguf::Array>(&value.value)) HashArray(*array, hash);
}

void HashMetadata(const gguf::Metadata& metadata, Sha256* hash) {
  std::vector<const gguf::Metadata::Entry*> entries;
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    if (!entry.key.starts_with("split.")) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->key < b->key; });
  hash->Number(static_cast<uint64_t>(entries.size()));
  for (const gguf::Metadata::Entry* entry : entries) {
    hash->Text(entry->key);
    HashValue(entry->value, hash);
  }
}

struct Piece {
  const gguf::TensorInfo* tensor;
  uint64_t begin, end;
  Hash256 hash;
};

void HashPieces(const gguf::File& file, int threads, std::vector<Piece>* pieces) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < pieces->size(); i = next++) {
      Piece& piece = (*pieces)[i];
      Sha256 hash("trine model bytes 1");
      hash.Bytes(piece.tensor->data + piece.begin, piece.end - piece.begin);
      piece.hash = hash.Finish();
      if (file.mapped()) file.Release(*piece.tensor, piece.begin, piece.end);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

// Returns the name for the remembered hash, or nothing if remembering would not be safe.
std::optional<Hash256> StampsOf(const gguf::File& file) {
  const auto now = std::chrono::system_clock::now().time_since_epoch() - kSettled;
  const auto settled =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  Sha256 hash("trine model stamps 1");
  for (const gguf::Part& part : file.parts()) {
    const gguf::FileStamp& s = part.stamp;
    if (s.inode == 0 || s.changed_ns > settled || s.modified_ns > settled) return std::nullopt;
    for (const uint64_t n : {s.bytes, s.modified_ns, s.changed_ns, s.device, s.inode}) {
      hash.Number(n);
    }
  }
  return hash.Finish();
}

// The contents of a file in models-1, 72 bytes. `check` is a Hash64 of the other fields.
struct Remembered {
  Hash256 stamps, model;
  uint64_t check = 0;

  uint64_t Check() const { return Hash64(this, 2 * sizeof(Hash256), 0); }
};
static_assert(sizeof(Remembered) == 72);

std::optional<Hash256> Recall(const KvFolder& folder, const Hash256& stamps) {
  const auto file = folder.OpenFile(kModel, stamps);
  Remembered known;
  if (!file.ok() || file->bytes != sizeof(known)) return std::nullopt;
  std::byte bytes[sizeof(known)];
  if (!file->Read(0, bytes).ok()) return std::nullopt;
  std::memcpy(&known, bytes, sizeof(known));
  if (known.stamps != stamps || known.check != known.Check()) return std::nullopt;
  return known.model;
}

}  // namespace

Hash256 HashModel(const gguf::File& file, int threads) {
  std::vector<const gguf::TensorInfo*> tensors;
  for (const gguf::TensorInfo& tensor : file.tensors()) tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  std::vector<Piece> pieces;
  for (const gguf::TensorInfo* tensor : tensors) {
    for (uint64_t at = 0; at < tensor->bytes; at += kPieceBytes) {
      pieces.push_back({tensor, at, std::min(at + kPieceBytes, tensor->bytes), {}});
    }
  }
  HashPieces(file, threads, &pieces);
  Sha256 hash("trine model 1");
  HashMetadata(file.metadata(), &hash);
  hash.Number(static_cast<uint64_t>(tensors.size()));
  for (const gguf::TensorInfo* tensor : tensors) {
    hash.Text(tensor->name);
    hash.Number(static_cast<uint32_t>(tensor->type));
    for (const int64_t n : tensor->dims) hash.Number(n);
    hash.Number(tensor->bytes);
  }
  for (const Piece& piece : pieces) hash.Hash(piece.hash);
  return hash.Finish();
}

Hash256 HashModelOnce(const gguf::File& file, int threads, const KvFolder& folder) {
  const std::optional<Hash256> stamps = StampsOf(file);
  if (!stamps) return HashModel(file, threads);
  if (const auto known = Recall(folder, *stamps)) return *known;
  Remembered found = {*stamps, HashModel(file, threads)};
  found.check = found.Check();
  // If it can't be written, the next call computes the hash again.
  const absl::Status ignored =
      folder.Write(kModel, *stamps, std::as_bytes(std::span(&found, 1)), {}, true);
  return found.model;
}

}  // namespace trine
