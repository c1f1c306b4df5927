#include "tools/server/service/generation_job.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tools/server/openai/answer_plan.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {
namespace {

double Seconds(Reply::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

uint64_t DrawSeed() {
  std::random_device random;
  // 53 bits: clients that are told of it read it as a double.
  return ((uint64_t{random()} << 32) | random()) >> 11;
}

std::string_view IdPrefix(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::kChat:
      return "chatcmpl-";
    case Endpoint::kCompletion:
      return "cmpl-";
    case Endpoint::kResponses:
      return "resp_";
  }
  return "";
}

}  // namespace

GenerationJob::GenerationJob(std::shared_ptr<const ServedModel> model, Endpoint endpoint,
                             GenerationRequest request, std::string space, const Limits& limits,
                             std::unique_ptr<Reply> reply, Metrics* metrics)
    : model_(std::move(model)),
      endpoint_(endpoint),
      request_(std::move(request)),
      space_(std::move(space)),
      limits_(limits),
      reply_(std::move(reply)),
      metrics_(metrics) {
  const size_t prompts = request_.prompt.chat ? 1 : request_.prompt.plain.size();
  for (size_t p = 0; p < prompts; ++p) {
    for (int32_t k = 0; k < request_.n; ++k) {
      choices_.push_back({p, static_cast<uint64_t>(k), {}, 0});
    }
  }
}

int64_t GenerationJob::places() const {
  return std::clamp<int64_t>(static_cast<int64_t>(choices_.size()), 1, limits_.places);
}

const char* GenerationJob::prompt_param() const {
  return endpoint_ == Endpoint::kChat        ? "messages"
         : endpoint_ == Endpoint::kResponses ? "input"
                                             : "prompt";
}

void GenerationJob::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (Session* session : running_) session->Cancel();
}

bool GenerationJob::Run(std::chrono::nanoseconds waited) {
  waited_ += waited;
  absl::Status status;
  try {
    status = Interruption();
    if (status.ok() && writer_ == nullptr) status = BeginAnswer();
    if (status.ok()) {
      const size_t end = std::min(choices_.size(), next_choice_ + static_cast<size_t>(places()));
      status = RunGroup(next_choice_, end);
      next_choice_ = end;
    }
    if (status.ok() && next_choice_ < choices_.size()) return true;
  } catch (const std::bad_alloc&) {
    status = absl::UnavailableError("the server is out of memory");
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  Refuse(status);
  return false;
}

void GenerationJob::Refuse(const absl::Status& status) noexcept {
  try {
    Count();
    Finish(status);
  } catch (const std::exception&) {
    // There is no memory to say so with: the connection is cut.
  }
}

absl::Status GenerationJob::Prepare() {
  seed_ = request_.seed ? *request_.seed : DrawSeed();
  AnswerPlan plan;
  plan.constraint = request_.constraint;
  if (endpoint_ != Endpoint::kCompletion) plan = PlanAnswer(request_, model_->family());
  auto constraint = model_->ConstraintOf(plan.constraint, space_);
  if (!constraint.ok()) return constraint.status();
  constraint_ = *std::move(constraint);
  show_special_ =
      endpoint_ != Endpoint::kCompletion && NeedsAnswerReader(model_->family(), request_);
  if (request_.prompt.chat) {
    auto tokens = model_->EncodeConversation(*request_.prompt.chat, plan.opening);
    if (!tokens.ok()) return tokens.status();
    prompts_.push_back(*std::move(tokens));
  }
  if (absl::Status s = ReadPrompts(); !s.ok()) return s;
  AnswerHead head = NewAnswerHead(IdPrefix(endpoint_), model_->card().id);
  writer_ = endpoint_ == Endpoint::kChat
                ? NewChatWriter(request_, std::move(head), model_->family(), plan.start)
            : endpoint_ == Endpoint::kResponses
                ? NewResponsesWriter(request_, std::move(head), model_->family(), plan.start)
                : NewCompletionWriter(request_, std::move(head));
  return absl::OkStatus();
}

absl::Status GenerationJob::ReadPrompts() {
  for (const PlainPrompt& prompt : request_.prompt.plain) {
    auto tokens = model_->EncodePlain(prompt);
    if (!tokens.ok()) return WithParam(tokens.status(), prompt_param());
    prompts_.push_back(*std::move(tokens));
  }
  if (request_.echo && logprobs()) {
    return ParamError("echo",
                      "the log-probabilities of a prompt are not computed: echo and "
                      "logprobs do not go together");
  }
  for (size_t i = 0; i < prompts_.size(); ++i) {
    if (absl::Status s = CheckPrompt(i); !s.ok()) return s;
    usage_.prompt_tokens += static_cast<int64_t>(prompts_[i].size());
  }
  return absl::OkStatus();
}

absl::Status GenerationJob::CheckPrompt(size_t index) const {
  const auto size = static_cast<int64_t>(prompts_[index].size());
  const int64_t context = model_->engine().context();
  if (size == 0) return ParamError(prompt_param(), "the prompt is empty");
  const bool writes = !request_.max_tokens || *request_.max_tokens != 0;
  if (size < context || (size == context && !writes)) return absl::OkStatus();
  return WithParam(absl::OutOfRangeError(absl::StrCat("the prompt has ", size,
                                                      " tokens, the context holds ", context)),
                   prompt_param());
}

absl::Status GenerationJob::BeginAnswer() {
  if (absl::Status s = Prepare(); !s.ok()) return s;
  if (request_.stream && !reply_->BeginEvents()) return Interruption();
  writer_->Begin(request_.stream ? &frames_ : nullptr);
  return Send() ? absl::OkStatus() : Interruption();
}

absl::StatusOr<std::unique_ptr<Session>> GenerationJob::NewSession(const Choice& choice) const {
  SessionOptions options;
  options.sampler = request_.sampler;
  options.sampler.seed = seed_ + choice.seed_offset;
  options.stop = request_.stop;
  options.ignore_eos = request_.ignore_eos;
  options.show_special = show_special_;
  options.constraint = constraint_;
  options.prefix_space = space_;
  auto session = Session::Create(&model_->engine(), options);
  if (!session.ok()) return session.status();
  if (absl::Status s = (*session)->Append(prompts_[choice.prompt]); !s.ok()) return s;
  return session;
}

absl::Status GenerationJob::RunGroup(size_t begin, size_t end) {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Session*> pointers;
  std::vector<GenerateOptions> options;
  for (size_t i = begin; i < end; ++i) {
    auto session = NewSession(choices_[i]);
    if (!session.ok()) return session.status();
    sessions.push_back(*std::move(session));
    pointers.push_back(sessions.back().get());
    options.push_back(OptionsFor(i));
  }
  // Before any way out: a Cancel must not find sessions that have gone.
  const absl::Cleanup forget = [this] {
    std::lock_guard lock(mutex_);
    running_.clear();
  };
  {
    std::lock_guard lock(mutex_);
    running_ = pointers;
  }
  if (absl::Status s = Interruption(); !s.ok()) return s;
  for (size_t i = begin; i < end; ++i) Echo(i);
  // Of choices that have a prompt in common one reads it, and the others take it over.
  int64_t cached = -1;
  if (end - begin > 1 && choices_[begin].prompt == choices_[begin + 1].prompt) {
    GenerateOptions only_read = options[0];
    only_read.max_tokens = 0;
    Generation read;
    if (absl::Status s = Generate(pointers[0], only_read, &read); !s.ok()) return s;
    cached = read.cached_tokens;
  }
  std::vector<Generation> results(pointers.size());
  const absl::Status status = GenerateTogether(pointers, options, results);
  if (absl::Status s = Interruption(); !s.ok()) return s;
  // A want of memory is the server's, not the client's: 503, not 429.
  if (absl::IsResourceExhausted(status)) return absl::UnavailableError(status.message());
  if (!status.ok()) return status;
  for (size_t i = begin; i < end; ++i) {
    const Generation& result = results[i - begin];
    const bool first = i == 0 || choices_[i].prompt != choices_[i - 1].prompt;
    if (first) usage_.cached_tokens += i == begin && cached >= 0 ? cached : result.cached_tokens;
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
  options.on_token = [this, choice](const SampleResult& token) { return OnToken(choice, token); };
  options.on_text = [this, choice](std::string_view text) { return OnText(choice, text); };
  options.on_prompt = [this](int64_t, int64_t) {
    if (!GoesOn()) Cancel();
  };
  return options;
}

bool GenerationJob::OnToken(size_t index, const SampleResult& token) {
  Choice& choice = choices_[index];
  last_token_ = Reply::Clock::now();
  if (first_token_ == Reply::Clock::time_point{}) first_token_ = last_token_;
  ++choice.n_tokens;
  metrics_->Tokens(1);
  if (logprobs()) {
    const Tokenizer& tokenizer = *model_->engine().tokenizer();
    const auto bytes = [&](int32_t id) {
      return std::string(tokenizer.TokenBytes(id, SpecialText::kShow));
    };
    TokenInfo info{bytes(token.token), token.logprob, {}};
    for (const TokenLogprob& l : token.top) info.top.push_back({bytes(l.token), l.logprob});
    choice.tokens.push_back(std::move(info));
  }
  return GoesOn();
}

bool GenerationJob::OnText(size_t index, std::string_view text) {
  Choice& choice = choices_[index];
  writer_->Text(index, text, choice.tokens, request_.stream ? &frames_ : nullptr);
  choice.tokens.clear();
  return Send() && writer_->WantsMore(index);
}

void GenerationJob::Echo(size_t index) {
  if (!request_.echo) return;
  std::string text;
  const PlainPrompt& prompt = request_.prompt.plain[choices_[index].prompt];
  if (const auto* given = std::get_if<std::string>(&prompt)) {
    text = *given;
  } else {
    Detokenizer detokenizer(model_->engine().tokenizer());
    for (const int32_t token : prompts_[choices_[index].prompt]) detokenizer.Push(token, &text);
    text += detokenizer.Flush();
  }
  writer_->Text(index, text, {}, request_.stream ? &frames_ : nullptr);
  Send();
}

absl::Status GenerationJob::EndChoice(size_t index, const Generation& result) {
  Frames* const frames = request_.stream ? &frames_ : nullptr;
  Choice& choice = choices_[index];
  if (!choice.tokens.empty()) writer_->Text(index, "", choice.tokens, frames);
  const bool cut =
      result.finish == FinishReason::kLength || result.finish == FinishReason::kContextFull;
  writer_->Finish(index, cut ? AnswerEnd::kLength : AnswerEnd::kStop, frames);
  return Send() ? absl::OkStatus() : Interruption();
}

bool GenerationJob::Send() { return frames_.empty() || reply_->Write(frames_.Take()); }

bool GenerationJob::GoesOn() { return Interruption().ok(); }

absl::Status GenerationJob::Interruption() {
  if (reply_->exchange().gone()) return absl::CancelledError("the client has gone");
  if (Reply::Clock::now() - reply_->begin() > limits_.time) {
    return absl::DeadlineExceededError(absl::StrCat("the answer has taken longer than the ",
                                                    limits_.time.count(), " s that one may take"));
  }
  std::lock_guard lock(mutex_);
  return cancelled_ ? absl::UnavailableError("the server is stopping") : absl::OkStatus();
}

void GenerationJob::Count() {
  GenerationCounts counts;
  counts.queue_seconds = Seconds(waited_);
  int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.n_tokens;
  if (tokens > 0) counts.first_token_seconds = Seconds(first_token_ - reply_->begin());
  if (tokens > 1 && choices_.size() == 1) {
    counts.between_tokens_seconds =
        Seconds(last_token_ - first_token_) / static_cast<double>(tokens - 1);
  }
  metrics_->Generated(counts);
  metrics_->Prompt(usage_.prompt_tokens, usage_.cached_tokens);
  reply_->Note("prompt_tokens", usage_.prompt_tokens);
  reply_->Note("cached_tokens", usage_.cached_tokens);
  reply_->Note("tokens", tokens);
  reply_->Note("queue_ms", counts.queue_seconds * 1000);
  if (counts.first_token_seconds >= 0) {
    reply_->Note("first_token_ms", counts.first_token_seconds * 1000);
  }
}

void GenerationJob::Finish(const absl::Status& status) {
  if (!reply_->streaming()) {
    if (!status.ok()) return reply_->Error(status);
    return reply_->Json(writer_->Body(usage_));
  }
  if (status.ok()) {
    writer_->End(usage_, &frames_);
  } else {
    frames_.Take();  // half of something
    writer_->Fail(status, &frames_);
  }
  Send();
  reply_->EndEvents(status);
}

}  // namespace trine::server
