#include "backends/vulkan/import_trial.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/recorder.h"
#include "trine/backend.h"

namespace trine::vulkan {
namespace {

class Pages {
 public:
  static Pages Own(uint64_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data != MAP_FAILED) std::memset(data, 0xa5, bytes);
    return {data, bytes};
  }
  // Of the file that runs: there is one for certain, and it is what its mapping says it is.
  static Pages OfFile(uint64_t bytes) {
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st {};
    if (fd < 0) return {nullptr, 0};
    void* data = MAP_FAILED;
    if (fstat(fd, &st) == 0 && static_cast<uint64_t>(st.st_size) >= bytes) {
      data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    return {data, bytes};
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  void* data() const { return data_; }

 private:
  Pages(void* data, uint64_t bytes) : data_(data == MAP_FAILED ? nullptr : data), bytes_(bytes) {}
  void* data_;
  uint64_t bytes_;
};

absl::Status Try(OpenDevice& open, const Pages& pages, uint64_t bytes, bool read_only,
                 bool compare) {
  if (pages.data() == nullptr) return absl::NotFoundError("there was none to try with");
  const auto imported = open.Import(pages.data(), bytes, read_only);
  if (!imported.ok()) return imported.status();
  const auto copy = open.memory->Allocate(bytes, MemoryUse::kReadback);
  if (!copy.ok()) return copy.status();
  Recorder recorder(*open.device, *open.pipelines, open.tuning);
  absl::Status status = recorder.Copy(imported->range(), copy->range());
  if (!status.ok()) return status;
  const auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  if (status = open.RunAndWait(**recording); !status.ok()) return status;
  std::vector<std::byte> read(bytes);
  status = open.transfer->Read(*copy, 0, read.data(), bytes);
  if (status.ok() && compare && std::memcmp(read.data(), pages.data(), bytes) != 0) {
    return absl::DataLossError("the device reads other bytes than are there");
  }
  return status;
}

}  // namespace

ImportTrial TryImports(OpenDevice& open, bool compare) {
  ImportTrial trial;
  const uint64_t bytes = open.ImportAlignment();
  if (bytes == 0) return trial;
  trial.imports = TRINE_IMPORTS_TRIED;
  const auto attempt = [&](const Pages& pages, bool read_only, uint32_t bit, const char* what) {
    const absl::Status status = Try(open, pages, bytes, read_only, compare);
    if (status.ok()) {
      trial.imports |= bit;
    } else {
      if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) trial.settled = false;
      absl::StrAppend(&trial.refusal, trial.refusal.empty() ? "" : "; ", what, ": ",
                      status.message());
    }
  };
  attempt(Pages::Own(bytes), false, TRINE_IMPORTS_WRITABLE, "memory");
  attempt(Pages::OfFile(bytes), true, TRINE_IMPORTS_READ_ONLY, "mapped files");
  return trial;
}

}  // namespace trine::vulkan
