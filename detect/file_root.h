// FileRoot: the only door to the files of a machine, which may be a captured or made-up one.
//
// A root of "" or "/" is the running machine. Any other folder is a fake root that holds its own
// proc/ and sys/; links in it are followed as if it were the real "/", so a capture never leads out
// of itself and the running machine is never read by mistake.
//
// Reads are bounded, and only regular files are opened (a named pipe would block for ever). The
// object is immutable: any number of threads may use one.

#ifndef TRINE_DETECT_FILE_ROOT_H_
#define TRINE_DETECT_FILE_ROOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trine::detect {

class FileRoot {
 public:
  // No single value in /sys is larger than a page; the lists we read stay well below this.
  static constexpr size_t kSmallFile = 64 * 1024;

  explicit FileRoot(std::string_view root);

  // True when this is the running machine, so that CPUID and system calls speak of the same one.
  bool is_host() const { return is_host_; }

  // True when the root is a folder.
  bool Exists() const;

  // Paths are absolute within the root ("/proc/meminfo"). No value when the file is missing, is not
  // a regular file, cannot be read, or holds more than `limit` bytes.
  std::optional<std::string> Read(std::string_view path, size_t limit = kSmallFile) const;
  std::optional<uint64_t> ReadU64(std::string_view path) const;
  std::optional<uint64_t> ReadHex(std::string_view path) const;

  // Names in a folder, sorted; empty when it cannot be listed.
  std::vector<std::string> List(std::string_view path) const;

  // The path with all links followed, still absolute within the root. No value when something on
  // the way is missing or the links go round in circles.
  std::optional<std::string> Resolve(std::string_view path) const;

  // Last component of what a link points to, whether that exists or not: the `driver` link of a
  // device names the driver that way.
  std::optional<std::string> LinkName(std::string_view path) const;

 private:
  // A path for the operating system.
  std::string HostPath(std::string_view inside) const;

  std::string root_;  // Without a trailing slash; empty for the running machine.
  bool is_host_;
};

}  // namespace trine::detect

#endif  // TRINE_DETECT_FILE_ROOT_H_
