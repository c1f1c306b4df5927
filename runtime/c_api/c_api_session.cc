// Sessions and generation in the C API.
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/c_api/c_api_support.h"

namespace trine::c_api {
namespace {

// Calls f(member of `o`, member of `s`) for each number that both structs have.
template <class F>
void ForEachNumber(trine_sampler_options& o, SamplerOptions& s, F f) {
  f(o.seed, s.seed);
  f(o.temperature, s.temp);
  f(o.top_k, s.top_k);
  f(o.top_p, s.top_p);
  f(o.min_p, s.min_p);
  f(o.typical_p, s.typical_p);
  f(o.repeat_last_n, s.repeat_last_n);
  f(o.repeat_penalty, s.repeat_penalty);
  f(o.frequency_penalty, s.frequency_penalty);
  f(o.presence_penalty, s.presence_penalty);
  f(o.mirostat, s.mirostat);
  f(o.mirostat_tau, s.mirostat_tau);
  f(o.mirostat_eta, s.mirostat_eta);
}

trine_sampler_options DefaultSampler() {
  SamplerOptions defaults;
  trine_sampler_options o{};
  ForEachNumber(o, defaults, [](auto& to, auto& from) { to = from; });
  return o;
}

absl::StatusOr<SamplerOptions> MakeSampler(const trine_sampler_options* given) {
  SamplerOptions options;
  if (given == nullptr) return options;
  // Members that an older caller's struct does not have keep their defaults.
  trine_sampler_options o = DefaultSampler();
  if (absl::Status s = ReadStruct("sampler", given, &o); !s.ok()) return s;
  ForEachNumber(o, options, [](auto& from, auto& to) { to = from; });
  if (o.stages != nullptr) {
    auto stages = ParseStageOrder(o.stages);
    if (!stages.ok()) return stages.status();
    options.stages = *std::move(stages);
  }
  if (o.n_bias != 0 && (o.bias_tokens == nullptr || o.bias_values == nullptr)) {
    return NullArgument("bias_tokens or bias_values");
  }
  for (size_t i = 0; i < o.n_bias; ++i) {
    options.logit_bias.push_back({o.bias_tokens[i], o.bias_values[i]});
  }
  return options;
}

absl::StatusOr<std::shared_ptr<const Constraint>> MakeConstraint(const trine_session_options& read,
                                                                 const Engine& engine) {
  if (read.grammar != nullptr && read.json_schema != nullptr) {
    return absl::InvalidArgumentError("grammar and json_schema are both given");
  }
  if (read.grammar != nullptr) {
    return Constraint::FromGbnf(read.grammar, engine.constraint_vocabulary());
  }
  if (read.json_schema != nullptr) {
    return Constraint::FromJsonSchema(read.json_schema, engine.constraint_vocabulary());
  }
  return nullptr;
}

absl::StatusOr<SessionOptions> MakeSession(const trine_session_options* given,
                                           const Engine& engine) {
  trine_session_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  constexpr uint32_t kKnown =
      TRINE_SESSION_LOGITS_HASH | TRINE_SESSION_IGNORE_END | TRINE_SESSION_SHOW_SPECIAL;
  if (absl::Status s = CheckFlags(read.flags, kKnown); !s.ok()) return s;
  SessionOptions options;
  options.logits_hash = (read.flags & TRINE_SESSION_LOGITS_HASH) != 0;
  options.ignore_eos = (read.flags & TRINE_SESSION_IGNORE_END) != 0;
  options.show_special = (read.flags & TRINE_SESSION_SHOW_SPECIAL) != 0;
  auto sampler = MakeSampler(read.sampler);
  if (!sampler.ok()) return sampler.status();
  options.sampler = *std::move(sampler);
  if (read.n_stop != 0 && read.stop == nullptr) return NullArgument("stop");
  for (size_t i = 0; i < read.n_stop; ++i) {
    if (read.stop[i] == nullptr) return NullArgument("a stop string");
    options.stop.emplace_back(read.stop[i]);
  }
  if (read.prefix_space != nullptr) options.prefix_space = read.prefix_space;
  auto constraint = MakeConstraint(read, engine);
  if (!constraint.ok()) return constraint.status();
  options.constraint = *std::move(constraint);
  return options;
}

absl::StatusOr<std::shared_ptr<const Rerank>> MakeRerank(const trine_rerank_options& given,
                                                         const Engine& engine) {
  trine_rerank_options read{};
  if (absl::Status s = ReadStruct("rerank", &given, &read); !s.ok()) return s;
  const auto head = Find(read.head);
  if (!head.ok())
    return absl::Status(head.status().code(), absl::StrCat("rerank: ", head.status().message()));
  if ((*head)->of->engine.get() != &engine) {
    return absl::InvalidArgumentError("rerank: the head was opened for another engine");
  }
  RerankOptions options;
  if (read.top != 0) options.top = read.top;
  if (read.weight != 0) options.weight = read.weight;
  if (read.limit != 0) options.limit = read.limit;
  return Rerank::Create(engine, (*head)->value, options);
}

absl::StatusOr<GenerateOptions> MakeGenerate(const trine_generate_options* given,
                                             const Engine& engine) {
  GenerateOptions options;
  options.collect = false;  // the C result has no room for text or tokens
  if (given == nullptr) return options;
  trine_generate_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  constexpr uint32_t kKnown =
      TRINE_GENERATE_MORE_FOLLOWS | TRINE_GENERATE_LOGPROBS | TRINE_GENERATE_CONTEXT_SHIFT;
  if (absl::Status s = CheckFlags(read.flags, kKnown); !s.ok()) return s;
  if ((read.flags & TRINE_GENERATE_LOGPROBS) != 0) {
    // Log-probabilities are passed in the token's event only.
    if (read.on_token == nullptr) return NullArgument("on_token");
    if (read.n_logprobs < 0) return absl::InvalidArgumentError("n_logprobs is negative");
    options.logprobs = read.n_logprobs;
  }
  if (read.rerank != nullptr) {
    auto rerank = MakeRerank(*read.rerank, engine);
    if (!rerank.ok()) return rerank.status();
    options.rerank = *std::move(rerank);
  }
  options.context_shift = (read.flags & TRINE_GENERATE_CONTEXT_SHIFT) != 0;
  options.keep = read.keep;
  if (read.on_token != nullptr) {
    options.on_token = [call = read.on_token, user = read.user,
                        top = std::vector<trine_logprob>()](const SampleResult& token) mutable {
      const InCallback inside(Callback::kOther, nullptr);
      top.clear();
      for (const TokenLogprob& t : token.top) top.push_back({t.token, 0, t.logprob});
      const trine_token_event event = {sizeof(event), token.token, token.logprob, top.data(),
                                       top.size()};
      return call(user, &event) == 0;
    };
  }
  options.max_tokens = read.max_tokens;
  options.more_follows = (read.flags & TRINE_GENERATE_MORE_FOLLOWS) != 0;
  if (read.on_text != nullptr) {
    options.on_text = [call = read.on_text, user = read.user](std::string_view text) {
      const InCallback inside(Callback::kOther, nullptr);
      return call(user, text.data(), text.size()) == 0;
    };
  }
  if (read.on_prompt != nullptr) {
    options.on_prompt = [call = read.on_prompt, user = read.user, &engine](int64_t done,
                                                                           int64_t total) {
      const InCallback inside(Callback::kPrompt, &engine);
      call(user, done, total);
    };
  }
  return options;
}

uint32_t FinishNumber(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return 0;
    case FinishReason::kLength:
      return TRINE_FINISH_LENGTH;
    case FinishReason::kEndOfText:
      return TRINE_FINISH_END_OF_TEXT;
    case FinishReason::kStopString:
      return TRINE_FINISH_STOP_STRING;
    case FinishReason::kContextFull:
      return TRINE_FINISH_CONTEXT_FULL;
    case FinishReason::kCancelled:
      return TRINE_FINISH_CANCELLED;
    case FinishReason::kCaller:
      return TRINE_FINISH_CALLER;
  }
  return 0;
}

void WriteResult(const Generation& g, trine_generate_result* out) {
  trine_generate_result result{};
  result.finish = FinishNumber(g.finish);
  result.prompt_tokens = g.prompt_tokens;
  result.generated_tokens = g.n_tokens;
  result.prompt_ms = g.prompt_ms;
  result.generate_ms = g.generate_ms;
  result.context_shifts = g.context_shifts;
  result.complete = g.complete ? 1 : 0;
  result.rerank_candidates = g.rerank_candidates;
  result.rerank_ms = g.rerank_ms;
  WriteStruct(result, out);
}

// Enters the sessions of an array of handles: none null, none twice, all of one engine.
absl::StatusOr<std::vector<EnteredSession>> EnterAll(trine_session* const* handles, size_t count) {
  if (handles == nullptr && count != 0) return NullArgument("sessions");
  std::vector<EnteredSession> entered;
  for (size_t i = 0; i < count; ++i) {
    if (std::find(handles, handles + i, handles[i]) != handles + i) {
      return absl::InvalidArgumentError("a session is named twice");
    }
    auto one = EnteredSession::Enter(handles[i]);
    if (!one.ok()) return one.status();
    if (i > 0 && one->of() != entered.front().of()) {
      return absl::InvalidArgumentError("the sessions belong to different engines");
    }
    entered.push_back(*std::move(one));
  }
  if (!entered.empty()) {
    const absl::Status may = InCallback::MayEvaluate(*entered.front().of()->engine);
    if (!may.ok()) return may;
  }
  return entered;
}

std::vector<Session*> SessionsOf(const std::vector<EnteredSession>& entered) {
  std::vector<Session*> sessions;
  for (const EnteredSession& one : entered) sessions.push_back(&one.session());
  return sessions;
}

absl::Status GenerateAll(trine_session* const* handles, size_t count,
                         const trine_generate_options* const* options,
                         trine_generate_result* const* results) {
  const auto entered = EnterAll(handles, count);
  if (!entered.ok()) return entered.status();
  const std::vector<Session*> sessions = SessionsOf(*entered);
  std::vector<GenerateOptions> each;
  for (size_t i = 0; i < count; ++i) {
    auto one = MakeGenerate(options != nullptr ? options[i] : nullptr, sessions[i]->engine());
    if (!one.ok()) return one.status();
    each.push_back(*std::move(one));
    const trine_generate_result* result = results != nullptr ? results[i] : nullptr;
    if (result != nullptr && !PlausibleSize(*result)) return BadStruct("result");
  }
  std::vector<Generation> generations(count);
  const absl::Status status = GenerateTogether(sessions, each, generations);
  for (size_t i = 0; results != nullptr && i < count; ++i) {
    WriteResult(generations[i], results[i]);
  }
  return status;
}

trine_session* NewSession(std::shared_ptr<EngineObject> of, std::unique_ptr<Session> session) {
  auto object = std::make_shared<SessionObject>();
  object->of = std::move(of);
  object->session = std::move(session);
  return NewHandle(std::move(object));
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

void trine_sampler_options_init(trine_sampler_options* options, size_t struct_size) {
  if (options == nullptr || struct_size < sizeof(uint32_t)) return;
  trine_sampler_options defaults = DefaultSampler();
  defaults.struct_size = static_cast<uint32_t>(struct_size);
  std::memset(options, 0, struct_size);
  std::memcpy(options, &defaults, std::min(struct_size, sizeof(defaults)));
}

int32_t trine_session_open(trine_engine* engine, const trine_session_options* given,
                           trine_session** session, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (session == nullptr) return NullArgument("session");
    *session = nullptr;
    auto of = Find(engine);
    if (!of.ok()) return of.status();
    const auto options = MakeSession(given, *(*of)->engine);
    if (!options.ok()) return options.status();
    auto created = trine::Session::Create((*of)->engine.get(), *options);
    if (!created.ok()) return created.status();
    *session = NewSession(*std::move(of), *std::move(created));
    return absl::OkStatus();
  });
}

void trine_session_close(trine_session* session) { Close(session); }

int32_t trine_session_append(trine_session* session, const int32_t* tokens, size_t count,
                             trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) {
    if (tokens == nullptr && count != 0) return NullArgument("tokens");
    return s.Append(std::span(tokens, count));
  });
}

int32_t trine_session_append_text(trine_session* session, const char* text, size_t bytes,
                                  uint32_t flags, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& to) {
    if (text == nullptr && bytes != 0) return NullArgument("text");
    if (absl::Status s = CheckFlags(flags, kTokenizeFlags); !s.ok()) return s;
    return to.AppendText(std::string_view(text == nullptr ? "" : text, bytes), EncodingOf(flags));
  });
}

int32_t trine_session_truncate(trine_session* session, int64_t n) {
  return OnSession(session, nullptr, [&](trine::Session& s) {
    const int64_t size = s.sequence().size();
    if (n < 0 || n > size) {
      return absl::InvalidArgumentError(
          absl::StrCat("n is ", n, ", and the session has ", size, " tokens"));
    }
    s.Truncate(n);
    return absl::OkStatus();
  });
}

int32_t trine_session_erase(trine_session* session, int64_t begin, int64_t end,
                            trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) { return s.Erase(begin, end); });
}

int32_t trine_session_checkpoint(trine_session* session, int64_t* t, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) -> absl::Status {
    if (t == nullptr) return NullArgument("t");
    const auto made = s.Checkpoint();
    if (!made.ok()) return made.status();
    *t = *made;
    return absl::OkStatus();
  });
}

int32_t trine_session_regress(trine_session* session, int64_t t, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) { return s.Regress(t); });
}

int32_t trine_session_forget(trine_session* session, int64_t t, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) { return s.Forget(t); });
}

int32_t trine_session_fork(trine_session* session, const uint64_t* seed, trine_session** fork,
                           trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (fork == nullptr) return NullArgument("fork");
    *fork = nullptr;
    const auto entered = EnteredSession::Enter(session);
    if (!entered.ok()) return entered.status();
    auto made = entered->session().Fork(seed == nullptr ? std::nullopt : std::optional(*seed));
    if (!made.ok()) return made.status();
    *fork = NewSession(entered->of(), *std::move(made));
    return absl::OkStatus();
  });
}

int32_t trine_session_tokens(const trine_session* session, int32_t* tokens, size_t capacity,
                             size_t* count) {
  return OnSession(session, nullptr, [&](const trine::Session& s) {
    const std::vector<int32_t>& all = s.sequence().tokens();
    return CopyOut(all.data(), all.size(), tokens, capacity, count);
  });
}

int32_t trine_evaluate(trine_session* const* handles, size_t count, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    const auto entered = EnterAll(handles, count);
    if (!entered.ok()) return entered.status();
    return trine::EvaluateTogether(SessionsOf(*entered));
  });
}

const float* trine_session_logits(const trine_session* session) {
  const float* logits = nullptr;
  OnSession(session, nullptr, [&](const trine::Session& s) {
    if (!s.logits().empty()) logits = s.logits().data();
    return absl::OkStatus();
  });
  return logits;
}

int32_t trine_session_sample(trine_session* session, int32_t* token, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) -> absl::Status {
    if (token == nullptr) return NullArgument("token");
    const auto sampled = s.Sample();
    if (!sampled.ok()) return sampled.status();
    *token = *sampled;
    return absl::OkStatus();
  });
}

int32_t trine_generate(trine_session* session, const trine_generate_options* options,
                       trine_generate_result* result, trine_failure* why) {
  return Guarded(why, [&] { return GenerateAll(&session, 1, &options, &result); });
}

int32_t trine_generate_together(trine_session* const* sessions, size_t count,
                                const trine_generate_options* const* options,
                                trine_generate_result* const* results, trine_failure* why) {
  return Guarded(why, [&] { return GenerateAll(sessions, count, options, results); });
}

void trine_session_cancel(trine_session* session) {
  Guarded(nullptr, [&] {
    const auto object = Find(session);
    if (object.ok()) (*object)->session->Cancel();
    return object.status();
  });
}

int32_t trine_session_logits_hash(const trine_session* session, char* text, size_t capacity) {
  return OnSession(session, nullptr, [&](const trine::Session& s) -> absl::Status {
    if (text == nullptr) return NullArgument("text");
    if (!s.keeps_logits_hash()) {
      return absl::FailedPreconditionError("the session was opened without a logits hash");
    }
    const std::string hash = s.logits_hash().Text();
    if (hash.size() + 1 > capacity) {
      return absl::OutOfRangeError(absl::StrCat("the text takes ", hash.size() + 1, " bytes"));
    }
    std::memcpy(text, hash.c_str(), hash.size() + 1);
    return absl::OkStatus();
  });
}

}  // extern "C"
