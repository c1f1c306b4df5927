#include "tools/server/service/server.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/page/page.h"
#include "tools/server/service/reply.h"

namespace trine::server {
namespace {

// The most bytes of a body that a connection thread can parse without holding up others.
constexpr size_t kSmallBody = size_t{32} << 10;

// Returns whether a request's path matches a route's, in which {..} stands for anything between two
// slashes.
bool Matches(std::string_view route, std::string_view path) {
  if (route == kModelPath) return path.starts_with(route);
  while (!route.empty()) {
    const size_t plain = std::min(route.find('{'), route.size());
    if (path.substr(0, plain) != route.substr(0, plain)) return false;
    route.remove_prefix(plain);
    path.remove_prefix(plain);
    if (route.empty()) break;
    const size_t part = std::min(path.find('/'), path.size());
    if (part == 0) return false;
    route.remove_prefix(route.find('}') + 1);
    path.remove_prefix(part);
  }
  return path.empty();
}

// With several keys, no key may take all sessions from the others.
SessionLimits LimitsOf(const ServerOptions& options) {
  SessionLimits limits = options.sessions;
  if (limits.per_owner == 0 && options.access.keys.size() > 1) {
    limits.per_owner = std::max<size_t>(limits.sessions / 2, 1);
  }
  return limits;
}

}  // namespace

struct Server::Route {
  const char* method;
  std::string_view path;
  void (*handler)(Server*, Api::Call);
  bool needs_key;
  bool needs_model;
  bool takes_long = false;  // with a small body, too
};

template <auto kMethod>
void Server::OfApi(Server* server, Api::Call call) {
  (server->api_.*kMethod)(std::move(call));
}

template <auto kMethod>
void Server::OfSessions(Server* server, Api::Call call) {
  if (server->shelf_.limits().sessions == 0) return call.reply->Error(SwitchedOff("--sessions 0"));
  OfApi<kMethod>(server, std::move(call));
}

template <auto kMethod>
void Server::Own(Server* server, Api::Call call) {
  (server->*kMethod)(call.reply.get());
}

Server::Server(ServerOptions options, ServerLog* log)
    : options_(std::move(options)),
      access_(options_.access),
      log_(log),
      shelf_(LimitsOf(options_)),
      desk_(options_.queue, options_.request_time, [this] { Tick(); }),
      api_(&access_, &desk_, &metrics_, &shelf_, options_.request_time) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, ServerLog* log) {
  HttpServerOptions http = options.http;
  http.error_body = [](int status, std::string_view message) {
    return ErrorBody(HttpError(status, message));
  };
  http.error_headers = CommonHeaders;
  std::unique_ptr<Server> server(new Server(std::move(options), log));
  // Checks the key before the body is read, so that a client without a key can't send one.
  http.refuse = [s = server.get()](const HttpRequest& head) { return s->RefuseHead(head); };
  auto listening = HttpServer::Start(
      std::move(http),
      [s = server.get()](std::shared_ptr<Exchange> exchange) { s->Handle(std::move(exchange)); });
  if (!listening.ok()) return listening.status();
  server->http_ = *std::move(listening);
  server->listening_ = server->http_.get();
  server->loader_ = std::thread([s = server.get()] { s->Load(); });
  pthread_setname_np(server->loader_.native_handle(), "trine-load");
  return server;
}

Server::~Server() { Shutdown(std::chrono::milliseconds(0)); }

void Server::Load() {
  absl::StatusOr<std::unique_ptr<ServedModel>> model = absl::InternalError("not loaded");
  try {
    model = options_.load([this](double fraction) {
      load_progress_ = fraction;
      return !stopping_;
    });
  } catch (const std::exception& e) {
    model = absl::ResourceExhaustedError(absl::StrCat("the model can't be loaded: ", e.what()));
  }
  std::lock_guard lock(mutex_);
  load_status_ = model.status();
  if (!model.ok()) return;
  model_ = *std::move(model);
  load_progress_ = 1;
  ServerState loading = ServerState::kLoading;
  state_.compare_exchange_strong(loading, ServerState::kServing);
}

absl::Status Server::load_status() const {
  std::lock_guard lock(mutex_);
  return load_status_;
}

std::shared_ptr<const ServedModel> Server::Model() const {
  std::lock_guard lock(mutex_);
  return model_;
}

void Server::Shutdown(std::chrono::milliseconds patience, const std::function<bool()>& hurry) {
  if (state_.exchange(ServerState::kStopping) == ServerState::kStopping && http_ == nullptr) return;
  stopping_ = true;
  const auto until = std::chrono::steady_clock::now() + patience;
  // New requests are still answered during this wait, because balancers and people ask this port.
  desk_.Finish(until, hurry);
  if (http_ != nullptr) http_->StopAccepting();
  // Gives cancelled requests time to tell their clients, unless a client does not read.
  constexpr std::chrono::milliseconds kLastWords(500);
  if (desk_.Cancel(kLastWords) && http_ != nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    http_->Drain(hurry && hurry() ? kLastWords : std::max(left, kLastWords));
  }
  if (http_ != nullptr) http_->Stop();
  desk_.Stop();
  shelf_.CloseAll();
  if (loader_.joinable()) loader_.join();
  listening_ = nullptr;
  http_.reset();
}

const Server::Route* Server::FindRoute(const HttpRequest& request, std::string* allowed) const {
  static constexpr Route kRoutes[] = {
      {"GET", "/health", Own<&Server::GetHealth>, false, false},
      {"GET", "/v1/health", Own<&Server::GetHealth>, false, false},
      {"GET", "/v1/status", Own<&Server::GetStatus>, true, false},
      {"GET", "/metrics", Own<&Server::GetMetrics>, true, false},
      {"GET", "/v1/models", OfApi<&Api::GetModels>, true, true},
      {"GET", "/models", OfApi<&Api::GetModels>, true, true},
      {"GET", kModelPath, OfApi<&Api::GetModel>, true, true},
      {"POST", "/v1/chat/completions", OfApi<&Api::PostChat>, true, true},
      {"POST", "/chat/completions", OfApi<&Api::PostChat>, true, true},
      {"POST", "/v1/completions", OfApi<&Api::PostCompletion>, true, true},
      {"POST", "/completions", OfApi<&Api::PostCompletion>, true, true},
      {"POST", "/v1/responses", OfApi<&Api::PostResponses>, true, true},
      {"POST", "/responses", OfApi<&Api::PostResponses>, true, true},
      {"POST", "/v1/embeddings", OfApi<&Api::PostEmbeddings>, true, true},
      {"POST", "/embeddings", OfApi<&Api::PostEmbeddings>, true, true},
      {"POST", "/tokenize", OfApi<&Api::PostTokenize>, true, true},
      {"POST", "/detokenize", OfApi<&Api::PostDetokenize>, true, true},
      {"GET", "/v1/trace", OfApi<&Api::GetTrace>, true, true, true},
      {"GET", "/v1/plan", OfApi<&Api::GetPlan>, true, true, true},
      {"GET", "/v1/sessions", OfSessions<&Api::ListSessions>, true, true},
      {"POST", "/v1/sessions", OfSessions<&Api::PostSession>, true, true},
      {"GET", "/v1/sessions/{id}", OfSessions<&Api::GetSession>, true, true, true},
      {"DELETE", "/v1/sessions/{id}", OfSessions<&Api::DeleteSession>, true, true, true},
      {"POST", "/v1/sessions/{id}/append", OfSessions<&Api::PostAppend>, true, true},
      {"POST", "/v1/sessions/{id}/generate", OfSessions<&Api::PostGenerate>, true, true},
      {"POST", "/v1/sessions/{id}/checkpoint", OfSessions<&Api::PostCheckpoint>, true, true, true},
      {"POST", "/v1/sessions/{id}/regress", OfSessions<&Api::PostRegress>, true, true, true},
      {"DELETE", "/v1/sessions/{id}/checkpoints/{t}", OfSessions<&Api::DeleteCheckpoint>, true,
       true, true},
      {"POST", "/v1/sessions/{id}/fork", OfSessions<&Api::PostFork>, true, true, true},
  };
  const bool head = request.method == "HEAD";
  for (const Route& route : kRoutes) {
    if (!Matches(route.path, request.path)) continue;
    if (request.method == route.method || (head && std::string_view(route.method) == "GET")) {
      return &route;
    }
    absl::StrAppend(allowed, allowed->empty() ? "" : ", ", route.method);
  }
  return nullptr;
}

std::optional<HttpRefusal> Server::RefuseHead(const HttpRequest& head) const {
  absl::Status status = access_.CheckOrigin(head);
  std::string allowed;
  const Route* const route = FindRoute(head, &allowed);
  if (status.ok() && (route == nullptr || route->needs_key)) status = access_.CheckKey(head);
  if (status.ok() && route == nullptr && allowed.empty()) {
    status = absl::NotFoundError(absl::StrCat("there is no ", head.path));
  }
  if (status.ok()) return std::nullopt;
  return HttpRefusal{HttpStatusOf(status), std::string(status.message())};
}

bool Server::ServePage(Reply* reply) const {
  const HttpRequest& request = reply->request();
  if (!options_.serve_page || (request.method != "GET" && request.method != "HEAD")) return false;
  const PageFile* file = FindPageFile(request.path);
  if (file == nullptr) return false;
  const HttpHeaders headers = {{"ETag", std::string(file->etag)},
                               {"Cache-Control", "no-cache"},
                               {"Content-Security-Policy", std::string(kPageSecurityPolicy)},
                               {"Referrer-Policy", "no-referrer"}};
  const auto known = request.Header("If-None-Match");
  const bool same = known && *known == file->etag;
  reply->Body(same ? 304 : 200, file->content_type, same ? std::string_view() : file->content,
              headers);
  return true;
}

void Server::Tick() {
  shelf_.CloseIdle();
  heap_.Tick(desk_.IsIdle(), std::chrono::steady_clock::now());
}

void Server::Handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  heap_.OnBody(request.body.size());
  std::string allowed;
  const Route* const route = FindRoute(request, &allowed);
  auto reply =
      std::make_unique<Reply>(exchange, route == nullptr ? "other" : std::string(route->path),
                              access_.CorsHeaders(request), &metrics_, log_);
  if (absl::Status s = access_.CheckOrigin(request); !s.ok()) return reply->Error(s);
  if (request.method == "OPTIONS") return reply->Body(204, "text/plain", "");
  if (route == nullptr && ServePage(reply.get())) return;
  if (route == nullptr && !allowed.empty()) {
    return reply->Error(HttpError(405, absl::StrCat(request.path, " is for ", allowed)),
                        {{"Allow", allowed}});
  }
  if (route == nullptr || route->needs_key) {
    if (absl::Status s = access_.CheckKey(request); !s.ok()) return reply->Error(s);
  }
  if (route == nullptr) {
    return reply->Error(absl::NotFoundError(absl::StrCat("there is no ", request.path)));
  }
  if (stopping_ && route->needs_model) {
    return reply->Error(absl::UnavailableError("the server is stopping"));
  }
  const std::shared_ptr<const ServedModel> model = Model();
  if (route->needs_model && model == nullptr) {
    return reply->Error(absl::UnavailableError("the model is being loaded: try again in a moment"));
  }
  if (route->takes_long || request.body.size() > kSmallBody) {
    return desk_.Run(access_.ClientOf(request), std::move(reply),
                     [this, route, model](std::unique_ptr<Reply> later) {
                       route->handler(this, {model, std::move(later)});
                     });
  }
  route->handler(this, {model, std::move(reply)});
}

ReportSource Server::Source() const {
  ReportSource source;
  source.state = state_;
  source.load_progress = load_progress_;
  source.started = started_;
  source.model = Model();
  source.queue = desk_.counters();
  if (const HttpServer* http = listening_) source.http = http->counters();
  source.metrics = &metrics_;
  source.sessions = shelf_.counters();
  return source;
}

void Server::GetHealth(Reply* reply) {
  int status = 200;
  const std::string body = HealthJson(Source(), &status);
  reply->Body(status, "application/json", body,
              status == 503 ? HttpHeaders{{"Retry-After", kRetryAfter}} : HttpHeaders{});
}

void Server::GetStatus(Reply* reply) { reply->Json(StatusJson(Source())); }

void Server::GetMetrics(Reply* reply) {
  reply->Body(200, "text/plain; version=0.0.4; charset=utf-8", MetricsText(Source()));
}

}  // namespace trine::server
