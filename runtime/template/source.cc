#include "runtime/template/source.h"

#include <algorithm>

#include "runtime/template/characters.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

constexpr size_t kShownBefore = 40;
constexpr size_t kShownAfter = 60;

// About a hundred bytes of the line around `column`, cut between characters.
std::string_view Excerpt(std::string_view line, size_t column) {
  const auto whole = [&](size_t at) {
    while (at > 0 && at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80)
      --at;
    return at;
  };
  const size_t begin = whole(column > kShownBefore ? column - kShownBefore : 0);
  const size_t end = whole(std::min(line.size(), column + kShownAfter));
  std::string_view shown = line.substr(begin, end - begin);
  shown.remove_prefix(LeadingSpace(shown));
  shown.remove_suffix(TrailingSpace(shown));
  return shown;
}

}  // namespace

absl::Status AtPlace(std::string_view source, size_t offset, const absl::Status& status) {
  offset = std::min(offset, source.size());
  const std::string_view before = source.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::string_view line = source.substr(begin, source.find('\n', begin) - begin);
  return absl::Status(
      status.code(),
      Words("chat template, line ", 1 + std::count(before.begin(), before.end(), '\n'), ", column ",
            1 + CountCharacters(source.substr(begin, offset - begin)), ": ", status.message(),
            ", in: ", Excerpt(line, offset - begin)));
}

}  // namespace trine::jinja
