#include "tools/server/http/response_head.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

std::string Reason(int status) {
  if (status == 499) return "Client Closed Request";
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  // Not strftime's names, which are the locale's.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto two = [](int n) { return absl::Dec(n, absl::kZeroPad2); };
  return absl::StrCat(kDays[parts.tm_wday], ", ", two(parts.tm_mday), " ", kMonths[parts.tm_mon],
                      " ", parts.tm_year + 1900, " ", two(parts.tm_hour), ":", two(parts.tm_min),
                      ":", two(parts.tm_sec), " GMT");
}

bool IsOurs(const std::string& name) {
  for (const char* ours : {"Connection", "Content-Length", "Date", "Transfer-Encoding"}) {
    if (absl::EqualsIgnoreCase(name, ours)) return true;
  }
  return false;
}

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return c > 0x20 && c < 0x7f && c != ':'; });
}

std::string OneLine(std::string value) {
  for (char& c : value) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
  }
  return value;
}

}  // namespace

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

bool AsksToClose(const HttpHeaders& headers) {
  return std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, "Connection") &&
           absl::EqualsIgnoreCase(header.second, "close");
  });
}

std::string FormatHead(const ResponseHead& head, const HttpHeaders& headers) {
  std::string text = absl::StrCat("HTTP/1.1 ", head.status, " ", Reason(head.status),
                                  "\r\nDate: ", Date(), "\r\n");
  for (const auto& [name, value] : headers) {
    if (IsOurs(name) || !IsName(name)) continue;
    absl::StrAppend(&text, name, ": ", OneLine(value), "\r\n");
  }
  if (head.chunked) {
    absl::StrAppend(&text, "Transfer-Encoding: chunked\r\n");
  } else if (head.content_length && HasBody(head.status)) {
    absl::StrAppend(&text, "Content-Length: ", *head.content_length, "\r\n");
  }
  absl::StrAppend(&text, "Connection: ", head.keep_alive ? "keep-alive" : "close", "\r\n\r\n");
  return text;
}

}  // namespace trine::server
