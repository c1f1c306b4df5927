// trine generate: continues a text.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/chat/chat_template.h"
#include "runtime/engine/generate.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/generation_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/output/stats_report.h"
#include "tools/cli/output/weights_json.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"
#include "unistd.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateArguments {
  EngineArguments engine;
  SamplingArguments sampling;
  ConstraintArguments constraint;
  PromptSource prompt;
  ChatArguments chat_options;
  CaptureArguments capture;
  RerankArguments rerank;
  std::vector<std::string> stop;
  int64_t n_predict = 256;
  int64_t keep = 0;
  int32_t logprobs = -1;
  bool context_shift = false;
  bool no_context_shift = false;  // the default anyway
  bool chat = false;
  bool json = false;
  bool logits_hash = false;
  bool stats = false;
  bool ignore_eos = false;
  bool show_special = false;
  bool hide_prompt = false;
};

// Ctrl-C ends the answer, not the program: the text generated so far is written. So do other
// signals that would end the program. null: nothing is generated.
std::atomic<const std::vector<Session*>*> interruptible = nullptr;

void StopGenerating() {
  const std::vector<Session*>* const sessions = interruptible;
  if (sessions == nullptr) return;
  for (Session* session : *sessions) session->Cancel();
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const GenerateArguments& a, const Engine& engine,
                                                  const std::string& prompt) {
  if (a.chat) {
    const auto chat = LoadChatTemplate(a.chat_options, engine);
    if (!chat.ok()) return chat.status();
    const auto options = MakeChatOptions(a.chat_options);
    if (!options.ok()) return options.status();
    std::vector<jinja::Value> messages;
    if (!a.chat_options.system_prompt.empty()) {
      messages.push_back(ChatMessage("system", a.chat_options.system_prompt));
    }
    messages.push_back(ChatMessage("user", prompt));
    const auto text = chat->Render(jinja::Given::OfList(std::move(messages)), *options);
    if (!text.ok()) return text.status();
    return EncodeChat(*engine.tokenizer(), *text);
  }
  if (!a.prompt.given()) {
    const int32_t bos = engine.tokenizer()->bos();
    if (bos != kNoToken) return std::vector<int32_t>{bos};
    return absl::InvalidArgumentError(
        "there is no text, and the model has no token that begins one: give some with -p TEXT or "
        "-f FILE");
  }
  auto encoded = engine.tokenizer()->Encode(prompt, {.add_special = true, .parse_special = true});
  if (!encoded.ok()) return encoded.status();
  if (encoded->empty()) {
    return absl::InvalidArgumentError("the prompt is empty: there is nothing to go on from");
  }
  return encoded;
}

double PerSecond(int64_t n, double ms) { return ms > 0 ? 1000.0 * static_cast<double>(n) / ms : 0; }

Json TokenJson(const Tokenizer& tokenizer, int32_t token, double logprob) {
  return {{"token", token},
          {"text", tokenizer.TokenBytes(token, SpecialText::kShow)},
          {"logprob", logprob}};
}

Json LogprobsJson(const Tokenizer& tokenizer, const std::vector<SampleResult>& tokens) {
  Json all = Json::array();
  for (const SampleResult& t : tokens) {
    all.push_back(TokenJson(tokenizer, t.token, t.logprob));
    Json top = Json::array();
    for (const TokenLogprob& l : t.top) top.push_back(TokenJson(tokenizer, l.token, l.logprob));
    all.back()["top"] = top;
  }
  return all;
}

Json ResultJson(const GenerateArguments& a, const Session& session, const Generation& g) {
  Json json = {{"text", g.text},
               {"tokens", g.tokens},
               {"finish_reason", FinishReasonName(g.finish)},
               {"timings",
                {{"prompt_tokens", g.prompt_tokens},
                 {"cached_tokens", g.cached_tokens},
                 {"prompt_ms", g.prompt_ms},
                 {"prompt_per_second", PerSecond(g.prompt_tokens, g.prompt_ms)},
                 {"generated_tokens", g.n_tokens},
                 {"generate_ms", g.generate_ms},
                 {"generate_per_second", PerSecond(g.n_tokens, g.generate_ms)}}}};
  if (IsConstrained(a.constraint)) json["complete"] = g.complete;
  if (a.logits_hash) json["logits_hash"] = session.logits_hash().Text();
  if (!a.rerank.head.empty()) {
    json["timings"]["reranked_tokens"] = g.reranked_tokens;
    json["timings"]["rerank_candidates"] = g.rerank_candidates;
    json["timings"]["rerank_ms"] = g.rerank_ms;
  }
  if (a.context_shift) json["context_shifts"] = g.context_shifts;
  if (a.logprobs >= 0) {
    json["logprobs"] = LogprobsJson(*session.engine().tokenizer(), g.logprobs);
  }
  return json;
}

// Counters refer to the model's current placement.
Json PlacementJson(const Model& model, const std::vector<SegmentCounters>& counters) {
  Json placement = Json::array();
  for (size_t i = 0; i < model.places().size(); ++i) {
    const SegmentPlace& p = model.places()[i];
    Json segment = {
        {"device", p.device_name}, {"first_layer", p.span.begin}, {"end_layer", p.span.end}};
    if (const auto devices = model.StageDevices(i); devices.size() > 1) {
      segment["devices"] = devices;
    }
    if (i < counters.size()) {
      const SegmentCounters& c = counters[i];
      segment["passes"] = c.stage.jobs;
      segment["tokens"] = c.tokens;
      segment["busy_ms"] = static_cast<double>(c.stage.busy_ns) / 1e6;
      segment["blocked_ms"] = static_cast<double>(c.stage.blocked_ns) / 1e6;
      segment["waiting_ms"] = static_cast<double>(c.stage.waiting_ns) / 1e6;
      segment["busy_ratio"] = c.busy_ratio();
      segment["bytes_in"] = c.bytes_in;
      segment["bytes_out"] = c.bytes_out;
      if (!c.helper.empty()) {
        segment["helper"] = c.helper;
        segment["detours"] = c.detours;
      }
      for (const DeviceUse& use : c.devices) {
        segment["shares"].push_back({{"device", use.device_name},
                                     {"passes", use.passes},
                                     {"busy_ms", static_cast<double>(use.busy_ns) / 1e6}});
      }
      if (!model.IsExact(i)) segment["numerics"] = "fast";
    }
    placement.push_back(segment);
  }
  return placement;
}

void PrintJson(const GenerateArguments& a, const std::vector<std::unique_ptr<Session>>& sessions,
               const std::vector<Generation>& results, uint64_t seed, double load_ms,
               const StatsReport& stats) {
  Json json = ResultJson(a, *sessions[0], results[0]);
  json["timings"]["load_ms"] = load_ms;
  json["seed"] = seed;
  const Engine& engine = sessions[0]->engine();
  const std::shared_ptr<const Model> model = engine.model();
  json["placement"] = PlacementJson(*model, engine.segments());
  for (const LostDevice& lost : engine.lost_devices()) {
    json["lost"].push_back({{"device", lost.name}, {"reason", lost.reason}});
  }
  json["weights"] = WeightsJson(model->weights());
  if (a.stats) json["stats"] = stats.Json(results[0]);
  if (sessions.size() > 1) {
    json["sequences"] = Json::array();
    for (size_t i = 0; i < sessions.size(); ++i) {
      Json one = ResultJson(a, *sessions[i], results[i]);
      one["seed"] = seed + i;
      json["sequences"].push_back(one);
    }
  }
  // A detokenizer returns only UTF-8, but a stop string could cut a character.
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

bool Write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

// Prints several answers, each under its number. They can't be streamed, because their texts would
// mix.
void PrintAll(const std::vector<Generation>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    std::printf("%s[%zu]%s\n", i == 0 ? "" : "\n", i + 1, results[i].text.c_str());
  }
}

void PrintSpeed(const Generation& g) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\nprompt: %lld tokens, %.1f/s; generated: %lld tokens, %.1f/s\n",
               static_cast<long long>(g.prompt_tokens), PerSecond(g.prompt_tokens, g.prompt_ms),
               static_cast<long long>(g.n_tokens), PerSecond(g.n_tokens, g.generate_ms));
}

absl::StatusOr<std::vector<std::unique_ptr<Session>>> MakeSessions(
    const GenerateArguments& a, const SamplerOptions& sampler, Engine* engine,
    const std::vector<int32_t>& prompt) {
  const auto constraint = MakeConstraint(a.constraint, *engine);
  if (!constraint.ok()) return constraint.status();
  std::vector<std::unique_ptr<Session>> sessions;
  for (int64_t i = 0; i < a.engine.max_sequences; ++i) {
    SessionOptions options;
    options.sampler = sampler;
    options.sampler.seed = sampler.seed + static_cast<uint64_t>(i);
    options.stop = a.stop;
    options.logits_hash = a.logits_hash;
    options.ignore_eos = a.ignore_eos;
    options.show_special = a.show_special;
    options.constraint = *constraint;
    // Tokens in blocks of the prefix cache are not evaluated, so they could not be captured.
    if (a.engine.keeps_blocks() && a.capture.path.empty()) options.prefix_space = "";
    auto session = Session::Create(engine, options);
    if (!session.ok()) return session.status();
    const absl::Status appended = (*session)->Append(prompt);
    if (absl::IsOutOfRange(appended)) {
      return absl::OutOfRangeError(
          absl::StrCat(appended.message(), ": -c takes more (--context-shift shortens no prompt)"));
    }
    if (!appended.ok()) return appended;
    sessions.push_back(*std::move(session));
  }
  return sessions;
}

int GenerateTexts(const GenerateArguments& a) {
  absl::StatusOr<std::string> prompt = std::string();
  if (a.prompt.given() || a.chat) prompt = ReadPrompt(a.prompt);
  if (!prompt.ok()) return Complain(prompt.status());
  // The newline at the end of a file's last line comes from the editor, not from the author.
  if (!a.prompt.file.empty() && !prompt->empty() && prompt->back() == '\n') prompt->pop_back();
  const auto sampler = MakeSamplerOptions(a.sampling);
  if (!sampler.ok()) return Complain(sampler.status());
  const auto begin = std::chrono::steady_clock::now();
  EngineArguments loaded = a.engine;
  const auto recorder = BeginCapture(a.capture, &loaded);
  if (!recorder.ok()) return Complain(recorder.status());
  auto head = BeginRerank(a.rerank, &loaded);
  if (!head.ok()) return Complain(head.status());
  std::optional<OrderlyEnd> end;  // declared before the engine, which keeps counts when it ends
  auto engine = LoadEngine(loaded);
  if (!engine.ok()) return Complain(engine.status());
  const double load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const auto rerank = MakeRerank(a.rerank, *std::move(head), **engine);
  if (!rerank.ok()) return Complain(rerank.status());
  const auto tokens = PromptTokens(a, **engine, *prompt);
  if (!tokens.ok()) return Complain(tokens.status());
  auto sessions = MakeSessions(a, *sampler, engine->get(), *tokens);
  if (!sessions.ok()) return Complain(sessions.status());

  const bool streams = !a.json && sessions->size() == 1;
  Progress progress("reading the prompt");
  GenerateOptions options;
  options.max_tokens = a.n_predict;
  options.collect = !streams;  // streamed text is not kept: it may be endless
  options.logprobs = a.logprobs;
  options.context_shift = a.context_shift;
  options.keep = a.keep;
  options.rerank = *rerank;
  options.on_prompt = [&](int64_t done, int64_t total) { progress.Update(done, total); };
  options.on_text = [&](std::string_view text) {
    progress.Clear();
    return !streams || Write(text);
  };
  const absl::Status sensible = CheckGenerate(*(*sessions)[0], options);
  if (!sensible.ok()) return Complain(sensible);
  if (streams && !a.chat && !a.hide_prompt) Write(*prompt);
  const std::vector<GenerateOptions> all(sessions->size(), options);
  std::vector<Generation> results(sessions->size());
  std::vector<Session*> pointers;
  for (const auto& session : *sessions) pointers.push_back(session.get());
  const StatsReport stats(**engine);
  interruptible = &pointers;
  end.emplace(StopGenerating);
  const absl::Status status = GenerateTogether(pointers, all, results);
  interruptible = nullptr;
  progress.Clear();
  if (!status.ok()) return Complain(status);

  if (a.json) {
    PrintJson(a, *sessions, results, sampler->seed, load_ms, stats);
  } else if (streams) {
    Write("\n");
  } else {
    PrintAll(results);
  }
  if (!a.json) {
    if (a.logits_hash)
      std::printf("logits hash: %s\n", (*sessions)[0]->logits_hash().Text().c_str());
    PrintSpeed(results[0]);
    if (a.stats) std::fputs(stats.Text(results[0]).c_str(), stderr);
  }
  if (!a.json && !results[0].complete) {
    std::fprintf(stderr, "trine: the answer was cut before it was complete: -n takes more\n");
  }
  const bool closed = IsConstrained(a.constraint) && results[0].complete;
  if (a.n_predict >= 0 && results[0].finish == FinishReason::kContextFull && !closed) {
    std::fprintf(
        stderr, "trine: the context of %lld is full: -c takes more%s\n",
        static_cast<long long>((*engine)->context()),
        IsConstrained(a.constraint) ? "" : ", --context-shift goes on by dropping the oldest");
  }
  if (*recorder != nullptr) {
    if (const absl::Status s = (*recorder)->Finish(); !s.ok()) return Complain(s);
  }
  if (const absl::Status s = (*engine)->WriteTrace(); !s.ok()) return Complain(s);
  return end->raised() ? kInterrupted : 0;
}

std::string NotZero(const std::string& text) {
  return text.find_first_not_of("+-0") == std::string::npos ? "0 tokens are nothing to generate"
                                                            : "";
}

}  // namespace

void AddGenerateCommand(Command app, Run* run) {
  auto [command, a] =
      NewCommand<GenerateArguments>(app, run, GenerateTexts, "generate",
                                    "Continue a text, or answer a message (--chat), with a model");
  AddPromptOptions(command,
                   "The prompt: raw text, in which the model's special tokens count. Without one "
                   "the model begins a text (its BOS token)",
                   &a->prompt);
  command
      .AddOption("-n,--n-predict,--predict", a->n_predict,
                 "Tokens to generate; -1: until the context is full, or with --context-shift "
                 "without end")
      .Range(int64_t{-1}, int64_t{1} << 30)
      .Check(NotZero)
      .ShowDefault();
  command.AddFlag(
      "--context-shift", a->context_shift,
      "Where the context is full, drop half of what is not kept, read the rest again, and go on");
  command
      .AddFlag("--no-context-shift", a->no_context_shift,
               "End where the context is full: the default")
      .Excludes({"--context-shift"});
  command
      .AddOption("--keep", a->keep,
                 "With --context-shift: tokens of the prompt that stay; -1: all of it. A BOS "
                 "always stays")
      .Range(int64_t{-1}, int64_t{1} << 30)
      .Needs("--context-shift")
      .ShowDefault();
  command.AddFlag("--chat", a->chat, "The prompt is a message: apply the model's chat template");
  AddChatOptions(command, &a->chat_options, "--chat");
  command.AddOption("-r,--stop,--reverse-prompt", a->stop,
                    "End where this text appears; may be repeated");
  command
      .AddOption("--parallel", a->engine.max_sequences,
                 "Sequences generated together from the one prompt, with seeds counted up; "
                 "also -np")
      .Range(1, 1024)
      .ShowDefault();
  AddCaptureOptions(command, &a->capture);
  AddRerankOptions(command, &a->rerank);
  command.AddFlag("--ignore-eos", a->ignore_eos, "Go on after the end of the text");
  command.AddFlag("--special", a->show_special, "Show control tokens");
  command.AddFlag("--no-display-prompt", a->hide_prompt, "Print the continuation alone");
  command.AddFlag("--json", a->json, "Print one JSON object: text, tokens, timings, ...");
  command
      .AddOption("--logprobs", a->logprobs,
                 "With --json: the log-probability of each token, and the N likeliest ones")
      .Range(0, kMaxLogprobs)
      .Needs("--json");
  command.AddFlag("--logits-hash", a->logits_hash,
                  "Hash the logits of every position: equal wherever and however it is run");
  command.AddFlag("--stats", a->stats,
                  "Say where the time went: how long the host waited, for which device and why "
                  "(docs/tracing.md)");
  AddEngineOptions(command, "Positions of a sequence", &a->engine);
  AddKvStoreOptions(command, &a->engine);
  AddSamplingOptions(command, &a->sampling);
  AddConstraintOptions(command, &a->constraint);
}

}  // namespace trine
