#include "detect/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>

namespace trine::detect {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f' || c == '\0';
}

std::optional<uint64_t> ParseInBase(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  // from_chars accepts no sign and no blanks for unsigned types, and reports overflow.
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t at = std::min(text.find(separator), text.size());
    if (at > 0) pieces.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return pieces;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    const size_t start = at;
    while (at < text.size() && !IsBlank(text[at])) ++at;
    if (at > start) words.push_back(text.substr(start, at - start));
  }
  return words;
}

std::optional<uint64_t> ParseU64(std::string_view text) { return ParseInBase(Trim(text), 10); }

std::optional<uint64_t> ParseHex(std::string_view text) {
  text = Trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return ParseInBase(text, 16);
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  text = Trim(text);
  int shift = 0;
  if (!text.empty()) {
    const char unit = text.back();
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    if (shift != 0) text.remove_suffix(1);
  }
  const auto number = ParseInBase(text, 10);
  if (!number || *number > (std::numeric_limits<uint64_t>::max() >> shift)) return std::nullopt;
  return *number << shift;
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  for (std::string_view piece : Split(Trim(text), ',')) {
    const size_t dash = piece.find('-');
    const auto first = ParseU64(piece.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseU64(piece.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMaxCpus) return std::nullopt;
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    // Overlapping ranges in a hostile file must not add up to more than kMaxCpus numbers.
    if (cpus.size() > static_cast<size_t>(kMaxCpus)) return std::nullopt;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<uint64_t> FindKibibytes(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto names = Words(line.substr(0, colon));
    if (names.empty() || names.back() != key) continue;
    const auto values = Words(line.substr(colon + 1));
    if (values.size() != 2 || values[1] != "kB") return std::nullopt;
    const auto kibibytes = ParseU64(values[0]);
    if (!kibibytes || *kibibytes > (std::numeric_limits<uint64_t>::max() >> 10)) {
      return std::nullopt;
    }
    return *kibibytes << 10;
  }
  return std::nullopt;
}

std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    const auto words = Words(line);
    if (words.size() == 2 && words[0] == key) return ParseU64(words[1]);
  }
  return std::nullopt;
}

std::string CleanText(std::string_view text, size_t max) {
  std::string clean(Trim(text).substr(0, max));
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  }
  return clean;
}

std::string FormatBytes(uint64_t bytes) {
  const bool gib = bytes >= (uint64_t{1} << 30);
  const double unit = gib ? 1024.0 * 1024.0 * 1024.0 : 1024.0 * 1024.0;
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f %s", static_cast<double>(bytes) / unit,
                gib ? "GiB" : "MiB");
  return text;
}

}  // namespace trine::detect
