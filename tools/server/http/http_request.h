// A request as a handler sees it: whole, and decoded as far as any handler needs it.
#ifndef TRINE_TOOLS_SERVER_HTTP_HTTP_REQUEST_H_
#define TRINE_TOOLS_SERVER_HTTP_HTTP_REQUEST_H_

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
  std::string network = {};  // stands for all addresses that one host may have; not to be shown

  // The first header of that name, whatever its case.
  std::optional<std::string_view> Header(std::string_view name) const;
  // The first field of that name in the query; '+' is a space.
  std::optional<std::string> QueryValue(std::string_view name) const;
};

// None where a '%' is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// Takes a request line's target apart. False: it is none that a server is sent.
bool SetTarget(std::string_view target, HttpRequest* request);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_HTTP_REQUEST_H_
