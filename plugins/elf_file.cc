#include "plugins/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kThisMachine = EM_RISCV;
#else
constexpr uint16_t kThisMachine = EM_NONE;  // unknown: not compared
#endif

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    default:
      return absl::StrCat("machine ", machine);
  }
}

// A file mapped to read, every access checked against its size.
class MappedFile {
 public:
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  absl::Status Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      if (errno == EACCES) return absl::PermissionDeniedError("no permission to read the file");
      if (errno == ENOENT) return absl::NotFoundError("there is no such file");
      return absl::UnavailableError(absl::StrCat("cannot be opened: ", std::strerror(errno)));
    }
    struct stat st {};
    absl::Status status;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
      status = absl::InvalidArgumentError("not a file");
    } else if (st.st_size < static_cast<off_t>(sizeof(Elf64_Ehdr))) {
      status = absl::InvalidArgumentError("not a shared object: too short");
    } else {
      void* data = mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (data == MAP_FAILED) {
        status = absl::UnavailableError(absl::StrCat("cannot be mapped: ", std::strerror(errno)));
      } else {
        data_ = static_cast<const char*>(data);
        size_ = static_cast<size_t>(st.st_size);
      }
    }
    close(fd);
    return status;
  }

  template <class T>
  std::optional<T> Read(uint64_t offset) const {
    if (offset > size_ || sizeof(T) > size_ - offset) return std::nullopt;
    T value;
    std::memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }
  // The NUL-terminated string at `offset`; nothing when it runs off the file.
  std::optional<absl::string_view> Text(uint64_t offset) const {
    if (offset >= size_) return std::nullopt;
    const void* end = std::memchr(data_ + offset, 0, size_ - offset);
    if (end == nullptr) return std::nullopt;
    return absl::string_view(data_ + offset, static_cast<const char*>(end) - (data_ + offset));
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

absl::Status Malformed() { return absl::InvalidArgumentError("not a shared object: malformed"); }

// The section headers of one kind that hold what we look for; symbols may be many, so bounded.
constexpr uint64_t kMaxEntries = 1 << 20;

absl::Status ReadDynamic(const MappedFile& file, const Elf64_Shdr& section,
                         const Elf64_Shdr& strings, ElfFacts* facts) {
  const uint64_t count = section.sh_size / sizeof(Elf64_Dyn);
  for (uint64_t i = 0; i < std::min(count, kMaxEntries); ++i) {
    const auto entry = file.Read<Elf64_Dyn>(section.sh_offset + i * sizeof(Elf64_Dyn));
    if (!entry) return Malformed();
    if (entry->d_tag == DT_NULL) break;
    if (entry->d_tag != DT_NEEDED) continue;
    const auto name = file.Text(strings.sh_offset + entry->d_un.d_val);
    if (!name) return Malformed();
    facts->needed.emplace_back(*name);
    facts->wants_asan |= absl::StartsWith(*name, "libasan.");
    facts->wants_tsan |= absl::StartsWith(*name, "libtsan.");
  }
  return absl::OkStatus();
}

absl::Status ReadSymbols(const MappedFile& file, const Elf64_Shdr& section,
                         const Elf64_Shdr& strings, ElfFacts* facts) {
  const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
  for (uint64_t i = 1; i < std::min(count, kMaxEntries); ++i) {
    const auto symbol = file.Read<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return Malformed();
    const auto name = file.Text(strings.sh_offset + symbol->st_name);
    if (!name) return Malformed();
    const bool defined = symbol->st_shndx != SHN_UNDEF;
    facts->exports_query |= defined && *name == "trine_plugin_query";
    facts->wants_asan |= !defined && *name == "__asan_init";
    facts->wants_tsan |= !defined && *name == "__tsan_init";
  }
  return absl::OkStatus();
}

absl::Status CheckHeader(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return absl::InvalidArgumentError("not a shared object");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      (kThisMachine != EM_NONE && header.e_machine != kThisMachine)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "built for ",
        header.e_ident[EI_CLASS] != ELFCLASS64 ? "a 32-bit machine" : MachineName(header.e_machine),
        ", this machine is ", MachineName(kThisMachine)));
  }
  if (header.e_type != ET_DYN || header.e_shentsize != sizeof(Elf64_Shdr)) return Malformed();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ElfFacts> InspectElf(const std::string& path) {
  MappedFile file;
  absl::Status status = file.Open(path);
  if (!status.ok()) return status;
  const auto header = file.Read<Elf64_Ehdr>(0);
  if (!header) return Malformed();
  status = CheckHeader(*header);
  if (!status.ok()) return status;

  ElfFacts facts;
  const auto section_at = [&](uint64_t i) {
    return file.Read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
  };
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    const auto section = section_at(i);
    if (!section) return Malformed();
    if (section->sh_type != SHT_DYNAMIC && section->sh_type != SHT_DYNSYM) continue;
    if (section->sh_link >= header->e_shnum) return Malformed();
    const auto strings = section_at(section->sh_link);
    if (!strings) return Malformed();
    status = section->sh_type == SHT_DYNAMIC ? ReadDynamic(file, *section, *strings, &facts)
                                             : ReadSymbols(file, *section, *strings, &facts);
    if (!status.ok()) return status;
  }
  return facts;
}

}  // namespace trine
