// For tests: a client that is nothing but a socket, so that it can misbehave in any way.
#ifndef TRINE_TOOLS_SERVER_HTTP_RAW_CLIENT_H_
#define TRINE_TOOLS_SERVER_HTTP_RAW_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace trine::server {

struct RawAnswer {
  int status = 0;    // 0: none came
  std::string head;  // with its status line
  std::string body;  // of chunks: put together
  bool complete = false;
  // Of that name exactly; empty: none.
  std::string Header(std::string_view name) const;
};

class RawClient {
 public:
  // Not connected: connected() is false. `receive_bytes`: a small buffer for a slow reader.
  explicit RawClient(uint16_t port, const std::string& host = "127.0.0.1", int receive_bytes = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  // False: the server does not take them any more.
  bool Send(std::string_view bytes);
  // The next answer, of a request that was (or was not) a HEAD.
  RawAnswer Read(bool head = false);
  RawAnswer Ask(std::string_view request, bool head = false);
  // Waits for `bytes` more of whatever comes.
  std::string ReadSome(size_t bytes);
  // Whether the server closes within that time; what comes before is passed over.
  bool Closes(std::chrono::milliseconds within = std::chrono::seconds(20));
  void HalfClose();
  void Close();
  void Reset();  // with RST

 private:
  bool Fill();  // false: no more, or not in time
  int fd_ = -1;
  std::string in_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_RAW_CLIENT_H_
