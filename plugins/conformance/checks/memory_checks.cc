// Section memory: buffers, their bounds, host pointers and imports.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/case_builder.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

Bytes RandomBytes(Random& random, size_t n) {
  Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.Next());
  return bytes;
}

bool Holds(Trial& trial, Session& s, trine_buffer* buffer, const Bytes& expected,
           const std::string& when) {
  Bytes got(expected.size());
  if (!trial.ExpectOk(s.Read(trial, buffer, 0, got.data(), got.size()), "buffer_read")) {
    return false;
  }
  return trial.Expect(got == expected, absl::StrCat("a buffer of ", expected.size(),
                                                    " bytes holds other bytes ", when));
}

// Writes at odd offsets and reads everything back.
void CheckReadBack(Trial& trial, Session& s, uint64_t bytes, uint32_t memory) {
  Random random(bytes);
  const BufferPtr buffer = s.Alloc(trial, bytes, memory);
  if (buffer == nullptr) return;
  Bytes content = RandomBytes(random, bytes);
  trial.ExpectOk(s.Write(trial, buffer.get(), 0, content.data(), bytes), "buffer_write");
  for (int i = 0; i < 8 && bytes > 1; ++i) {
    const auto offset = static_cast<uint64_t>(random.Below(static_cast<int64_t>(bytes)));
    const auto n = static_cast<uint64_t>(random.Below(static_cast<int64_t>(bytes - offset)) + 1);
    const Bytes patch = RandomBytes(random, n);
    std::memcpy(content.data() + offset, patch.data(), n);
    trial.ExpectOk(s.Write(trial, buffer.get(), offset, patch.data(), n),
                   absl::StrCat("buffer_write of ", n, " bytes at ", offset));
  }
  Holds(trial, s, buffer.get(), content, "than were written");
}

void CheckBounds(Trial& trial, Session& s) {
  constexpr uint64_t kBytes = 4096;
  Random random(1);
  const BufferPtr buffer = s.Alloc(trial, kBytes);
  if (buffer == nullptr) return;
  const Bytes content = RandomBytes(random, kBytes), other = RandomBytes(random, 2 * kBytes);
  trial.ExpectOk(s.Write(trial, buffer.get(), 0, content.data(), kBytes), "buffer_write");
  struct Window {
    uint64_t offset, bytes;
  };
  for (const Window& w :
       {Window{0, kBytes + 1}, Window{kBytes, 1}, Window{kBytes - 1, 2}, Window{UINT64_MAX, 1},
        Window{UINT64_MAX - 7, 16}, Window{16, UINT64_MAX - 8}}) {
    const std::string what =
        absl::StrCat(w.bytes, " bytes at ", w.offset, " of a buffer of ", kBytes);
    const Answer written = s.Write(trial, buffer.get(), w.offset, other.data(), w.bytes);
    trial.ExpectRefused(written, absl::StrCat("buffer_write of ", what),
                        {TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
    Bytes room(2 * kBytes, kGarbage);
    const Answer read = s.Read(trial, buffer.get(), w.offset, room.data(), w.bytes);
    trial.ExpectRefused(read, absl::StrCat("buffer_read of ", what),
                        {TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
    // Stops after a write out of bounds, because more would damage the process further.
    if (trial.failed()) return;
  }
  Holds(trial, s, buffer.get(), content, "after refused writes");
}

void CheckAbsurdSizes(Trial& trial, Session& s) {
  BufferPtr none;
  trial.ExpectRefused(s.TryAlloc(trial, 0, TRINE_MEMORY_IO, &none), "buffer_alloc of 0 bytes",
                      {TRINE_INVALID_ARGUMENT});
  for (uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX, UINT64_MAX - 63}) {
    trial.ExpectRefused(s.TryAlloc(trial, bytes, TRINE_MEMORY_WEIGHTS, &none),
                        absl::StrCat("buffer_alloc of ", bytes, " bytes"),
                        {TRINE_RESOURCE_EXHAUSTED, TRINE_INVALID_ARGUMENT});
  }
  trial.ExpectRefused(s.TryAlloc(trial, 64, 77, &none), "buffer_alloc of an unknown memory kind");
  CheckReadBack(trial, s, 4096, TRINE_MEMORY_IO);  // the device still works
}

void CheckDistinct(Trial& trial, Session& s) {
  std::vector<BufferPtr> buffers;
  for (int i = 0; i < 16; ++i) {
    buffers.push_back(s.Alloc(trial, 1000));
    if (buffers.back() == nullptr) return;
    const Bytes fill(1000, static_cast<std::byte>(i + 1));
    trial.ExpectOk(s.Write(trial, buffers.back().get(), 0, fill.data(), fill.size()),
                   "buffer_write");
  }
  for (int i = 0; i < 16; ++i) {
    const Bytes fill(1000, static_cast<std::byte>(i + 1));
    Holds(trial, s, buffers[static_cast<size_t>(i)].get(), fill, "after others were written");
  }
}

void CheckHostPointer(Trial& trial, Session& s) {
  if (s.table().buffer_host_ptr == nullptr) return trial.Skip("buffer_host_ptr is not offered");
  Random random(3);
  const BufferPtr buffer = s.Alloc(trial, 5000);
  if (buffer == nullptr) return;
  auto* pointer = static_cast<std::byte*>(s.table().buffer_host_ptr(buffer.get()));
  if (pointer == nullptr) return trial.Skip("the host can't see the device's memory");
  Bytes content = RandomBytes(random, 5000);
  trial.ExpectOk(s.Write(trial, buffer.get(), 0, content.data(), content.size()), "buffer_write");
  trial.Expect(std::memcmp(pointer, content.data(), content.size()) == 0,
               "buffer_host_ptr does not show what buffer_write wrote");
  content = RandomBytes(random, 5000);
  std::memcpy(pointer, content.data(), content.size());
  Holds(trial, s, buffer.get(), content, "than were written through buffer_host_ptr");
}

Answer Import(Trial& trial, Session& s, void* pointer, uint64_t bytes, BufferPtr* out,
              uint32_t flags = 0) {
  trine_buffer* buffer = nullptr;
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = flags;
  desc.host_ptr = pointer;
  desc.bytes = bytes;
  const Answer answer =
      s.Call(trial, "buffer_import", &trine_plugin::buffer_import, s.device(), &desc, &buffer);
  if (answer.Ok()) *out = s.Own(buffer);
  return answer;
}

// Checks that both sides see the imported bytes: the host, and the device, which copies them to its
// own memory.
void CheckImported(Trial& trial, Session& s, trine_buffer* buffer, const Bytes& expected,
                   const std::string& what) {
  Holds(trial, s, buffer, expected, absl::StrCat("than ", what));
  const BufferPtr own = s.Alloc(trial, expected.size(), TRINE_MEMORY_STATE);
  if (own == nullptr) return;
  const trine_copy copy{{buffer, nullptr, 0}, {own.get(), nullptr, 0}, expected.size()};
  if (!trial.ExpectOk(Copy(trial, s, {copy}), absl::StrCat("copy_run from ", what))) return;
  Holds(trial, s, own.get(), expected, absl::StrCat("after copy_run from ", what));
}

// Maps a file's first bytes at a multiple of `alignment`, a power of two, perhaps above a page.
class AlignedMapping {
 public:
  AlignedMapping(std::FILE* file, uint64_t bytes, uint64_t alignment) : room_(bytes + alignment) {
    reserved_ = mmap(nullptr, room_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved_ == MAP_FAILED) return;
    const auto address = reinterpret_cast<uintptr_t>(reserved_);
    const uintptr_t aligned = (address + alignment - 1) / alignment * alignment;
    void* mapped = mmap(static_cast<std::byte*>(reserved_) + (aligned - address), bytes, PROT_READ,
                        MAP_SHARED | MAP_FIXED, fileno(file), 0);
    if (mapped != MAP_FAILED) data_ = mapped;
  }
  ~AlignedMapping() {
    if (reserved_ != MAP_FAILED) munmap(reserved_, room_);
  }
  AlignedMapping(const AlignedMapping&) = delete;
  AlignedMapping& operator=(const AlignedMapping&) = delete;

  void* data() const { return data_; }  // null when it could not be mapped

 private:
  const uint64_t room_;
  void* reserved_ = MAP_FAILED;
  void* data_ = nullptr;
};

// Imports a mapped file's pages, when device_info promises that. Writes to them must be refused.
void CheckImportOfFile(Trial& trial, Session& s) {
  const bool promised =
      s.info().import_alignment != 0 && (s.info().imports & TRINE_IMPORTS_READ_ONLY) != 0;
  if (s.table().buffer_import == nullptr || !promised) {
    return trial.Skip("device_info does not say that mapped files are imported");
  }
  const uint64_t bytes = std::max<uint64_t>(s.info().import_alignment, 65536);
  Random random(5);
  const Bytes content = RandomBytes(random, bytes);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (file == nullptr || std::fwrite(content.data(), 1, bytes, file.get()) != bytes ||
      std::fflush(file.get()) != 0) {
    return trial.Skip("no temporary file could be written");
  }
  const AlignedMapping mapping(file.get(), bytes, s.info().import_alignment);
  if (mapping.data() == nullptr) return trial.Skip("no file could be mapped");
  BufferPtr buffer;
  const Answer answer = Import(trial, s, mapping.data(), bytes, &buffer, TRINE_IMPORT_READ_ONLY);
  if (!trial.ExpectOk(answer, "buffer_import of a mapped file, which device_info promises")) return;
  CheckImported(trial, s, buffer.get(), content, "the mapped file");
  trial.ExpectRefused(s.Write(trial, buffer.get(), 0, "x", 1), "buffer_write to read-only pages");
}

void CheckImport(Trial& trial, Session& s) {
  const uint64_t alignment = s.info().import_alignment;
  if (s.table().buffer_import == nullptr || alignment == 0) {
    return trial.Skip("buffer_import is not offered");
  }
  const uint32_t imports = s.info().imports;
  if ((imports & TRINE_IMPORTS_TRIED) != 0 && (imports & TRINE_IMPORTS_WRITABLE) == 0) {
    return trial.Skip("device_info says that memory is not imported");
  }
  Random random(4);
  const uint64_t bytes = (4096 + alignment - 1) / alignment * alignment;
  const uint64_t room = std::max<uint64_t>(alignment, sizeof(void*));
  std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(room, (bytes + 2 * room - 1) / room * room)),
      &std::free);
  const Bytes content = RandomBytes(random, bytes);
  std::memcpy(memory.get(), content.data(), bytes);
  BufferPtr buffer;
  if (!trial.ExpectOk(Import(trial, s, memory.get(), bytes, &buffer), "buffer_import")) return;
  CheckImported(trial, s, buffer.get(), content, "the imported memory");
  Bytes past(1);
  trial.ExpectRefused(s.Read(trial, buffer.get(), bytes, past.data(), 1),
                      "buffer_read behind an imported buffer");
  buffer.reset();
  trial.Expect(std::memcmp(memory.get(), content.data(), bytes) == 0,
               "the imported memory changed when its buffer was freed");
  if (alignment > 1) {
    trial.ExpectRefused(Import(trial, s, memory.get() + 1, bytes, &buffer),
                        "buffer_import of a misaligned pointer");
  }
  trial.ExpectRefused(Import(trial, s, memory.get(), 0, &buffer), "buffer_import of 0 bytes");
  trial.ExpectRefused(Import(trial, s, nullptr, bytes, &buffer), "buffer_import of a null pointer");
}

}  // namespace

void RunMemoryChecks(Bench& bench) {
  bench.Run("memory/read-back", [](Trial& trial, Session& s) {
    for (uint64_t bytes : {1u, 2u, 7u, 4096u, 10001u, 3u << 20}) {
      for (uint32_t memory : {TRINE_MEMORY_WEIGHTS, TRINE_MEMORY_STATE, TRINE_MEMORY_IO}) {
        CheckReadBack(trial, s, bytes, memory);
      }
    }
  });
  bench.Run("memory/bounds", CheckBounds);
  bench.Run("memory/absurd-sizes", CheckAbsurdSizes);
  bench.Run("memory/distinct", CheckDistinct);
  bench.Run("memory/host-pointer", CheckHostPointer);
  bench.Run("memory/import", CheckImport);
  bench.Run("memory/import-file", CheckImportOfFile);
}

}  // namespace trine::conformance
