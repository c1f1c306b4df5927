#include "tools/server/service/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"

namespace trine::server {
namespace {

// Compares in a time that does not depend on the contents: it looks at every byte of `given`.
bool SameBytes(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto expected = static_cast<unsigned char>(key.empty() ? 0 : key[i % key.size()]);
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^ expected);
  }
  return difference == 0;
}

std::optional<std::string_view> GivenKey(const HttpRequest& request) {
  if (const auto value = request.Header("Authorization")) {
    constexpr absl::string_view kBearer = "bearer ";
    if (value->size() > kBearer.size() &&
        absl::EqualsIgnoreCase(AbslView(value->substr(0, kBearer.size())), kBearer)) {
      return value->substr(kBearer.size());
    }
  }
  return request.Header("X-Api-Key");
}

// Returns "host:port" without the port.
std::string_view HostOnly(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == std::string_view::npos) return host;
  if (bracket != std::string_view::npos && colon < bracket) return host;
  return host.substr(0, colon);
}

}  // namespace

bool IsLoopbackHost(std::string_view host) {
  std::string name = absl::AsciiStrToLower(AbslView(host));
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  // A name that only begins like an address, as in "127.0.0.1.example.com", may be any machine's.
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (inet_pton(AF_INET6, name.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return name == "localhost" || absl::EndsWith(name, ".localhost");
}

absl::StatusOr<std::vector<std::string>> ReadKeyFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, " can't be read"));
  std::vector<std::string> keys;
  std::string line;
  while (std::getline(in, line)) {
    const std::string key(absl::StripAsciiWhitespace(line));
    if (!key.empty() && key[0] != '#') keys.push_back(key);
  }
  if (in.bad()) return absl::DataLossError(absl::StrCat(path, " can't be read to its end"));
  if (keys.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no key: one a line is expected"));
  }
  return keys;
}

Access::Access(AccessOptions options) : options_(std::move(options)) {}

bool Access::IsNamed(std::string_view origin) const {
  return std::any_of(options_.cors_origins.begin(), options_.cors_origins.end(),
                     [&](const std::string& o) { return o == "*" || o == origin; });
}

absl::Status Access::CheckOrigin(const HttpRequest& request) const {
  const auto host = request.Header("Host");
  if (options_.loopback && options_.keys.empty() && host && !IsLoopbackHost(HostOnly(*host))) {
    return absl::PermissionDeniedError(
        absl::StrCat("the server is asked for as ", AbslView(*host),
                     ", but serves this machine alone: use localhost, or start it with --api-key"));
  }
  const auto origin = request.Header("Origin");
  if (!origin || IsNamed(*origin)) return absl::OkStatus();
  const size_t scheme = origin->find("://");
  const std::string_view site =
      scheme == std::string_view::npos ? *origin : origin->substr(scheme + 3);
  if (host && site == *host) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "pages of ", AbslView(*origin), " may not ask: --cors ", AbslView(*origin), " lets them"));
}

int Access::FindKey(const HttpRequest& request) const {
  const auto given = GivenKey(request);
  if (!given) return -1;
  int found = -1;
  for (size_t i = 0; i < options_.keys.size(); ++i) {
    if (SameBytes(*given, options_.keys[i])) found = static_cast<int>(i);
  }
  return found;
}

absl::Status Access::CheckKey(const HttpRequest& request) const {
  if (options_.keys.empty() || FindKey(request) >= 0) return absl::OkStatus();
  return absl::UnauthenticatedError(GivenKey(request)
                                        ? "the API key is not known"
                                        : "an API key is needed: Authorization: Bearer KEY");
}

std::string Access::ClientOf(const HttpRequest& request) const {
  const int key = FindKey(request);
  return key >= 0 ? absl::StrCat("key ", key) : request.network;
}

std::string Access::SpaceOf(const HttpRequest& request) const {
  return absl::StrCat("key ", FindKey(request));
}

HttpHeaders Access::CorsHeaders(const HttpRequest& request) const {
  const auto origin = request.Header("Origin");
  if (!origin || !IsNamed(*origin)) return {};
  return {{"Access-Control-Allow-Origin", std::string(*origin)},
          {"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
          {"Access-Control-Allow-Headers",
           std::string(request.Header("Access-Control-Request-Headers")
                           .value_or("Authorization, Content-Type, X-Api-Key"))},
          {"Access-Control-Expose-Headers", "Retry-After, X-Request-Id"},
          {"Access-Control-Max-Age", "600"},
          {"Vary", "Origin"}};
}

}  // namespace trine::server
