#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace trine::server {

// One file of the page, embedded when the project is built. Its data lives as long as the process.
struct PageFile {
  std::string_view path;  // the request's path: "/" or "/page/..."
  std::string_view content_type;
  std::string_view content;
  std::string_view etag;  // as in the header, with quotes; changes with the content
};

// Returns all files, "/" first. They contain no secrets and need no API key: the page asks its user
// for the key.
std::span<const PageFile> PageFiles();

// Returns the file at `path`, which must have no query, or null if there is no such file.
inline const PageFile* FindPageFile(std::string_view path) {
  const std::span<const PageFile> files = PageFiles();
  const auto found = std::ranges::find(files, path, &PageFile::path);
  return found == files.end() ? nullptr : &*found;
}

// The Content-Security-Policy of all files: the page loads nothing from other sites and uses only
// the scripts and styles in its files, and no other site may frame it.
inline constexpr std::string_view kPageSecurityPolicy =
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors "
    "'none'";

}  // namespace trine::server
