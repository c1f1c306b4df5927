#include "tools/server/http/http_request.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "runtime/base/absl_view.h"

namespace trine::server {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (text.size() - i < 3) return std::nullopt;
      const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

std::optional<std::string_view> HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, AbslView(name))) return value;
  }
  return std::nullopt;
}

std::optional<std::string> HttpRequest::QueryValue(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (PercentDecode(field.substr(0, equals), true) != name) continue;
    if (equals == std::string_view::npos) return "";
    if (auto value = PercentDecode(field.substr(equals + 1), true)) return value;
  }
  return std::nullopt;
}

bool SetTarget(std::string_view target, HttpRequest* request) {
  // Proxies are sent absolute targets, and every server must understand them.
  if (const size_t scheme = target.find("://");
      scheme != std::string_view::npos && !target.starts_with('/')) {
    target.remove_prefix(scheme + 3);
    target.remove_prefix(std::min(target.size(), target.find_first_of("/?")));
    if (target.empty()) target = "/";
  }
  const size_t question = target.find('?');
  request->query = question == std::string_view::npos ? "" : target.substr(question + 1);
  auto path = PercentDecode(target.substr(0, question), false);
  if (!path || std::any_of(path->begin(), path->end(), IsControl)) return false;
  if (path->empty()) path = "/";
  if (!path->starts_with('/') && *path != "*") return false;
  request->path = *std::move(path);
  return true;
}

}  // namespace trine::server
