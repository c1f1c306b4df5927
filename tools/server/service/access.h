// Decides who may use the server: checks API keys and the sites whose pages send requests.
// Immutable once made, so any thread may call it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/http/http_request.h"

namespace trine::server {

struct AccessOptions {
  std::vector<std::string> keys = {};          // empty: no key is needed
  std::vector<std::string> cors_origins = {};  // sites whose pages may send requests; "*": all
  bool loopback = true;                        // true: only this machine can reach the server
};

// Reads a file with one key on each line. Skips empty lines and lines that begin with #. Returns
// INVALID_ARGUMENT for a file without a key.
absl::StatusOr<std::vector<std::string>> ReadKeyFile(const std::string& path);

// Returns whether a host's name or address, without a port, always means this machine.
bool IsLoopbackHost(std::string_view host);

class Access {
 public:
  explicit Access(AccessOptions options);

  // Returns PERMISSION_DENIED for a request from a page of another site, unless `cors_origins`
  // names the site: such a page must not send requests in the name of its visitors. If there are no
  // keys and only this machine is served, also refuses requests that call the server by another
  // host name (DNS rebinding).
  absl::Status CheckOrigin(const HttpRequest& request) const;
  // Returns UNAUTHENTICATED for a request without a known key in "Authorization: Bearer KEY" or
  // "X-Api-Key: KEY". The time that this takes depends on the lengths of the keys, but not on their
  // contents.
  absl::Status CheckKey(const HttpRequest& request) const;

  // Returns the client that a request belongs to: its key or, without keys, its network address.
  // Must not be shown to anyone.
  std::string ClientOf(const HttpRequest& request) const;
  // Returns the space of a request. Requests with the same key share a space, and so may share
  // blocks of the KV cache.
  std::string SpaceOf(const HttpRequest& request) const;

  // Returns the CORS headers of an answer: none, unless `cors_origins` names the request's origin.
  HttpHeaders CorsHeaders(const HttpRequest& request) const;

 private:
  int FindKey(const HttpRequest& request) const;  // -1: no known key
  bool IsNamed(std::string_view origin) const;

  const AccessOptions options_;
};

}  // namespace trine::server
