#include "tools/server/http/connection.h"

#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace trine::server {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAgain{50};

}  // namespace

ConnectionTable::Place ConnectionTable::Enter(const std::string& address) {
  std::lock_guard lock(mutex_);
  if (closed_) return Place::kNone;
  const auto same = by_address_.find(address);
  const size_t from_there = same == by_address_.end() ? 0 : same->second;
  if (served_ < limits_.connections && from_there < limits_.connections_per_address) {
    ++served_;
    ++by_address_[address];
    return Place::kServed;
  }
  if (refused_ >= limits_.refused_connections) return Place::kNone;
  ++refused_;
  return Place::kRefused;
}

bool ConnectionTable::Add(std::shared_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  Connection* key = connection.get();
  connections_.emplace(key, std::move(connection));
  return true;
}

void ConnectionTable::Leave(Connection* connection, const std::string& address, Place place) {
  std::shared_ptr<Connection> released;
  std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(connection); found != connections_.end()) {
    released = std::move(found->second);
    connections_.erase(found);
  }
  if (place == Place::kRefused) --refused_;
  if (place != Place::kServed) return;
  --served_;
  if (const auto found = by_address_.find(address); --found->second == 0) by_address_.erase(found);
}

void ConnectionTable::Begin() {
  std::lock_guard lock(mutex_);
  ++busy_;
}

void ConnectionTable::End() {
  std::lock_guard lock(mutex_);
  if (--busy_ == 0) idle_.notify_all();
}

bool ConnectionTable::WaitUntilIdle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, limit, [this] { return busy_ == 0; });
}

std::vector<std::shared_ptr<Connection>> ConnectionTable::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  std::vector<std::shared_ptr<Connection>> inside;
  for (const auto& [key, connection] : connections_) inside.push_back(connection);
  return inside;
}

size_t ConnectionTable::served() const {
  std::lock_guard lock(mutex_);
  return served_;
}

Connection::Connection(Socket socket, std::string peer, std::string address, Place place,
                       ServerContext* server)
    : server_(server),
      limits_(server->options.limits),
      peer_(std::move(peer)),
      address_(std::move(address)),
      place_(place),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      reader_(limits_) {}

Connection::~Connection() = default;

void Connection::Start() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->phase_ == Phase::kClosed) return;
    self->SetUpSocket();
    if (self->place_ == Place::kRefused) {
      return self->Fail(503, "there are too many connections: try again later");
    }
    self->read_deadline_ = Clock::now() + self->limits_.header_time;
    self->Arm();
    self->Read();
  });
}

void Connection::SetUpSocket() {
  Error ignored;
  // The frames of a stream are small, and the client waits for each of them.
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  // A host that has vanished sends no FIN. The system notices by its own probes, or by data that is
  // never acknowledged.
  socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int64_t value) {
    const int number = static_cast<int>(std::clamp<int64_t>(value, 1, 1 << 30));
    setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &number, sizeof(number));
  };
  set(TCP_KEEPIDLE, 30);
  set(TCP_KEEPINTVL, 10);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, 2 * limits_.write_time.count());
}

void Connection::CloseWhenIdle() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    if (self->pipe_) self->pipe_->CloseAfter();
    if (self->phase_ == Phase::kReading && !self->busy_) self->Close();
  });
}

void Connection::CloseNow() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Close(); });
}

void Connection::SetBusy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  busy ? server_->table.Begin() : server_->table.End();
}

void Connection::ClientGone() {
  if (!pipe_ || pipe_->gone()) return;
  ++server_->counts.gone;
  pipe_->SetGone();
}

void Connection::Lost() {
  ClientGone();
  Close();
}

void Connection::Linger() {
  SetBusy(false);
  if (ended_) return Close();
  phase_ = Phase::kLingering;
  Error error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return Close();
  read_deadline_ = Clock::now() + limits_.linger_time;
  Arm();
  Read();
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  CountBody(0);
  if (pipe_) {
    pipe_->Detach();
    pipe_.reset();
  }
  Error ignored;
  socket_.close(ignored);
  read_deadline_ = write_deadline_ = Clock::time_point::max();
  timer_.cancel();
  SetBusy(false);
  server_->table.Leave(this, address_, place_);
}

void Connection::Arm() {
  const Clock::time_point next = std::min(read_deadline_, write_deadline_);
  // A timer that goes off too early looks again. That is cheaper than moving it with every write.
  if (next >= armed_ || phase_ == Phase::kClosed) return;
  armed_ = next;
  timer_.expires_at(next);
  timer_.async_wait([self = shared_from_this()](const Error& error) {
    if (!error && self->phase_ != Phase::kClosed) self->OnTimer();
  });
}

void Connection::OnTimer() {
  armed_ = Clock::time_point::max();
  const Clock::time_point now = Clock::now();
  if (now >= write_deadline_) {
    ++server_->counts.timeouts;
    return Lost();
  }
  if (now >= read_deadline_) {
    read_deadline_ = Clock::time_point::max();
    OnReadLate();
  }
  Arm();
}

void Connection::OnReadLate() {
  if (phase_ == Phase::kLingering) return Close();
  if (phase_ == Phase::kAnswering) {
    if (PeerHasClosed()) return OnEnd();
    read_deadline_ = Clock::now() + kLookAgain;
    return;
  }
  if (phase_ != Phase::kReading) return;
  // No request has begun, so no answer is expected.
  if (!busy_) return Close();
  ++server_->counts.timeouts;
  Fail(408, "the request did not come in time");
}

bool Connection::PeerHasClosed() {
  pollfd look = {.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) > 0 && look.revents != 0;
}

}  // namespace trine::server
