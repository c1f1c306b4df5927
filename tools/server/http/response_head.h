// The first part of an answer: status line and headers.
#ifndef TRINE_TOOLS_SERVER_HTTP_RESPONSE_HEAD_H_
#define TRINE_TOOLS_SERVER_HTTP_RESPONSE_HEAD_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tools/server/http/http_request.h"

namespace trine::server {

struct ResponseHead {
  int status = 200;
  std::optional<size_t> content_length = {};  // none: chunked, or until the connection closes
  bool chunked = false;
  bool keep_alive = true;
};

// Whether an answer of that status has a body.
bool HasBody(int status);

// Whether headers ask for the connection's end after the answer.
bool AsksToClose(const HttpHeaders& headers);

// What says where the answer ends is written from `head`, whatever `headers` say about it. Nothing
// in a name or a value can begin another line.
std::string FormatHead(const ResponseHead& head, const HttpHeaders& headers);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_RESPONSE_HEAD_H_
