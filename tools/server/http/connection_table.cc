#include "tools/server/http/connection_table.h"

#include <utility>

namespace trine::server {

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

}  // namespace trine::server
