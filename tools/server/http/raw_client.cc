#include "tools/server/http/raw_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace trine::server {
namespace {

constexpr int kPatienceMs = 20'000;

}  // namespace

std::string RawAnswer::Header(std::string_view name) const {
  const std::string key = "\r\n" + std::string(name) + ": ";
  const size_t at = head.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size();
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

RawClient::RawClient(uint16_t port, const std::string& host, int receive_bytes) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  if (fd_ >= 0 && connect(fd_, found->ai_addr, found->ai_addrlen) != 0) Close();
  freeaddrinfo(found);
}

RawClient::~RawClient() { Close(); }

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawClient::Fill() {
  pollfd wait = {.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&wait, 1, kPatienceMs) <= 0) return false;
  char area[16 << 10];
  const ssize_t came = recv(fd_, area, sizeof(area), 0);
  if (came <= 0) return false;
  in_.append(area, static_cast<size_t>(came));
  return true;
}

RawAnswer RawClient::Read(bool head) {
  RawAnswer answer;
  while (in_.find("\r\n\r\n") == std::string::npos) {
    if (!Fill()) return answer;
  }
  answer.head = in_.substr(0, in_.find("\r\n\r\n") + 2);
  in_.erase(0, answer.head.size() + 2);
  answer.status = std::atoi(answer.head.c_str() + 9);
  answer.complete = true;
  if (head || answer.status < 200 || answer.status == 204) return answer;
  if (const std::string length = answer.Header("Content-Length"); !length.empty()) {
    answer.body = ReadSome(std::strtoull(length.c_str(), nullptr, 10));
    answer.complete = answer.body.size() == std::strtoull(length.c_str(), nullptr, 10);
    return answer;
  }
  if (answer.Header("Transfer-Encoding") != "chunked") {
    while (Fill()) {
    }
    answer.body.swap(in_);
    return answer;
  }
  for (size_t size = 1; size != 0;) {
    while (in_.find("\r\n") == std::string::npos) {
      if (!Fill()) return answer.complete = false, answer;
    }
    size = std::strtoull(in_.c_str(), nullptr, 16);
    in_.erase(0, in_.find("\r\n") + 2);
    const std::string chunk = ReadSome(size + 2);
    if (chunk.size() != size + 2 || !chunk.ends_with("\r\n")) {
      return answer.complete = false, answer;
    }
    answer.body += chunk.substr(0, size);
  }
  return answer;
}

RawAnswer RawClient::Ask(std::string_view request, bool head) {
  Send(request);
  return Read(head);
}

std::string RawClient::ReadSome(size_t bytes) {
  while (in_.size() < bytes && Fill()) {
  }
  const std::string got = in_.substr(0, bytes);
  in_.erase(0, got.size());
  return got;
}

bool RawClient::Closes(std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd wait = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0) return false;
    char area[16 << 10];
    if (recv(fd_, area, sizeof(area), 0) <= 0) return true;
  }
}

void RawClient::HalfClose() { shutdown(fd_, SHUT_WR); }

void RawClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void RawClient::Reset() {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

}  // namespace trine::server
