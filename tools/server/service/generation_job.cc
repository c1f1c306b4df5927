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
                             GenerationRequest request, std::string space,
                             std::chrono::seconds time, std::unique_ptr<Reply> reply,
                             Metrics* metrics)
    : Job(std::move(reply), time),
      model_(std::move(model)),
      endpoint_(endpoint),
      request_(std::move(request)),
      space_(std::move(space)),
      metrics_(metrics),
      early_(model_.get(), endpoint_, &request_, &space_) {
  const size_t prompts = request_.prompt.chat ? 1 : request_.prompt.plain.size();
  for (size_t p = 0; p < prompts; ++p) {
    ready_.push_back(choices_.size());
    for (int32_t k = 0; k < request_.n; ++k) {
      choices_.push_back({p, static_cast<uint64_t>(k), {}, 0});
    }
  }
}

GenerationJob::GenerationJob(std::shared_ptr<const ServedModel> model, GenerationRequest request,
                             SessionShelf::Hold session, std::chrono::seconds time,
                             std::unique_ptr<Reply> reply, Metrics* metrics)
    : GenerationJob(std::move(model), Endpoint::kSession, std::move(request), /*space=*/"", time,
                    std::move(reply), metrics) {
  held_ = std::move(session);
}

int64_t GenerationJob::parts() const {
  return std::max<int64_t>(1, request_.prompt.chat ? 1 : std::ssize(request_.prompt.plain));
}

// A job that echoes log-probabilities evaluates its whole prompt and can use no kept blocks.
bool GenerationJob::prepares() const {
  return model_->engine().prefetches() && held_.session() == nullptr && !tells_prompts();
}

absl::Status GenerationJob::Work(const AddParts& add) {
  const absl::StatusOr<size_t> choice = NextChoice();
  if (!choice.ok()) return choice.status();
  if (held_.session() != nullptr) return RunChoice(*choice, held_.session(), add);
  const auto session = NewSession(choices_[*choice]);
  if (!session.ok()) return session.status();
  return RunChoice(*choice, session->get(), add);
}

absl::StatusOr<size_t> GenerationJob::NextChoice() {
  std::lock_guard lock(mutex_);
  if (setup_.writer == nullptr) {
    if (absl::Status s = BeginAnswer(); !s.ok()) return s;
  }
  const size_t choice = ready_.front();
  ready_.pop_front();
  return choice;
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
  if (tells_prompts() && IsFirstOfPrompt(choice)) {
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

absl::Status GenerationJob::ReadPrompt(size_t choice, Session* session, const AddParts& add,
                                       int64_t* cached) {
  GenerateOptions only_read = OptionsFor(choice);
  only_read.max_tokens = 0;
  Generation read;
  const absl::Status status = Generate(session, only_read, &read);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (!status.ok()) return status;
  *cached = read.cached_tokens;
  if (request_.n < 2) return absl::OkStatus();
  {
    std::lock_guard lock(mutex_);
    for (int32_t k = 1; k < request_.n; ++k) ready_.push_back(choice + static_cast<size_t>(k));
  }
  return add(request_.n - 1);
}

absl::Status GenerationJob::RunChoice(size_t choice, Session* session, const AddParts& add) {
  // Ends on every way out, because Cancel must not find a session that has been destroyed.
  const absl::Cleanup forget = [&] { running_.End(session); };
  running_.Begin(session);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  int64_t cached = -1;
  if (IsFirstOfPrompt(choices_[choice]) && (tells_prompts() || request_.n > 1)) {
    if (absl::Status s = ReadPrompt(choice, session, add, &cached); !s.ok()) return s;
  }
  {
    std::lock_guard lock(mutex_);
    Echo(choice);
  }
  Generation result;
  const absl::Status status = Generate(session, OptionsFor(choice), &result);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  if (IsFirstOfPrompt(choices_[choice]) && !tells_prompts()) {
    usage_.cached_tokens += cached >= 0 ? cached : result.cached_tokens;
  }
  usage_.completion_tokens += result.n_tokens;
  return EndChoice(choice, result);
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
  std::lock_guard lock(mutex_);
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
  std::lock_guard lock(mutex_);
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
  counts.queue_seconds = Seconds(waited().value_or(Reply::Clock::now() - reply().begin()));
  int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.n_tokens;
  if (tokens > 0) counts.first_token_seconds = Seconds(first_token_ - reply().begin());
  if (tokens > 1 && choices_.size() == 1) {
    counts.between_tokens_seconds =
        Seconds(last_token_ - first_token_) / static_cast<double>(tokens - 1);
  }
  // A request that never had a turn says nothing about how long requests wait for one.
  if (waited()) metrics_->Generated(counts);
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
