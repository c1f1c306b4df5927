// A request as handlers see it: whole, and decoded as far as any handler needs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::server {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};  // as sent: any token
  std::string path = {};    // percent-decoded, without control characters; "*" for OPTIONS *
  std::string query = {};   // as sent, without the '?'
  HttpHeaders headers = {};
  std::string body = {};
  std::string peer = {};     // the client's address, without its port
  std::string network = {};  // equal for all addresses that a host may have; never shown to anyone

  // Returns the first header with this name. Ignores upper and lower case.
  std::optional<std::string_view> Header(std::string_view name) const;
  // Returns the first field with this name in the query, decoded; '+' is a space.
  std::optional<std::string> QueryValue(std::string_view name) const;
};

// Decodes %NN. Returns nullopt if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// Sets path and query from the target in a request line. Returns false if the target is not one
// that a server accepts.
bool SetTarget(std::string_view target, HttpRequest* request);

}  // namespace trine::server
