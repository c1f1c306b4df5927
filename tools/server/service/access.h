// Who may ask: API keys, and which pages of which sites. Immutable once made; any thread.
#ifndef TRINE_TOOLS_SERVER_SERVICE_ACCESS_H_
#define TRINE_TOOLS_SERVER_SERVICE_ACCESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/http/http_request.h"

namespace trine::server {

struct AccessOptions {
  std::vector<std::string> keys = {};          // none: everybody may
  std::vector<std::string> cors_origins = {};  // sites whose pages may; "*": all
  bool loopback = true;                        // nobody but this machine reaches the server
};

// One key a line; empty lines and those that begin with # are passed over. INVALID_ARGUMENT for a
// file without any.
absl::StatusOr<std::vector<std::string>> ReadKeyFile(const std::string& path);

// Whether a host's name or address, without a port, is this machine's own and nobody else's.
bool IsLoopbackHost(std::string_view host);

class Access {
 public:
  explicit Access(AccessOptions options);

  // A browser must not let pages of other sites ask in its user's name: refused are requests from a
  // page of another site, unless it was named, and, where there are no keys and only this machine
  // is served, such as name the server by another machine's name (DNS rebinding).
  // PERMISSION_DENIED.
  absl::Status CheckOrigin(const HttpRequest& request) const;
  // UNAUTHENTICATED without a key that is known: "Authorization: Bearer KEY", or "X-Api-Key: KEY".
  // The time it takes depends on the lengths of keys, not on what is in them.
  absl::Status CheckKey(const HttpRequest& request) const;

  // Whom a request counts for: its key, or else its address. Not to be shown.
  std::string ClientOf(const HttpRequest& request) const;
  // Sets of requests that may share what they have read: those of one key.
  std::string SpaceOf(const HttpRequest& request) const;

  // The headers an answer has for pages of other sites: none, unless they were asked for.
  HttpHeaders CorsHeaders(const HttpRequest& request) const;
  bool serves_other_sites() const { return !options_.cors_origins.empty(); }

 private:
  int FindKey(const HttpRequest& request) const;  // -1: none
  bool IsNamed(std::string_view origin) const;

  const AccessOptions options_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_ACCESS_H_
