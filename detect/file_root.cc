#include "detect/file_root.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "detect/text.h"

namespace trine::detect {
namespace {

namespace fs = std::filesystem;

// The kernel's own limit on links in one path.
constexpr int kMaxLinks = 40;
// The most entries that List returns. No real folder comes near this; a made-up one may.
constexpr size_t kMaxEntries = 65536;

// Pushes the components of `path` so that the first one is popped first.
void PushComponents(std::string_view path, std::vector<std::string>* stack) {
  const auto parts = Split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) stack->emplace_back(*part);
}

}  // namespace

FileRoot::FileRoot(std::string_view root) {
  while (!root.empty() && root.back() == '/') root.remove_suffix(1);
  root_ = std::string(root);
  is_host_ = root_.empty();
}

bool FileRoot::Exists() const {
  std::error_code error;
  return fs::is_directory(is_host_ ? fs::path("/") : fs::path(root_), error);
}

std::string FileRoot::HostPath(std::string_view inside) const {
  return root_ + std::string(inside);
}

std::optional<std::string> FileRoot::Resolve(std::string_view path) const {
  std::vector<std::string> pending;
  PushComponents(path, &pending);
  std::string done;  // The path resolved so far; "" for the root itself.
  int links = 0;
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      // The parent of the root is the root, as in the kernel.
      done.erase(done.empty() ? 0 : done.rfind('/'));
      continue;
    }
    const std::string next = done + "/" + name;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(HostPath(next), error);
    if (error || !fs::exists(status)) return std::nullopt;
    if (!fs::is_symlink(status)) {
      done = next;
      continue;
    }
    if (++links > kMaxLinks) return std::nullopt;
    const std::string target = fs::read_symlink(HostPath(next), error).generic_string();
    if (error) return std::nullopt;
    if (target.starts_with('/')) done.clear();
    PushComponents(target, &pending);
  }
  return done.empty() ? "/" : done;
}

std::optional<std::string> FileRoot::Read(std::string_view path, size_t limit) const {
  // The kernel follows the links of the running machine; those of a fake root must stay inside it.
  const std::optional<std::string> inside =
      is_host_ ? std::optional<std::string>(path) : Resolve(path);
  if (!inside) return std::nullopt;
  const std::string host_path = HostPath(*inside);
  std::error_code error;
  if (!fs::is_regular_file(host_path, error) || error) return std::nullopt;
  std::ifstream file(host_path, std::ios::binary);
  if (!file) return std::nullopt;

  // Files of /proc and /sys report a wrong size, so they are read to their end.
  std::string text;
  char block[4096];
  while (text.size() <= limit) {
    file.read(block, sizeof(block));
    text.append(block, static_cast<size_t>(file.gcount()));
    if (file.bad()) return std::nullopt;
    if (!file) break;
  }
  if (text.size() > limit) return std::nullopt;
  return text;
}

std::optional<uint64_t> FileRoot::ReadU64(std::string_view path) const {
  const auto text = Read(path);
  return text ? ParseU64(*text) : std::nullopt;
}

std::optional<uint64_t> FileRoot::ReadHex(std::string_view path) const {
  const auto text = Read(path);
  return text ? ParseHex(*text) : std::nullopt;
}

std::vector<std::string> FileRoot::List(std::string_view path) const {
  std::vector<std::string> names;
  const auto inside = Resolve(path);
  if (!inside) return names;
  std::error_code error;
  fs::directory_iterator entry(HostPath(*inside), error);
  while (!error && entry != fs::directory_iterator() && names.size() < kMaxEntries) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> FileRoot::LinkName(std::string_view path) const {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto folder = Resolve(path.substr(0, slash));
  if (!folder) return std::nullopt;
  std::error_code error;
  const fs::path target =
      fs::read_symlink(HostPath(*folder + std::string(path.substr(slash))), error);
  if (error || target.filename().empty()) return std::nullopt;
  return target.filename().string();
}

}  // namespace trine::detect
