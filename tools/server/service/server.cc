#include "tools/server/service/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/report/plan_report.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/chat_request.h"
#include "tools/server/openai/completion_request.h"
#include "tools/server/openai/embedding_request.h"
#include "tools/server/openai/plain_answers.h"
#include "tools/server/openai/responses_request.h"
#include "tools/server/openai/tokenize_request.h"
#include "tools/server/page/page.h"
#include "tools/server/service/embedding_job.h"
#include "tools/server/service/reply.h"

namespace trine::server {
namespace {

constexpr std::string_view kModelPath = "/v1/models/";
// What is read in no time.
constexpr size_t kSmallBody = size_t{32} << 10;
constexpr int64_t kErrandThreads = 2;

absl::Status Loading() {
  return absl::UnavailableError("the model is being loaded: try again in a moment");
}

}  // namespace

struct Server::Route {
  const char* method;
  std::string_view path;
  Handler handler;
  bool needs_key;
  bool needs_model;
  bool takes_long = false;  // whatever the body
};

Server::Server(ServerOptions options, ServerLog* log)
    : options_(std::move(options)),
      access_(options_.access),
      log_(log),
      queue_(options_.queue),
      errands_({kErrandThreads, options_.queue.waiting, options_.queue.waiting_per_client}) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, ServerLog* log) {
  HttpServerOptions http = options.http;
  http.error_body = [](int status, std::string_view message) {
    return ErrorBody(HttpError(status, message));
  };
  std::unique_ptr<Server> server(new Server(std::move(options), log));
  // Who has no key sends no body.
  http.refuse = [s = server.get()](const HttpRequest& head) { return s->RefuseHead(head); };
  auto listening = HttpServer::Start(
      std::move(http),
      [s = server.get()](std::shared_ptr<Exchange> exchange) { s->Handle(std::move(exchange)); });
  if (!listening.ok()) return listening.status();
  server->http_ = *std::move(listening);
  server->listening_ = server->http_.get();
  server->keeper_ = std::thread([s = server.get()] { s->KeepTime(); });
  server->loader_ = std::thread([s = server.get()] { s->Load(); });
  return server;
}

Server::~Server() { Shutdown(std::chrono::milliseconds(0)); }

void Server::Load() {
  auto model = options_.load([this](double fraction) {
    load_progress_ = fraction;
    return !stopping_;
  });
  std::lock_guard lock(mutex_);
  load_status_ = model.status();
  if (!model.ok()) return;
  model_ = *std::move(model);
  load_progress_ = 1;
  ServerState loading = ServerState::kLoading;
  state_.compare_exchange_strong(loading, ServerState::kServing);
}

void Server::KeepTime() {
  constexpr std::chrono::milliseconds kTick(500);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_now_.wait_for(lock, kTick, [&] { return stopping_.load(); })) {
    lock.unlock();
    queue_.DropOlder(options_.request_time);
    errands_.DropOlder(options_.request_time);
    lock.lock();
  }
}

absl::Status Server::load_status() const {
  std::lock_guard lock(mutex_);
  return load_status_;
}

std::shared_ptr<const ServedModel> Server::Model() const {
  std::lock_guard lock(mutex_);
  return model_;
}

void Server::CancelAll() {
  std::map<uint64_t, std::function<void()>> cancels;
  {
    std::lock_guard lock(mutex_);
    cancels = cancels_;
  }
  for (const auto& [number, cancel] : cancels) cancel();
}

void Server::Shutdown(std::chrono::milliseconds patience, const std::function<bool()>& hurry) {
  if (state_.exchange(ServerState::kStopping) == ServerState::kStopping && http_ == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_now_.notify_all();
  if (http_ != nullptr) http_->StopAccepting();
  queue_.Close();
  constexpr std::chrono::milliseconds kLook(50);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until && !(hurry && hurry())) {
    if (queue_.WaitUntilIdle(kLook)) break;
  }
  errands_.Stop();
  queue_.DropWaiting();
  CancelAll();
  // Who is cancelled says so to its client, unless that does not read.
  constexpr std::chrono::milliseconds kLastWords(500);
  if (queue_.WaitUntilIdle(kLastWords) && http_ != nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    http_->Drain(hurry && hurry() ? kLastWords : std::max(left, kLastWords));
  }
  if (http_ != nullptr) http_->Stop();
  queue_.Stop();
  if (loader_.joinable()) loader_.join();
  if (keeper_.joinable()) keeper_.join();
  listening_ = nullptr;
  http_.reset();
}

const Server::Route* Server::FindRoute(const HttpRequest& request, std::string* allowed) const {
  static constexpr Route kRoutes[] = {
      {"GET", "/health", &Server::GetHealth, false, false},
      {"GET", "/v1/health", &Server::GetHealth, false, false},
      {"GET", "/v1/status", &Server::GetStatus, true, false},
      {"GET", "/metrics", &Server::GetMetrics, true, false},
      {"GET", "/v1/models", &Server::GetModels, true, true},
      {"GET", "/models", &Server::GetModels, true, true},
      {"GET", kModelPath, &Server::GetModel, true, true},
      {"POST", "/v1/chat/completions", &Server::PostChat, true, true},
      {"POST", "/chat/completions", &Server::PostChat, true, true},
      {"POST", "/v1/completions", &Server::PostCompletion, true, true},
      {"POST", "/completions", &Server::PostCompletion, true, true},
      {"POST", "/v1/responses", &Server::PostResponses, true, true},
      {"POST", "/responses", &Server::PostResponses, true, true},
      {"POST", "/v1/embeddings", &Server::PostEmbeddings, true, true},
      {"POST", "/embeddings", &Server::PostEmbeddings, true, true},
      {"POST", "/tokenize", &Server::PostTokenize, true, true},
      {"POST", "/detokenize", &Server::PostDetokenize, true, true},
      {"GET", "/v1/trace", &Server::GetTrace, true, true, true},
      {"GET", "/v1/plan", &Server::GetPlan, true, true, true},
  };
  const bool head = request.method == "HEAD";
  for (const Route& route : kRoutes) {
    const bool prefix = route.path == kModelPath;
    if (prefix ? !absl::StartsWith(request.path, "/v1/models/") : request.path != route.path) {
      continue;
    }
    if (request.method == route.method || (head && std::string_view(route.method) == "GET")) {
      return &route;
    }
    *allowed = route.method;
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

void Server::Handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
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
  if (route->needs_model && !loaded()) return reply->Error(Loading());
  if (route->takes_long || request.body.size() > kSmallBody) {
    return RunErrand(route, std::move(reply));
  }
  (this->*route->handler)(std::move(reply));
}

void Server::RunErrand(const Route* route, std::unique_ptr<Reply> reply) {
  // A function that can be copied can't own what can't.
  const auto held = std::make_shared<std::unique_ptr<Reply>>(std::move(reply));
  uint64_t number = 0;
  const absl::Status added =
      errands_.Add(access_.ClientOf((*held)->request()), 1,
                   {[this, route, held](std::chrono::nanoseconds) {
                      (this->*route->handler)(std::move(*held));
                      return false;
                    },
                    [held](const absl::Status& why) { (*held)->Error(why); }},
                   &number);
  if (!added.ok()) (*held)->Error(added);
}

std::shared_ptr<const ServedModel> Server::Source(ReportSource* source) const {
  std::shared_ptr<const ServedModel> model = Model();
  source->state = state_;
  source->load_progress = load_progress_;
  source->started = started_;
  source->model = model.get();
  source->queue = queue_.counters();
  if (const HttpServer* http = listening_) source->http = http->counters();
  source->metrics = &metrics_;
  return model;
}

void Server::GetHealth(std::unique_ptr<Reply> reply) {
  ReportSource source;
  const auto model = Source(&source);
  int status = 200;
  const std::string body = HealthJson(source, &status);
  reply->Body(status, "application/json", body,
              status == 503 ? HttpHeaders{{"Retry-After", "2"}} : HttpHeaders{});
}

void Server::GetStatus(std::unique_ptr<Reply> reply) {
  ReportSource source;
  const auto model = Source(&source);
  reply->Json(StatusJson(source));
}

void Server::GetMetrics(std::unique_ptr<Reply> reply) {
  ReportSource source;
  const auto model = Source(&source);
  reply->Body(200, "text/plain; version=0.0.4; charset=utf-8", MetricsText(source));
}

void Server::GetModels(std::unique_ptr<Reply> reply) {
  const ModelCard card = Model()->card();
  reply->Json(ModelsBody({&card, 1}));
}

void Server::GetModel(std::unique_ptr<Reply> reply) {
  const ModelCard card = Model()->card();
  const std::string name = reply->request().path.substr(kModelPath.size());
  if (name != card.id) {
    return reply->Error(absl::NotFoundError(absl::StrCat("there is no model '", name, "'")));
  }
  reply->Json(ModelBody(card));
}

void Server::GetTrace(std::unique_ptr<Reply> reply) {
  constexpr int kDefault = 10, kMost = 600;
  int seconds = kDefault;
  if (const auto asked = reply->request().QueryValue("seconds")) {
    if (!absl::SimpleAtoi(*asked, &seconds) || seconds < 1 || seconds > kMost) {
      return reply->Error(ParamError("seconds", absl::StrCat("1 to ", kMost, " is expected")));
    }
  }
  const TraceFile* const trace = Model()->engine().trace();
  if (trace == nullptr) {
    return reply->Error(absl::NotFoundError("nothing is traced: --no-trace was given"));
  }
  const auto since = Trace::Clock::now() - std::chrono::seconds(seconds);
  reply->Body(200, "application/json", trace->trace()->Json(since),
              {{"Content-Disposition", "inline; filename=\"trine-trace.json\""}});
}

void Server::GetPlan(std::unique_ptr<Reply> reply) {
  const auto model = Model();
  const std::string format = reply->request().QueryValue("format").value_or("json");
  if (format == "json") return reply->Json(PlanJson(*model));
  const auto& plan = model->engine().plan();
  if (format != "svg" || !plan) {
    return reply->Error(ParamError("format", "json or svg is expected"));
  }
  PlanReport report;
  report.model = model->card().id;
  report.context = model->engine().context();
  report.report = *plan;
  reply->Body(200, "image/svg+xml", FormatPlanPicture(report));
}

void Server::PostTokenize(std::unique_ptr<Reply> reply) {
  const auto request = ParseTokenizeRequest(reply->request().body);
  if (!request.ok()) return reply->Error(request.status());
  const auto model = Model();
  const Tokenizer& tokenizer = *model->engine().tokenizer();
  const auto tokens = tokenizer.Encode(request->text, {.add_special = request->add_special,
                                                       .parse_special = request->parse_special});
  if (!tokens.ok()) return reply->Error(WithParam(tokens.status(), "content"));
  std::vector<std::string> pieces;
  for (size_t i = 0; request->with_pieces && i < tokens->size(); ++i) {
    pieces.emplace_back(tokenizer.TokenBytes((*tokens)[i], SpecialText::kShow));
  }
  reply->Json(TokenizeBody(*tokens, pieces));
}

void Server::PostDetokenize(std::unique_ptr<Reply> reply) {
  const auto model = Model();
  const auto request = ParseDetokenizeRequest(reply->request().body, model->defaults().vocab_size);
  if (!request.ok()) return reply->Error(request.status());
  Detokenizer detokenizer(model->engine().tokenizer(), {.special = SpecialText::kShow});
  std::string text;
  for (const int32_t token : request->tokens) detokenizer.Push(token, &text);
  reply->Json(DetokenizeBody(text + detokenizer.Flush()));
}

void Server::PostChat(std::unique_ptr<Reply> reply) {
  auto request = ParseChatRequest(reply->request().body, Model()->defaults());
  Generate(Endpoint::kChat, std::move(request), std::move(reply));
}

void Server::PostCompletion(std::unique_ptr<Reply> reply) {
  auto request = ParseCompletionRequest(reply->request().body, Model()->defaults());
  Generate(Endpoint::kCompletion, std::move(request), std::move(reply));
}

void Server::PostResponses(std::unique_ptr<Reply> reply) {
  auto request = ParseResponsesRequest(reply->request().body, Model()->defaults());
  Generate(Endpoint::kResponses, std::move(request), std::move(reply));
}

template <class Job>
void Server::Enqueue(const std::shared_ptr<Job>& job, int64_t places, Exchange* exchange,
                     std::function<bool(std::chrono::nanoseconds)> run) {
  uint64_t mine = 0;
  {
    std::lock_guard lock(mutex_);
    mine = ++last_cancel_;
    cancels_[mine] = [weak = std::weak_ptr<Job>(job)] {
      if (const auto held = weak.lock()) held->Cancel();
    };
  }
  const auto forget = std::shared_ptr<void>(nullptr, [this, mine](void*) {
    std::lock_guard lock(mutex_);
    cancels_.erase(mine);
  });
  auto number = std::make_shared<uint64_t>(0);
  const absl::Status added = queue_.Add(
      access_.ClientOf(exchange->request()), places,
      {[run = std::move(run), forget](std::chrono::nanoseconds waited) { return run(waited); },
       [job](const absl::Status& why) { job->Refuse(why); }},
      number.get());
  if (!added.ok()) return job->Refuse(added);
  exchange->OnGone([this, weak = std::weak_ptr<Job>(job), number] {
    const auto held = weak.lock();
    if (held == nullptr) return;
    if (queue_.Remove(*number)) {
      held->Refuse(absl::CancelledError("the client has gone"));
    } else {
      held->Cancel();
    }
  });
}

void Server::Generate(Endpoint endpoint, absl::StatusOr<GenerationRequest> request,
                      std::unique_ptr<Reply> reply) {
  if (!request.ok()) return reply->Error(request.status());
  Exchange* const exchange = &reply->exchange();
  exchange->ForgetBody();
  GenerationJob::Limits limits{options_.queue.places, options_.request_time};
  auto job = std::make_shared<GenerationJob>(Model(), endpoint, *std::move(request),
                                             access_.SpaceOf(exchange->request()), limits,
                                             std::move(reply), &metrics_);
  Enqueue(job, job->places(), exchange,
          [job](std::chrono::nanoseconds waited) { return job->Run(waited); });
}

void Server::PostEmbeddings(std::unique_ptr<Reply> reply) {
  const auto model = Model();
  if (!model->engine().can_embed()) {
    return reply->Error(
        absl::FailedPreconditionError("the server was started with --no-embeddings"));
  }
  auto request = ParseEmbeddingRequest(reply->request().body, model->defaults());
  if (!request.ok()) return reply->Error(request.status());
  Exchange* const exchange = &reply->exchange();
  exchange->ForgetBody();
  auto job = std::make_shared<EmbeddingJob>(model, *std::move(request), options_.request_time,
                                            std::move(reply), &metrics_);
  Enqueue(job, 1, exchange, [job](std::chrono::nanoseconds) {
    job->Run();
    return false;
  });
}

}  // namespace trine::server
