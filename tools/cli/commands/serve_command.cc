// trine serve: serves a model through an HTTP API.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/chat/chat_template.h"
#include "runtime/engine/model_setup.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/template/template.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/describe_placement.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/generation_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/server/service/server.h"

namespace trine {
namespace {

// The number of trace events that are kept: about ten seconds of a busy machine.
constexpr size_t kTraceEvents = size_t{1} << 16;

struct ServeArguments {
  EngineArguments engine;
  SamplingArguments sampling;
  ChatArguments chat;
  server::ServerOptions options;  // without what MakeServerOptions adds
  int64_t port = 8080;
  std::string api_key_file;
  std::string alias;
  int64_t prompt_budget = 64;
  int64_t body_mib = 8;
  int64_t request_timeout = 600;
  int64_t header_timeout = 10;
  int64_t read_timeout = 60;
  int64_t write_timeout = 30;
  int64_t stop_timeout = 10;
  uint64_t kv_prefetch = uint64_t{512} << 20;
  int64_t session_timeout = 600;
  std::string log_format = "text";
  std::string log_level = "info";
  bool no_embeddings = false;
  bool no_trace = false;
  bool metrics = false;  // the default anyway
};

server::LogLevel LevelOf(const std::string& name) {
  return name == "debug"     ? server::LogLevel::kDebug
         : name == "warning" ? server::LogLevel::kWarning
         : name == "error"   ? server::LogLevel::kError
                             : server::LogLevel::kInfo;
}

// Checks that the text is an origin as browsers write it.
std::string IsOrigin(const std::string& text) {
  const size_t scheme = text.find("://");
  const bool named = scheme != std::string::npos && scheme > 0 && scheme + 3 < text.size() &&
                     text.find_first_of("/ ?#", scheme + 3) == std::string::npos;
  return text == "*" || named ? "" : "expected a site as https://example.org, or *";
}

absl::StatusOr<server::ServerOptions> MakeServerOptions(const ServeArguments& a) {
  server::ServerOptions options = a.options;
  server::AccessOptions& access = options.access;
  // Everybody on the machine can read the command line, so a key may come from the environment.
  if (const char* key = std::getenv("TRINE_API_KEY"); key != nullptr) {
    // An empty key is a mistake that must not open the server to everybody.
    if (*key == '\0') return absl::InvalidArgumentError("TRINE_API_KEY is set, and empty");
    access.keys.emplace_back(key);
  }
  if (!a.api_key_file.empty()) {
    auto keys = server::ReadKeyFile(a.api_key_file);
    if (!keys.ok()) return keys.status();
    access.keys.insert(access.keys.end(), keys->begin(), keys->end());
  }
  access.loopback = server::IsLoopbackHost(options.http.host);
  options.http.port = static_cast<uint16_t>(a.port);
  options.http.limits.body_bytes = static_cast<size_t>(a.body_mib) << 20;
  options.http.limits.header_time = std::chrono::seconds(a.header_timeout);
  options.http.limits.body_time = std::chrono::seconds(a.read_timeout);
  options.http.limits.write_time = std::chrono::seconds(a.write_timeout);
  options.queue.places = a.engine.max_sequences;
  options.request_time = std::chrono::seconds(a.request_timeout);
  options.sessions.idle = std::chrono::seconds(a.session_timeout);
  return options;
}

absl::StatusOr<server::ServedModelOptions> MakeModelOptions(const ServeArguments& a) {
  server::ServedModelOptions options;
  options.alias = a.alias;
  const auto sampler = MakeSamplerOptions(a.sampling);
  if (!sampler.ok()) return sampler.status();
  options.sampler = *sampler;
  if (!a.chat.variables.empty()) {
    auto variables = ParseVariables(a.chat.variables);
    if (!variables.ok()) return About("--chat-template-kwargs", variables.status());
    options.variables = *std::move(variables);
  }
  auto source = ReadChatTemplate(a.chat);
  if (!source.ok()) return source.status();
  if (const auto parsed = jinja::Template::Parse(*source); !parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--chat-template: ", parsed.status().message()));
  }
  options.chat_template = *std::move(source);
  return options;
}

EngineOptions MakeEngineOptions(const ServeArguments& a, server::ServerLog* log) {
  EngineOptions options = EngineOptionsOf(a.engine);
  options.hidden_rows = !a.no_embeddings;
  options.mixed_tokens = a.prompt_budget;
  options.kv_prefetch_bytes = a.kv_prefetch;
  options.trace_events = a.no_trace ? 0 : kTraceEvents;
  options.explain = true;
  options.log = [log](uint32_t level, const std::string& message) {
    log->Message(level >= TRINE_LOG_ERROR     ? server::LogLevel::kError
                 : level >= TRINE_LOG_WARNING ? server::LogLevel::kWarning
                                              : server::LogLevel::kDebug,
                 message);
  };
  return options;
}

// Blocks the signals that end the server, and waits for them on this thread.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      sigaction(s, nullptr, &now);
      // nohup ignores SIGHUP, and that is respected. Shells ignore SIGINT for programs in the
      // background, but a SIGINT sent to a server is meant.
      if (s == SIGHUP && now.sa_handler == SIG_IGN) continue;
      if (now.sa_handler == SIG_IGN) signal(s, SIG_DFL);
      sigaddset(&set_, s);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  // Waits for a signal. Returns 0 if none came within that time.
  int Wait(std::chrono::milliseconds time) const {
    const timespec limit = {time.count() / 1000, (time.count() % 1000) * 1'000'000};
    const int s = sigtimedwait(&set_, nullptr, &limit);
    return s > 0 ? s : 0;
  }

 private:
  sigset_t set_;
};

int Serve(const ServeArguments& a) {
  auto options = MakeServerOptions(a);
  if (!options.ok()) return ComplainOfArguments(options.status());
  const auto model_options = MakeModelOptions(a);
  if (!model_options.ok()) return ComplainOfArguments(model_options.status());
  const EngineOptions asked = EngineOptionsOf(a.engine);
  if (absl::Status s = CheckEngineOptions(asked); !s.ok()) return ComplainOfArguments(s);
  // Reads header and metadata, which takes no time, so that a wrong file is reported at once.
  // Whether all of it can be used turns out while clients are told to wait.
  const auto readable = gguf::File::Open(asked.model_path, {.use_mmap = true});
  if (!readable.ok()) return Complain(readable.status());
  if (absl::Status s = CheckExpertStats(asked, **readable); !s.ok()) return Complain(s);
  const EndSignals signals;  // blocks the signals before any thread exists
  server::ServerLog log(LevelOf(a.log_level), a.log_format == "json", [](const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stderr);
  });
  options->load = [&](const std::function<bool(double)>& progress)
      -> absl::StatusOr<std::unique_ptr<server::ServedModel>> {
    EngineOptions engine_options = MakeEngineOptions(a, &log);
    engine_options.progress = progress;
    auto engine = Engine::Load(engine_options);
    if (!engine.ok()) return engine.status();
    const std::string placement = DescribePlacement(**engine, engine_options);
    auto model = server::ServedModel::Create(*std::move(engine), *model_options);
    if (model.ok()) {
      log.Write(server::LogLevel::kInfo, "loaded",
                {{"model", (*model)->card().id}, {"placement", placement}});
    }
    return model;
  };
  auto server = server::Server::Start(*options, &log);
  if (!server.ok()) return Complain(server.status());
  // On stdout, for scripts that start the server on any port.
  std::printf("trine: http://%s\n", (*server)->address().c_str());
  std::fflush(stdout);
  const server::AccessOptions& access = options->access;
  log.Write(
      server::LogLevel::kInfo, "listening",
      {{"address", (*server)->address()}, {"keys", static_cast<int64_t>(access.keys.size())}});
  if (!access.loopback && access.keys.empty()) {
    log.Message(server::LogLevel::kWarning,
                "anybody who reaches this address may use the server: --api-key limits that");
  }
  int signal = 0;
  while (signal == 0) {
    signal = signals.Wait(std::chrono::milliseconds(200));
    if (const absl::Status s = (*server)->load_status(); !s.ok()) return Complain(s);
  }
  log.Write(server::LogLevel::kInfo, "stopping", {{"signal", int64_t{signal}}});
  (*server)->Shutdown(std::chrono::seconds(a.stop_timeout),
                      [&] { return signals.Wait(std::chrono::milliseconds(0)) != 0; });
  server->reset();
  log.Write(server::LogLevel::kInfo, "stopped", {});
  return 0;
}

void AddServerOptions(Command command, ServeArguments* a) {
  const auto number = [&](const char* name, auto* value, int64_t low, int64_t high,
                          const char* help) {
    command.AddOption(name, *value, help).Range(low, high).ValueName("INT").ShowDefault();
  };
  server::HttpLimits& limits = a->options.http.limits;
  command
      .AddOption("--host", a->options.http.host,
                 "The address to listen on; 0.0.0.0: all of this machine's")
      .Check(NotEmpty)
      .ShowDefault();
  command.AddOption("--port", a->port, "The port; 0: any that is free, which is printed")
      .Range(int64_t{0}, int64_t{65535})
      .ShowDefault();
  command
      .AddOption("--api-key", a->options.access.keys,
                 "Who asks must have this key; may be repeated; TRINE_API_KEY names one too")
      .Check(NotEmpty)
      .OneValueEach()
      .ValueName("KEY");
  command
      .AddOption("--api-key-file", a->api_key_file,
                 "The same, one a line; empty lines and lines that begin with # count for nothing")
      .Check(NotEmpty)
      .ValueName("FILE");
  command
      .AddOption("--cors", a->options.access.cors_origins,
                 "Pages of this site may ask, as https://example.org; *: of any; may be repeated")
      .Check(IsOrigin)
      .OneValueEach()
      .ValueName("ORIGIN");
  command.AddOption("--alias", a->alias, "What the model is called (default: its file's name)")
      .Check(NotEmpty);
  number("--prompt-budget", &a->prompt_budget, 0, 65536,
         "Most tokens of a pass in which some requests write while others read their prompts; 0: "
         "as many as of any (--ubatch-size)");
  number("--queue", &a->options.queue.waiting, 1, 1'000'000, "Most requests that wait for a place");
  number("--queue-per-client", &a->options.queue.waiting_per_client, 1, 1'000'000,
         "Of those, most of one key or address");
  number("--max-connections", &limits.connections, 1, 1'000'000, "Most connections at once");
  number("--max-connections-per-address", &limits.connections_per_address, 1, 1'000'000,
         "Of those, most of one address");
  number("--max-body", &a->body_mib, 1, 4096, "Most MiB of a request");
  number("--request-timeout", &a->request_timeout, 1, 86400,
         "Seconds that a request may take, with its wait");
  number("--sessions", &a->options.sessions.sessions, 0, 1'000'000,
         "Most sessions that clients may have open at once; 0: without /v1/sessions");
  number("--sessions-per-key", &a->options.sessions.per_owner, 0, 1'000'000,
         "Of those, most of one key; 0: half where there are several keys, else all");
  number("--session-timeout", &a->session_timeout, 1, 31'536'000,
         "Seconds after which a session that nobody uses is closed");
  number("--header-timeout", &a->header_timeout, 1, 86400,
         "Seconds for the headers of a request to arrive");
  number("--read-timeout", &a->read_timeout, 1, 86400,
         "Seconds for its body, and one more for each 16 KiB of it that has come");
  number("--write-timeout", &a->write_timeout, 1, 86400,
         "Seconds after which a client that reads nothing is dropped");
  number("--stop-timeout", &a->stop_timeout, 0, 86400,
         "Seconds that requests have left when the server is told to stop");
  command.AddOption("--log-format", a->log_format, "Of the lines on stderr: text or json")
      .OneOf({"text", "json"})
      .ShowDefault();
  command.AddOption("--log-level", a->log_level, "The least of them that is shown")
      .OneOf({"debug", "info", "warning", "error"})
      .ShowDefault();
  command.AddFlag("--no-embeddings", a->no_embeddings, "Without /v1/embeddings");
  command.AddFlag("--no-trace", a->no_trace, "Without /v1/trace");
  command.AddFlagOff("--no-page", a->options.serve_page, "Without the page at /");
  command.AddFlag("--metrics", a->metrics, "Says what holds anyway: /metrics is there");
}

}  // namespace

void AddServeCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<ServeArguments>(
      app, run, Serve, "serve", "Serve a model over HTTP, with OpenAI's API and a page to look at");
  a->engine.max_sequences = 8;
  AddServerOptions(command, a.get());
  command
      .AddOption("--parallel", a->engine.max_sequences,
                 "Sequences that are written at once; the cache holds as many full ones; also -np")
      .Range(int64_t{1}, int64_t{1024})
      .ShowDefault();
  AddEngineOptions(command, "Positions of a sequence", &a->engine);
  AddKvStoreOptions(command, &a->engine);
  AddSizeOption(command, "--kv-prefetch", &a->kv_prefetch,
                "With --kv-store: most bytes of memory for what is brought from there for "
                "requests that wait; 0: nothing is")
      .Needs("--kv-store")
      .DefaultText("512M");
  AddSamplingOptions(command, &a->sampling);
  AddChatTemplateOptions(command, &a->chat);
}

}  // namespace trine
