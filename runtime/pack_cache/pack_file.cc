#include "runtime/pack_cache/pack_file.h"

#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/quoted.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr std::string_view kMagic = "TRINEPCK";
constexpr uint32_t kVersion = 2;
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint64_t kHashAt = 32;  // where the head's own hash is
constexpr uint32_t kMaxFiles = 1 << 16;
constexpr uint32_t kMaxEntries = 1 << 20;
constexpr uint32_t kMaxText = 1 << 16;

uint64_t RoundUp(uint64_t n) { return (n + kPackAlignment - 1) / kPackAlignment * kPackAlignment; }

// Calls f for the numbers of an entry, in the file's order.
template <class Entry, class Function>
void EachNumber(Entry& e, Function f) {
  for (auto* member : {&e.layout, &e.type, &e.dims[0], &e.dims[1], &e.dims[2], &e.dims[3],
                       &e.source_bytes, &e.source_hash, &e.group_rows, &e.group_bytes, &e.groups,
                       &e.packed_bytes, &e.offset, &e.checksum}) {
    f(*member);
  }
}

void WriteHead(const PackTable& table, uint64_t head_bytes, uint64_t file_bytes,
               gguf::ByteWriter* w) {
  w->Bytes(kMagic.data(), kMagic.size());
  w->Number(kVersion).Number(kByteOrder).Number(head_bytes).Number(file_bytes);
  w->Number(uint64_t{0});  // the hash, set later
  w->Number(static_cast<uint32_t>(table.model.size()));
  w->Number(static_cast<uint32_t>(table.entries.size()));
  for (const gguf::FileStamp& s : table.model) {
    for (const uint64_t n : {s.bytes, s.modified_ns, s.changed_ns, s.device, s.inode}) w->Number(n);
  }
  for (const PackEntry& e : table.entries) {
    w->Text(e.device).Text(e.name);
    EachNumber(e, [&](uint64_t n) { w->Number(n); });
  }
}

uint64_t HeadBytes(const PackTable& table) {
  gguf::ByteWriter w;
  WriteHead(table, 0, 0, &w);
  return w.bytes.size();
}

uint64_t HeadHash(const std::byte* head, uint64_t bytes) {
  constexpr uint64_t kBehind = kHashAt + sizeof(uint64_t);
  return Hash64(head + kBehind, bytes - kBehind, Hash64(head, kHashAt, 0));
}

bool ReadText(gguf::Cursor* cursor, std::string* text) {
  std::string_view view;
  if (!cursor->ReadString<uint32_t>(&view, kMaxText)) return false;
  text->assign(view);
  return true;
}

// Ensures that every later reader may multiply and add an entry's numbers.
absl::Status CheckEntry(const PackEntry& e, uint64_t from, uint64_t file_bytes) {
  const auto wrong = [&](const char* what) {
    return Invalid("tensor ", gguf::Quoted(e.name), ": ", what);
  };
  if (e.group_rows == 0 || e.group_bytes == 0 || e.groups == 0) return wrong("has no groups");
  if (e.packed_bytes / e.group_bytes < e.groups) return wrong("its groups exceed its bytes");
  if (e.offset % kPackAlignment != 0) return wrong("is not aligned");
  if (e.offset < from) return wrong("overlaps what is before it");
  if (e.offset > file_bytes || e.packed_bytes > file_bytes - e.offset) {
    return wrong("is not all in the file");
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t PlacePackEntries(PackTable* table) {
  uint64_t end = HeadBytes(*table);
  for (PackEntry& e : table->entries) {
    e.offset = RoundUp(end);
    end = e.offset + e.packed_bytes;
  }
  return RoundUp(end);  // whole pages, because it is mapped
}

std::vector<std::byte> EncodePackHead(const PackTable& table) {
  uint64_t end = HeadBytes(table);
  if (!table.entries.empty()) end = table.entries.back().offset + table.entries.back().packed_bytes;
  gguf::ByteWriter w;
  WriteHead(table, HeadBytes(table), RoundUp(end), &w);
  const uint64_t hash = HeadHash(w.bytes.data(), w.bytes.size());
  std::memcpy(w.bytes.data() + kHashAt, &hash, sizeof(hash));
  return std::move(w.bytes);
}

absl::StatusOr<PackTable> ParsePackHead(const std::byte* data, uint64_t bytes) {
  gguf::Cursor cursor(data, bytes);
  const auto invalid = [](auto... what) { return Invalid(what...); };
  if (!cursor.Skip(kMagic.size()) || std::memcmp(data, kMagic.data(), kMagic.size()) != 0) {
    return invalid("is no pack cache");
  }
  uint32_t version = 0, order = 0, n_files = 0, n_entries = 0;
  uint64_t head_bytes = 0, file_bytes = 0, hash = 0;
  if (!cursor.Read(&version)) return cursor.Ends("the version");
  if (version != kVersion) return invalid("is of version ", version, ", not ", kVersion);
  if (!cursor.Read(&order)) return cursor.Ends("the head");
  if (order != kByteOrder) return invalid("has another byte order");
  if (!cursor.Read(&head_bytes) || !cursor.Read(&file_bytes) || !cursor.Read(&hash) ||
      !cursor.Read(&n_files) || !cursor.Read(&n_entries)) {
    return cursor.Ends("the head");
  }
  if (file_bytes != bytes) return invalid("has ", bytes, " bytes, and says ", file_bytes);
  if (head_bytes < cursor.position() || head_bytes > bytes) {
    return invalid("has a head of ", head_bytes, " bytes in a file of ", bytes);
  }
  if (n_files > kMaxFiles || n_entries > kMaxEntries) {
    return invalid("names ", n_files, " files and ", n_entries, " tensors");
  }
  if (HeadHash(data, head_bytes) != hash) return invalid("has a damaged head");
  gguf::Cursor table_cursor(data, head_bytes);
  table_cursor.Skip(cursor.position());
  PackTable table;
  for (uint32_t i = 0; i < n_files; ++i) {
    gguf::FileStamp s;
    for (uint64_t* n : {&s.bytes, &s.modified_ns, &s.changed_ns, &s.device, &s.inode}) {
      if (!table_cursor.Read(n)) return table_cursor.Ends("the list of files");
    }
    table.model.push_back(s);
  }
  uint64_t from = head_bytes;
  for (uint32_t i = 0; i < n_entries; ++i) {
    PackEntry e;
    bool read = ReadText(&table_cursor, &e.device) && ReadText(&table_cursor, &e.name);
    EachNumber(e, [&](uint64_t& n) { read = read && table_cursor.Read(&n); });
    if (!read) return table_cursor.Ends("the table of tensors");
    if (absl::Status s = CheckEntry(e, from, bytes); !s.ok()) return s;
    from = e.offset + e.packed_bytes;
    table.entries.push_back(std::move(e));
  }
  if (table_cursor.remaining() != 0) return invalid("has a head that goes on after its table");
  return table;
}

}  // namespace trine
