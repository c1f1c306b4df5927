// `trine serve`: HTTP in front, a queue of jobs behind it, a model that is loaded meanwhile.
// Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_SERVER_H_
#define TRINE_TOOLS_SERVER_SERVICE_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/http/http_server.h"
#include "tools/server/service/access.h"
#include "tools/server/service/api.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reports.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/server_log.h"
#include "tools/server/service/session_api.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

// `progress` is told the fraction that is done; false: nobody wants it any more.
using ModelLoader = std::function<absl::StatusOr<std::unique_ptr<ServedModel>>(
    const std::function<bool(double)>& progress)>;

struct ServerOptions {
  HttpServerOptions http;
  AccessOptions access;
  JobQueueOptions queue;
  std::chrono::seconds request_time{600};
  SessionLimits sessions;
  bool serve_page = true;
  ModelLoader load;
};

class Server {
 public:
  // Listens when it returns; the model is loaded on a thread of its own. `log` outlives it.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, ServerLog* log);
  // Shutdown without patience.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return http_->port(); }
  std::string address() const { return http_->address(); }

  // OK as long as it is loaded or may still be; else why it can't be.
  absl::Status load_status() const;
  bool loaded() const { return Model() != nullptr; }
  std::shared_ptr<const ServedModel> Model() const;

  // Takes no more requests: whoever comes is told so (503), and /health says it, as long as those
  // that there are have; which is so long, then they are cancelled, and their clients told. `hurry`
  // says that even that is too long.
  void Shutdown(std::chrono::milliseconds patience, const std::function<bool()>& hurry = {});

 private:
  struct Route;

  Server(ServerOptions options, ServerLog* log);
  void Load();
  void Handle(std::shared_ptr<Exchange> exchange);
  std::optional<HttpRefusal> RefuseHead(const HttpRequest& head) const;
  bool ServePage(Reply* reply) const;
  const Route* FindRoute(const HttpRequest& request, std::string* allowed) const;

  // Handlers of routes.
  template <auto kMethod>
  static void OfApi(Server* server, Api::Call call);
  template <auto kMethod>
  static void OfSessions(Server* server, Api::Call call);
  template <auto kMethod>
  static void Own(Server* server, Api::Call call);
  void GetHealth(Reply* reply);
  void GetStatus(Reply* reply);
  void GetMetrics(Reply* reply);
  std::shared_ptr<const ServedModel> Source(ReportSource* source) const;

  const ServerOptions options_;
  const Access access_;
  ServerLog* const log_;
  Metrics metrics_;
  SessionShelf shelf_;
  JobDesk desk_;
  Api api_;
  SessionApi sessions_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<ServerState> state_ = ServerState::kLoading;
  std::atomic<double> load_progress_ = 0;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;
  std::shared_ptr<const ServedModel> model_;  // guarded by mutex_
  absl::Status load_status_;                  // guarded by mutex_

  std::thread loader_;
  std::unique_ptr<HttpServer> http_;
  std::atomic<HttpServer*> listening_ = nullptr;  // http_, once it is there
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_SERVER_H_
