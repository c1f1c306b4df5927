#include "backends/vulkan/exec/import_trial.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "backends/vulkan/exec/recorder.h"
#include "kernels/vulkan/runs/dispatch.h"
#include "trine/backend.h"

namespace trine::vulkan {
namespace {

// Pages that begin at a multiple of an alignment, which may be larger than a page.
class Pages {
 public:
  static Pages Own(uint64_t bytes, uint64_t alignment) {
    Pages pages(bytes, alignment);
    pages.Map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    return pages;
  }
  // Maps the file of the running program, which certainly exists and shows its content there.
  static Pages OfFile(uint64_t bytes, uint64_t alignment) {
    Pages pages(bytes, alignment);
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return pages;
    struct stat st {};
    if (fstat(fd, &st) == 0 && static_cast<uint64_t>(st.st_size) >= bytes) {
      pages.Map(PROT_READ, MAP_SHARED, fd);
    }
    close(fd);
    return pages;
  }
  Pages(Pages&& other) noexcept
      : bytes_(other.bytes_),
        reserved_bytes_(other.reserved_bytes_),
        reserved_(std::exchange(other.reserved_, MAP_FAILED)),
        place_(other.place_),
        mapped_(other.mapped_) {}
  ~Pages() {
    if (reserved_ != MAP_FAILED) munmap(reserved_, reserved_bytes_);
  }

  // Returns null if the mapping failed.
  std::byte* data() const { return mapped_ ? place_ : nullptr; }
  uint64_t bytes() const { return bytes_; }
  // Keeps the pages for as long as the process lives.
  void Leave() { reserved_ = MAP_FAILED; }

 private:
  Pages(uint64_t bytes, uint64_t alignment)
      : bytes_(bytes),
        reserved_bytes_(bytes + alignment),
        reserved_(mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (reserved_ == MAP_FAILED) return;
    const auto address = reinterpret_cast<uintptr_t>(reserved_);
    place_ = static_cast<std::byte*>(reserved_) + (RoundUp(address, alignment) - address);
  }
  void Map(int protection, int flags, int fd) {
    if (reserved_ == MAP_FAILED) return;
    mapped_ = mmap(place_, bytes_, protection, flags | MAP_FIXED, fd, 0) != MAP_FAILED;
  }

  uint64_t bytes_;
  uint64_t reserved_bytes_;
  void* reserved_;
  std::byte* place_ = nullptr;
  bool mapped_ = false;
};

absl::Status CopyOnDevice(OpenDevice& open, const Allocation& from, const Allocation& to) {
  Recorder recorder(*open.device, *open.pipelines, open.tuning);
  absl::Status status = recorder.Copy(from.range(), to.range());
  if (!status.ok()) return status;
  const auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  return open.RunAndWait(**recording, std::min(open.options.timeout, kImportTrialTimeout));
}

// Checks that the host sees what the device writes. A driver that works on a copy would fail this.
absl::Status TryWriting(OpenDevice& open, const Pages& pages, const Allocation& imported) {
  const uint64_t bytes = pages.bytes();
  const auto from = open.memory->Allocate(bytes, MemoryUse::kReadback);
  if (!from.ok()) return from.status();
  std::memset(from->host(), 0x3c, bytes);
  if (absl::Status status = CopyOnDevice(open, *from, imported); !status.ok()) return status;
  if (std::memcmp(from->host(), pages.data(), bytes) != 0) {
    return absl::DataLossError("what the device writes is not there");
  }
  return absl::OkStatus();
}

absl::Status Try(OpenDevice& open, const Pages& pages, bool read_only, bool compare) {
  const uint64_t bytes = pages.bytes();
  // Arenas are imported before they are filled. So half of the pages are untouched at the import,
  // and all are filled after it: a driver might keep placeholders, or the old content.
  if (!read_only) std::memset(pages.data(), 0x5a, bytes / 2);
  const auto imported = open.Import(pages.data(), bytes, read_only);
  if (!imported.ok()) return imported.status();
  if (!read_only) std::memset(pages.data(), 0xa5, bytes);
  const auto copy = open.memory->Allocate(bytes, MemoryUse::kReadback);
  if (!copy.ok()) return copy.status();
  if (absl::Status status = CopyOnDevice(open, *imported, *copy); !status.ok()) return status;
  if (compare && std::memcmp(copy->host(), pages.data(), bytes) != 0) {
    return absl::DataLossError("the device reads other bytes than are there");
  }
  return read_only || !compare ? absl::OkStatus() : TryWriting(open, pages, *imported);
}

// Shortens a status to its cause. The reader knows what was tried, and on which device.
std::string ReasonOf(const OpenDevice& open, const absl::Status& status) {
  if (open.device->abandoned()) return "the device did not finish and was given up";
  if (absl::IsUnavailable(status)) return "the device was lost";
  absl::string_view text = status.message();
  if (const size_t cause = text.rfind(": "); cause != text.npos) text.remove_prefix(cause + 2);
  absl::ConsumePrefix(&text, open.caps().name + " ");
  return std::string(text);
}

void TryKind(OpenDevice& open, Pages pages, bool read_only, bool compare, KindTrial* kind) {
  if (pages.data() == nullptr || !open.device->Health().ok()) return;
  const absl::Status status = Try(open, pages, read_only, compare);
  // Abandoned work may still read the pages.
  if (open.device->abandoned()) pages.Leave();
  if (status.ok()) {
    *kind = {KindTrial::kTaken, ""};
  } else if (!absl::IsResourceExhausted(status) && !absl::IsInvalidArgument(status)) {
    *kind = {KindTrial::kRefused, ReasonOf(open, status)};
  }
}

}  // namespace

uint32_t ImportTrial::Flags() const {
  if (!settled()) return 0;
  uint32_t flags = TRINE_IMPORTS_TRIED;
  if (memory.outcome == KindTrial::kTaken) flags |= TRINE_IMPORTS_WRITABLE;
  if (files.outcome == KindTrial::kTaken) flags |= TRINE_IMPORTS_READ_ONLY;
  return flags;
}

std::string ImportTrial::Refusal() const {
  const bool no_memory = memory.outcome == KindTrial::kRefused;
  const bool no_files = files.outcome == KindTrial::kRefused;
  if (no_memory && no_files && memory.reason == files.reason) {
    return absl::StrCat("memory and mapped files: ", memory.reason);
  }
  return absl::StrCat(no_memory ? absl::StrCat("memory: ", memory.reason) : "",
                      no_memory && no_files ? "; " : "",
                      no_files ? absl::StrCat("mapped files: ", files.reason) : "");
}

void TryImports(OpenDevice& open, bool compare, ImportTrial* trial) {
  const uint64_t alignment = open.ImportAlignment();
  if (alignment == 0) return;
  const uint64_t bytes = RoundUp(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), alignment);
  if (trial->memory.outcome == KindTrial::kUntried) {
    TryKind(open, Pages::Own(2 * bytes, alignment), false, compare, &trial->memory);
  }
  if (trial->files.outcome == KindTrial::kUntried) {
    TryKind(open, Pages::OfFile(bytes, alignment), true, compare, &trial->files);
  }
}

}  // namespace trine::vulkan
