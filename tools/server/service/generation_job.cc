#include "tools/server/service/generation_job.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/sampling/sampler.h"

namespace trine::server {
namespace {

double Seconds(Reply::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

GenerationJob::GenerationJob(std::shared_ptr<const ServedModel> model, Endpoint endpoint,
                             GenerationRequest request, std::string space, const Limits& limits,
                             std::unique_ptr<Reply> reply, Metrics* metrics)
    : Job(std::move(reply), limits.time),
      model_(std::move(model)),
      endpoint_(endpoint),
      request_(std::move(request)),
      space_(std::move(space)),
      most_places_(limits.places),
      metrics_(metrics),
      early_(model_.get(), endpoint_, &request_, &space_) {
  const size_t prompts = request_.prompt.chat ? 1 : request_.prompt.plain.size();
  for (size_t p = 0; p < prompts; ++p) {
    for (int32_t k = 0; k < request_.n; ++k) {
      choices_.push_back({p, static_cast<uint64_t>(k), {}, 0});
    }
  }
}

GenerationJob::GenerationJob(std::shared_ptr<const ServedModel> model, GenerationRequest request,
                             SessionShelf::Hold session, const Limits& limits,
                             std::unique_ptr<Reply> reply, Metrics* metrics)
    : GenerationJob(std::move(model), Endpoint::kSession, std::move(request), /*space=*/"", limits,
                    std::move(reply), metrics) {
  held_ = std::move(session);
}

int64_t GenerationJob::places() const {
  return std::clamp<int64_t>(static_cast<int64_t>(choices_.size()), 1, most_places_);
}

// A job that echoes log-probabilities evaluates its whole prompt and can use no kept blocks.
bool GenerationJob::prepares() const {
  return model_->engine().prefetches() && held_.session() == nullptr && !tells_prompts();
}

absl::StatusOr<bool> GenerationJob::Work() {
  if (setup_.writer == nullptr) {
    if (absl::Status s = BeginAnswer(); !s.ok()) return s;
  }
  const size_t end = std::min(choices_.size(), next_choice_ + static_cast<size_t>(places()));
  if (absl::Status s = RunGroup(next_choice_, end); !s.ok()) return s;
  next_choice_ = end;
  return next_choice_ < choices_.size();
}

absl::Status GenerationJob::BeginAnswer() {
  auto setup = held_.session() != nullptr ? SetUpContinuation(*model_, request_, *held_.session())
                                          : early_.Take();
  if (!setup.ok()) return setup.status();
  setup_ = *std::move(setup);
  seed_ = request_.seed ? *request_.seed : DrawSeed();
  usage_.prompt_tokens = setup_.prompt_tokens;
  usage_.cached_tokens = setup_.cached_tokens;
  if (tells_prompts()) echoed_.resize(setup_.prompts.size());
  if (request_.stream && !reply().BeginEvents()) return Interruption();
  setup_.writer->Begin(frames());
  return Send() ? absl::OkStatus() : Interruption();
}

absl::StatusOr<std::unique_ptr<Session>> GenerationJob::NewSession(const Choice& choice) {
  SessionOptions options = SessionOptionsOf(request_, setup_, seed_ + choice.seed_offset, space_);
  // Among choices with the same prompt, one session is enough to get the prompt's
  // log-probabilities.
  if (tells_prompts() && echoed_[choice.prompt].empty()) {
    const std::vector<int32_t>& prompt = setup_.prompts[choice.prompt];
    echoed_[choice.prompt].push_back(InfoOf(prompt[0], 0, {}));
    echoed_[choice.prompt][0].logprob.reset();  // no token precedes it
    // Clients expect each token's text where the text of the token before it ends. A BOS token that
    // the tokenizer added is not in the client's text, so it is given no text.
    const bool text = std::holds_alternative<std::string>(request_.prompt.plain[choice.prompt]);
    const Tokenizer& tokenizer = *model_->engine().tokenizer();
    if (text && tokenizer.adds_bos() && prompt[0] == tokenizer.bos()) {
      echoed_[choice.prompt][0].bytes.clear();
    }
    options.on_row = [this, p = choice.prompt](int64_t position, std::span<const float> row) {
      OnPromptRow(p, position, row);
    };
  }
  auto session = Session::Create(&model_->engine(), options);
  if (!session.ok()) return session.status();
  if (absl::Status s = (*session)->Append(setup_.prompts[choice.prompt]); !s.ok()) return s;
  return session;
}

void GenerationJob::OnPromptRow(size_t prompt, int64_t position, std::span<const float> row) {
  const std::vector<int32_t>& tokens = setup_.prompts[prompt];
  const size_t next = static_cast<size_t>(position) + 1;
  if (next >= tokens.size() || next != echoed_[prompt].size()) return;  // a row of the answer
  const LogSoftmax softmax(row);
  std::vector<TokenLogprob> top;
  TopLogprobs(row, softmax, request_.top_logprobs, &top);
  const int32_t token = tokens[next];
  echoed_[prompt].push_back(InfoOf(token, softmax.Of(row[static_cast<size_t>(token)]), top));
}

TokenInfo GenerationJob::InfoOf(int32_t token, double logprob,
                                std::span<const TokenLogprob> top) const {
  const Tokenizer& tokenizer = *model_->engine().tokenizer();
  const auto bytes = [&](int32_t id) {
    return std::string(tokenizer.TokenBytes(id, SpecialText::kShow));
  };
  TokenInfo info{bytes(token), logprob, {}};
  for (const TokenLogprob& l : top) info.top.push_back({bytes(l.token), l.logprob});
  return info;
}

absl::Status GenerationJob::ReadPrompts(std::span<Session* const> sessions,
                                        std::span<const GenerateOptions> options) {
  std::vector<GenerateOptions> only_read(options.begin(), options.end());
  for (GenerateOptions& o : only_read) o.max_tokens = 0;
  std::vector<Generation> read(sessions.size());
  const absl::Status status = GenerateTogether(sessions, only_read, read);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  return status;
}

absl::Status GenerationJob::RunGroup(size_t begin, size_t end) {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Session*> pointers;
  std::vector<GenerateOptions> options;
  for (size_t i = begin; i < end; ++i) {
    if (held_.session() == nullptr) {
      auto session = NewSession(choices_[i]);
      if (!session.ok()) return session.status();
      sessions.push_back(*std::move(session));
    }
    pointers.push_back(held_.session() == nullptr ? sessions.back().get() : held_.session());
    options.push_back(OptionsFor(i));
  }
  // Ends on every way out, because Cancel must not find sessions that have been destroyed.
  const absl::Cleanup forget = [this] { running_.End(); };
  running_.Begin(pointers);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (tells_prompts()) {
    if (absl::Status s = ReadPrompts(pointers, options); !s.ok()) return s;
  }
  for (size_t i = begin; i < end; ++i) Echo(i);
  // If choices have the same prompt, one session evaluates it and the others share its blocks.
  int64_t cached = -1;
  if (!tells_prompts() && end - begin > 1 && choices_[begin].prompt == choices_[begin + 1].prompt) {
    GenerateOptions only_read = options[0];
    only_read.max_tokens = 0;
    Generation read;
    if (absl::Status s = Generate(pointers[0], only_read, &read); !s.ok()) return s;
    if (absl::Status s = Interruption(); !s.ok()) return s;
    cached = read.cached_tokens;
  }
  std::vector<Generation> results(pointers.size());
  const absl::Status status = GenerateTogether(pointers, options, results);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (!status.ok()) return status;
  for (size_t i = begin; i < end; ++i) {
    const Generation& result = results[i - begin];
    const bool first = i == 0 || choices_[i].prompt != choices_[i - 1].prompt;
    if (first && !tells_prompts())
      usage_.cached_tokens += i == begin && cached >= 0 ? cached : result.cached_tokens;
    usage_.completion_tokens += result.n_tokens;
    if (absl::Status s = EndChoice(i, result); !s.ok()) return s;
  }
  return absl::OkStatus();
}

GenerateOptions GenerationJob::OptionsFor(size_t choice) {
  GenerateOptions options;
  options.max_tokens = request_.max_tokens.value_or(-1);
  options.logprobs = request_.top_logprobs;
  options.collect = false;
  // Clients that find the answer by counting tokens after the echo expect one for each sampled
  // token.
  options.tell_end = tells_prompts();
  options.on_token = [this, choice](const SampleResult& token) { return OnToken(choice, token); };
  options.on_text = [this, choice](std::string_view text) { return OnText(choice, text); };
  options.on_prompt = [this](int64_t, int64_t) {
    if (!Interruption().ok()) OnCancel();
  };
  return options;
}

bool GenerationJob::OnToken(size_t index, const SampleResult& token) {
  Choice& choice = choices_[index];
  if (request_.top_logprobs >= 0) {
    choice.tokens.push_back(InfoOf(token.token, token.logprob, token.top));
  }
  const Tokenizer& tokenizer = *model_->engine().tokenizer();
  if (!request_.ignore_eos && tokenizer.IsEndOfGeneration(token.token)) return true;
  last_token_ = Reply::Clock::now();
  if (first_token_ == Reply::Clock::time_point{}) first_token_ = last_token_;
  if (++choice.n_tokens == 1 && choice.prompt < setup_.prefetches.size()) {
    setup_.prefetches[choice.prompt].reset();  // the prompt has been read
  }
  metrics_->Tokens(1);
  return Interruption().ok();
}

bool GenerationJob::OnText(size_t index, std::string_view text) {
  Choice& choice = choices_[index];
  setup_.writer->Text(index, text, choice.tokens, frames());
  choice.tokens.clear();
  return Send() && setup_.writer->WantsMore(index);
}

void GenerationJob::Echo(size_t index) {
  if (!request_.echo) return;
  std::string text;
  const PlainPrompt& prompt = request_.prompt.plain[choices_[index].prompt];
  if (const auto* given = std::get_if<std::string>(&prompt)) {
    text = *given;
  } else {
    Detokenizer detokenizer(model_->engine().tokenizer());
    for (const int32_t token : setup_.prompts[choices_[index].prompt])
      detokenizer.Push(token, &text);
    text += detokenizer.Flush();
  }
  std::vector<TokenInfo> tokens;
  if (tells_prompts()) tokens = echoed_[choices_[index].prompt];
  setup_.writer->Text(index, text, tokens, frames());
  Send();
}

absl::Status GenerationJob::EndChoice(size_t index, const Generation& result) {
  Choice& choice = choices_[index];
  if (!choice.tokens.empty()) setup_.writer->Text(index, "", choice.tokens, frames());
  const bool cut =
      result.finish == FinishReason::kLength || result.finish == FinishReason::kContextFull;
  setup_.writer->Finish(index, cut ? AnswerEnd::kLength : AnswerEnd::kStop, frames());
  return Send() ? absl::OkStatus() : Interruption();
}

bool GenerationJob::Send() { return frames_.empty() || reply().Write(frames_.Take()); }

void GenerationJob::Count() {
  GenerationCounts counts;
  counts.queue_seconds = Seconds(has_run() ? waited() : Reply::Clock::now() - reply().begin());
  int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.n_tokens;
  if (tokens > 0) counts.first_token_seconds = Seconds(first_token_ - reply().begin());
  if (tokens > 1 && choices_.size() == 1) {
    counts.between_tokens_seconds =
        Seconds(last_token_ - first_token_) / static_cast<double>(tokens - 1);
  }
  // A request that never had a turn says nothing about how long requests wait for one.
  if (has_run()) metrics_->Generated(counts);
  metrics_->Prompt(usage_.prompt_tokens, usage_.cached_tokens);
  reply().Note("prompt_tokens", usage_.prompt_tokens);
  reply().Note("cached_tokens", usage_.cached_tokens);
  reply().Note("tokens", tokens);
  reply().Note("queue_ms", counts.queue_seconds * 1000);
  if (counts.first_token_seconds >= 0) {
    reply().Note("first_token_ms", counts.first_token_seconds * 1000);
  }
}

void GenerationJob::Finish(const absl::Status& status) {
  Count();
  held_.Release();
  if (!reply().streaming()) {
    if (!status.ok()) return reply().Error(status);
    return reply().Json(setup_.writer->Body(usage_));
  }
  if (status.ok()) {
    setup_.writer->End(usage_, &frames_);
  } else {
    frames_.Take();  // drops a part that is not whole
    setup_.writer->Fail(status, &frames_);
  }
  Send();
  reply().EndEvents(status);
}

}  // namespace trine::server
