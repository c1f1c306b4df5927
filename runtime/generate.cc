#include "runtime/generate.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEndOfText:
      return "eos";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kCaller:
      return "caller";
  }
  return "none";
}

Session::Session(Engine* engine, const SessionOptions& options, Sampler sampler, StopMatcher stop)
    : engine_(engine),
      options_(options),
      sequence_(engine->NewSequence()),
      sampler_(std::move(sampler)),
      stop_(std::move(stop)) {
  if (options.logits_hash) {
    sequence_->set_row_observer(
        [this](int64_t position, std::span<const float> row) { hash_.Add(position, row); });
  }
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Engine* engine,
                                                         const SessionOptions& options) {
  auto sampler =
      Sampler::Create(options.sampler, static_cast<int32_t>(engine->model().config().n_vocab));
  if (!sampler.ok()) return sampler.status();
  auto stop = StopMatcher::Create(options.stop);
  if (!stop.ok()) return stop.status();
  return std::unique_ptr<Session>(
      new Session(engine, options, *std::move(sampler), *std::move(stop)));
}

absl::Status Session::Append(std::span<const int32_t> tokens) { return sequence_->Append(tokens); }

absl::Status Session::AppendText(std::string_view text, const EncodeOptions& encode) {
  auto tokens = engine_->tokenizer()->Encode(text, encode);
  if (!tokens.ok()) return tokens.status();
  return Append(*tokens);
}

void Session::Truncate(int64_t n) {
  sequence_->Truncate(n);
  // The sampler's window is that of the tokens that remain; its count of draws goes on, so that
  // another try gives another answer.
  const uint64_t draws = sampler_.state().draws;
  sampler_.Reset();
  SamplerState state = sampler_.state();
  state.draws = n <= 0 ? 0 : draws;
  sampler_.Restore(state);
  accepted_ = 0;
}

absl::Status Session::Evaluate() {
  Session* const sessions[] = {this};
  return EvaluateTogether(sessions);
}

absl::Status EvaluateTogether(std::span<Session* const> sessions) {
  if (sessions.empty()) return absl::OkStatus();
  std::vector<Sequence*> sequences;
  for (Session* session : sessions) {
    session->sequence_->ClearCancel();
    sequences.push_back(session->sequence_.get());
  }
  return sessions.front()->engine_->Evaluate(sequences);
}

absl::StatusOr<int32_t> Session::Sample() {
  const std::span<const float> logits = sequence_->logits();
  if (logits.empty()) {
    return absl::FailedPreconditionError("there are no logits to sample from: evaluate first");
  }
  const std::vector<int32_t>& tokens = sequence_->tokens();
  for (; accepted_ < sequence_->size(); ++accepted_) {
    sampler_.Accept(tokens[static_cast<size_t>(accepted_)]);
  }
  const int32_t token = sampler_.Sample(logits);
  if (token == kNoToken) {
    return absl::FailedPreconditionError("no token is allowed: every one of them is banned");
  }
  const int32_t appended[] = {token};
  if (absl::Status s = sequence_->Append(appended); !s.ok()) return s;
  return token;
}

// Several sessions in step. A session leaves when it is finished; the others go on.
class GenerateLoop {
 public:
  GenerateLoop(std::span<Session* const> sessions, std::span<const GenerateOptions> options,
               std::span<Generation> results) {
    for (size_t i = 0; i < sessions.size(); ++i) {
      jobs_.push_back(std::make_unique<Job>(sessions[i], &options[i], &results[i]));
    }
  }

  absl::Status Run() {
    if (absl::Status s = Begin(); !s.ok()) return s;
    while (true) {
      std::vector<Job*> running;
      std::vector<Sequence*> sequences;
      for (const auto& job : jobs_) {
        if (job->result->finish != FinishReason::kNone) continue;
        running.push_back(job.get());
        sequences.push_back(job->session->sequence_.get());
      }
      if (running.empty()) break;
      const absl::Status evaluated = running.front()->session->engine_->Evaluate(sequences);
      if (!evaluated.ok() && !absl::IsCancelled(evaluated)) return End(evaluated);
      if (absl::Status s = Advance(running, absl::IsCancelled(evaluated)); !s.ok()) return End(s);
    }
    return End(absl::OkStatus());
  }

 private:
  struct Job {
    Job(Session* s, const GenerateOptions* o, Generation* r)
        : session(s),
          options(o),
          result(r),
          detokenizer(
              s->engine_->tokenizer(),
              {.special = s->options_.show_special ? SpecialText::kShow : SpecialText::kHide}) {}
    Session* session;
    const GenerateOptions* options;
    Generation* result;
    Detokenizer detokenizer;
    std::string piece;
    bool caller_has_enough = false;
    absl::Status status;
  };

  absl::Status Begin() {
    begin_ = Clock::now();
    for (const auto& job : jobs_) {
      *job->result = Generation{};
      if (job->session->sequence_->size() == 0) {
        return absl::FailedPreconditionError("there is nothing to go on from: the prompt is empty");
      }
      if (job->options->max_tokens < -1) {
        return absl::InvalidArgumentError(
            absl::StrCat("max_tokens is ", job->options->max_tokens,
                         ": a count, or -1 to go on until the context is full"));
      }
    }
    for (const auto& job : jobs_) {
      Sequence& sequence = *job->session->sequence_;
      job->result->prompt_tokens = sequence.pending();
      sequence.ClearCancel();
      job->session->stop_.Reset();
      if (job->options->on_prompt) sequence.set_progress(job->options->on_prompt);
      // Nothing asked for: the prompt is read all the same.
      if (job->options->max_tokens == 0) only_prompt_.push_back(&sequence);
    }
    if (!only_prompt_.empty()) {
      const absl::Status s = jobs_.front()->session->engine_->Evaluate(only_prompt_);
      if (!s.ok() && !absl::IsCancelled(s)) return End(s);
      for (const auto& job : jobs_) {
        if (job->options->max_tokens != 0) continue;
        job->result->finish =
            job->session->sequence_->cancelled() ? FinishReason::kCancelled : FinishReason::kLength;
        job->result->prompt_ms = MillisecondsSince(begin_);
      }
    }
    return absl::OkStatus();
  }

  // One token for each session that has its logits. Sampling and detokenising run on the lane.
  absl::Status Advance(const std::vector<Job*>& running, bool some_cancelled) {
    std::vector<Job*> ready;
    for (Job* job : running) {
      Sequence& sequence = *job->session->sequence_;
      sequence.set_progress(nullptr);
      if (job->result->prompt_ms == 0 && sequence.pending() == 0) {
        job->result->prompt_ms = MillisecondsSince(begin_);
      }
      if (sequence.cancelled()) {
        job->result->finish = FinishReason::kCancelled;
      } else if (sequence.pending() == 0) {
        ready.push_back(job);
      } else if (!some_cancelled) {
        return absl::InternalError("a sequence was left unevaluated");
      }
    }
    Session& any = *running.front()->session;
    any.engine_->lane().RunSampling(static_cast<int>(ready.size()), any.sampler_.vocab_size(),
                                    [&](int i) { SampleOne(ready[static_cast<size_t>(i)]); });
    for (Job* job : ready) {
      if (!job->status.ok()) return job->status;
      Show(job, job->piece);
    }
    return absl::OkStatus();
  }

  static void SampleOne(Job* job) {
    Session& session = *job->session;
    Generation& result = *job->result;
    job->piece.clear();
    const int64_t max = job->options->max_tokens;
    if (session.sequence_->size() >= session.sequence_->max_context()) {
      result.finish = FinishReason::kContextFull;
      return;
    }
    const auto token = session.Sample();
    if (!token.ok()) {
      job->status = token.status();
      return;
    }
    if (!session.options_.ignore_eos && session.engine_->tokenizer()->IsEndOfGeneration(*token)) {
      result.finish = FinishReason::kEndOfText;
      return;
    }
    result.tokens.push_back(*token);
    job->detokenizer.Push(*token, &job->piece);
    if (max >= 0 && static_cast<int64_t>(result.tokens.size()) >= max) {
      result.finish = FinishReason::kLength;
    }
  }

  static void Show(Job* job, std::string_view text) {
    StopMatcher& stop = job->session->stop_;
    if (stop.stopped()) return;
    Emit(job, stop.Push(text));
    if (stop.stopped()) job->result->finish = FinishReason::kStopString;
  }

  static void Emit(Job* job, std::string_view text) {
    if (text.empty()) return;
    job->result->text.append(text);
    if (!job->options->on_text || job->caller_has_enough) return;
    job->caller_has_enough = !job->options->on_text(text);
    if (job->caller_has_enough && job->result->finish == FinishReason::kNone) {
      job->result->finish = FinishReason::kCaller;
    }
  }

  // What was held back is final now.
  absl::Status End(const absl::Status& status) {
    for (const auto& job : jobs_) {
      Session& session = *job->session;
      session.sequence_->set_progress(nullptr);
      Show(job.get(), job->detokenizer.Flush());
      if (!session.stop_.stopped()) Emit(job.get(), session.stop_.Flush());
      job->result->generate_ms = MillisecondsSince(begin_) - job->result->prompt_ms;
    }
    return status;
  }

  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Sequence*> only_prompt_;
  Clock::time_point begin_;
};

absl::Status Session::Generate(const GenerateOptions& options, Generation* result) {
  Session* const sessions[] = {this};
  return GenerateTogether(sessions, std::span(&options, 1), std::span(result, 1));
}

absl::Status GenerateTogether(std::span<Session* const> sessions,
                              std::span<const GenerateOptions> options,
                              std::span<Generation> results) {
  if (sessions.empty()) return absl::OkStatus();
  for (const Session* s : sessions) {
    if (&s->engine() != &sessions.front()->engine()) {
      return absl::InvalidArgumentError("the sessions belong to different engines");
    }
  }
  return GenerateLoop(sessions, options, results).Run();
}

}  // namespace trine
