// FileRoot is the only access to the files of a machine, which may be the running one, a capture or
// made up. Notes says what was wrong with them.
//
// A root of "" or "/" is the running machine. Any other folder is a fake root that holds its own
// proc/ and sys/. Links in a fake root are followed as if it were the real "/", so a capture never
// leads out of itself and the running machine is never read by mistake.
//
// Reads are bounded, and only regular files are opened (a named pipe would block for ever). The
// object is immutable: any number of threads may use one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::detect {

class FileRoot {
 public:
  // No value in /sys is larger than a page; the lists that detection reads stay well below this.
  static constexpr size_t kSmallFile = 64 * 1024;

  explicit FileRoot(std::string_view root);

  // Returns whether this is the running machine. Then CPUID and system calls describe it too.
  bool is_host() const { return is_host_; }

  // Returns whether the root is a folder.
  bool Exists() const;

  // Read the file at `path`, which is absolute within the root ("/proc/meminfo"). Return nullopt if
  // the file is missing, is not a regular file, can't be read, or holds more than `limit` bytes.
  std::optional<std::string> Read(std::string_view path, size_t limit = kSmallFile) const;
  std::optional<uint64_t> ReadU64(std::string_view path) const;
  std::optional<uint64_t> ReadHex(std::string_view path) const;

  // Returns the names in a folder, sorted. Returns none if the folder can't be listed.
  std::vector<std::string> List(std::string_view path) const;

  // Returns `path` with all links followed, still absolute within the root. Returns nullopt if a
  // component is missing or the links form a circle.
  std::optional<std::string> Resolve(std::string_view path) const;

  // Returns the last component of a link's target, even if the target does not exist. The `driver`
  // link of a device names its driver that way.
  std::optional<std::string> LinkName(std::string_view path) const;

 private:
  // Returns the path that the operating system knows the file by.
  std::string HostPath(std::string_view inside) const;

  std::string root_;  // Without a trailing slash; empty for the running machine.
  bool is_host_;
};

// Sentences for a person about everything that detection could not read or had to guess. Detection
// has no error path: every failure becomes a note and a default value. A Notes belongs to the one
// call that fills it; it is plain data and needs no lock.
using Notes = std::vector<std::string>;

// A broken /sys can be wrong in thousands of places; a person reads no more than a page of notes.
inline constexpr size_t kMaxNotes = 100;

inline void AddNote(Notes* notes, std::string note) {
  if (notes->size() < kMaxNotes) notes->push_back(std::move(note));
}

}  // namespace trine::detect
