#include "plugins/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
constexpr uint16_t kThisMachine = EM_NONE;  // unknown machine: e_machine is not compared
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

// A regular file; every access is checked. It is read and not mapped, because a file that shrinks
// in between then gives a short read, where a mapping would give SIGBUS.
class File {
 public:
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  absl::Status Open(const std::string& path) {
    // Non-blocking, because opening a named pipe would wait for ever otherwise.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) {
      if (errno == EACCES) return absl::PermissionDeniedError("no permission to read the file");
      if (errno == ENOENT) return absl::NotFoundError("there is no such file");
      return absl::UnavailableError(absl::StrCat("cannot be opened: ", std::strerror(errno)));
    }
    struct stat st {};
    if (fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode)) {
      return absl::InvalidArgumentError("not a file");
    }
    if (st.st_size < static_cast<off_t>(sizeof(Elf64_Ehdr))) {
      return absl::InvalidArgumentError("not a shared object: too short");
    }
    size_ = static_cast<uint64_t>(st.st_size);
    return absl::OkStatus();
  }

  // Returns the bytes of a range. Returns nullopt if the range is not within the file, is larger
  // than any section worth reading, or can't be read.
  std::optional<std::string> Bytes(uint64_t offset, uint64_t bytes) const {
    if (offset > size_ || bytes > size_ - offset || bytes > kMaxSection) return std::nullopt;
    std::string data(bytes, '\0');
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t n = pread(fd_, &data[done], bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      done += static_cast<uint64_t>(n);
    }
    return data;
  }

 private:
  static constexpr uint64_t kMaxSection = 64 << 20;

  int fd_ = -1;
  uint64_t size_ = 0;
};

// Returns element i of a section's bytes. REQUIRES: the section has an element i.
template <class T>
T Element(const std::string& bytes, uint64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Returns the NUL-terminated string at `offset` of a string section; nullopt when it has no end.
std::optional<absl::string_view> Text(const std::string& strings, uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const size_t end = strings.find('\0', offset);
  if (end == std::string::npos) return std::nullopt;
  return absl::string_view(strings).substr(offset, end - offset);
}

absl::Status Malformed() { return absl::InvalidArgumentError("not a shared object: malformed"); }

absl::Status ReadDynamic(const std::string& entries, const std::string& strings, ElfFacts* facts) {
  for (uint64_t i = 0; i < entries.size() / sizeof(Elf64_Dyn); ++i) {
    const auto entry = Element<Elf64_Dyn>(entries, i);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED) continue;
    const auto name = Text(strings, entry.d_un.d_val);
    if (!name) return Malformed();
    facts->needed.emplace_back(*name);
    facts->wants_asan |= absl::StartsWith(*name, "libasan.");
    facts->wants_tsan |= absl::StartsWith(*name, "libtsan.");
  }
  return absl::OkStatus();
}

absl::Status ReadSymbols(const std::string& symbols, const std::string& strings, ElfFacts* facts) {
  for (uint64_t i = 1; i < symbols.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = Element<Elf64_Sym>(symbols, i);
    const auto name = Text(strings, symbol.st_name);
    if (!name) return Malformed();
    const bool defined = symbol.st_shndx != SHN_UNDEF;
    facts->exports_query |= defined && *name == "trine_plugin_query";
    facts->wants_asan |= !defined && *name == "__asan_init";
    facts->wants_tsan |= !defined && *name == "__tsan_init";
  }
  return absl::OkStatus();
}

// Reads Trine's notes and skips other owners'. Stops at a note that is longer than the section.
void ReadNotes(const std::string& notes, ElfFacts* facts) {
  constexpr absl::string_view kOwner("Trine", 6);
  constexpr uint32_t kHardware = 1;
  const auto up = [](uint64_t n) { return (n + 3) / 4 * 4; };
  for (uint64_t at = 0; notes.size() - at >= sizeof(Elf64_Nhdr);) {
    const auto note = Element<Elf64_Nhdr>(notes.substr(at, sizeof(Elf64_Nhdr)), 0);
    const uint64_t name = at + sizeof(Elf64_Nhdr), text = name + up(note.n_namesz);
    const uint64_t end = text + up(note.n_descsz);
    if (end > notes.size()) return;
    if (note.n_type == kHardware &&
        absl::string_view(notes).substr(name, note.n_namesz) == kOwner) {
      const std::string all = notes.substr(text, note.n_descsz);
      if (const auto paths = Text(all, 0)) facts->hardware = std::string(*paths);
    }
    at = end;
  }
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
  File file;
  absl::Status status = file.Open(path);
  if (!status.ok()) return status;
  const auto header_bytes = file.Bytes(0, sizeof(Elf64_Ehdr));
  if (!header_bytes) return Malformed();
  const auto header = Element<Elf64_Ehdr>(*header_bytes, 0);
  status = CheckHeader(header);
  if (!status.ok()) return status;
  const auto sections = file.Bytes(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  if (!sections) return Malformed();

  ElfFacts facts;
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    const auto section = Element<Elf64_Shdr>(*sections, i);
    if (section.sh_type == SHT_NOTE) {
      const auto notes = file.Bytes(section.sh_offset, section.sh_size);
      if (!notes) return Malformed();
      ReadNotes(*notes, &facts);
    }
    if (section.sh_type != SHT_DYNAMIC && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= header.e_shnum) return Malformed();
    const auto linked = Element<Elf64_Shdr>(*sections, section.sh_link);
    const auto entries = file.Bytes(section.sh_offset, section.sh_size);
    const auto strings = file.Bytes(linked.sh_offset, linked.sh_size);
    if (!entries || !strings) return Malformed();
    status = section.sh_type == SHT_DYNAMIC ? ReadDynamic(*entries, *strings, &facts)
                                            : ReadSymbols(*entries, *strings, &facts);
    if (!status.ok()) return status;
  }
  return facts;
}

}  // namespace trine
