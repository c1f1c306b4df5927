// A client for tests. It is a bare socket, so it can misbehave in any way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace trine::server {

struct RawAnswer {
  int status = 0;    // 0: no answer came
  std::string head;  // status line and headers
  std::string body;  // chunks are joined
  bool complete = false;
  // Returns the header with exactly this name, or "" if there is none.
  std::string Header(std::string_view name) const;
};

class RawClient {
 public:
  // Connects. If that fails, connected() is false. `receive_bytes` is the size of the receive
  // buffer, small for a slow reader; 0: the system's default.
  explicit RawClient(uint16_t port, const std::string& host = "127.0.0.1", int receive_bytes = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  // Returns false if the server takes no more bytes.
  bool Send(std::string_view bytes);
  // Reads the next answer. `head` is true if the request was a HEAD.
  RawAnswer Read(bool head = false);
  RawAnswer Ask(std::string_view request, bool head = false);
  // Waits for `bytes` more bytes and returns them.
  std::string ReadSome(size_t bytes);
  // Returns whether the server closes the connection within that time. Drops bytes that come.
  bool Closes(std::chrono::milliseconds within = std::chrono::seconds(20));
  void HalfClose();
  void Close();
  void Reset();  // closes with RST

 private:
  bool Fill();  // returns false if the connection is closed or nothing comes in time
  int fd_ = -1;
  std::string in_;
};

}  // namespace trine::server
