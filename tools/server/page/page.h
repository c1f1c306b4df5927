#ifndef TRINE_TOOLS_SERVER_PAGE_PAGE_H_
#define TRINE_TOOLS_SERVER_PAGE_PAGE_H_

#include <span>
#include <string_view>

namespace trine::server {

// One file of the page, embedded when the project is built. All of it lives as long as the process.
struct PageFile {
  std::string_view path;  // of the request: "/" and "/page/..."
  std::string_view content_type;
  std::string_view content;
  std::string_view etag;  // as the header has it, in quotes; changes with the content
};

// All files, "/" first. None of them holds a secret, and none needs an API key: the page asks for
// one.
std::span<const PageFile> PageFiles();

// The file at `path`, which has no query; null where there is none.
const PageFile* FindPageFile(std::string_view path);

// Content-Security-Policy for every one of them: nothing is loaded from elsewhere, no script and no
// style but the files, and no other site may frame the page.
inline constexpr std::string_view kPageSecurityPolicy =
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors "
    "'none'";

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_PAGE_PAGE_H_
