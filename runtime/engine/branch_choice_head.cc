#include "runtime/engine/branch_choice_head.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/chat/chat_template.h"
#include "runtime/engine/embed.h"
#include "runtime/head/train_head.h"

namespace trine {
namespace {

EmbedOptions LastRow() {
  EmbedOptions options;
  options.pooling = Pooling::kLast;
  options.normalize = kNormalizeNone;
  return options;
}

// Encodes several texts. Reads the template once, because reading it takes longer than the rest.
class Encoder {
 public:
  static absl::StatusOr<Encoder> Create(const Engine& engine, PromptForm form) {
    Encoder encoder(engine);
    if (form == PromptForm::kPlain) return encoder;
    auto chat = ChatTemplate::FromModel(engine.file().metadata(), *engine.tokenizer());
    if (!chat.ok()) return chat.status();
    encoder.chat_ = *std::move(chat);
    return encoder;
  }

  absl::StatusOr<std::vector<int32_t>> Encode(const std::string& text) const {
    if (!chat_.has_value()) {
      return engine_.tokenizer()->Encode(text, {.add_special = true, .parse_special = true});
    }
    std::vector<jinja::Value> messages = {ChatMessage("user", text)};
    const auto rendered = chat_->Render(jinja::Given::OfList(std::move(messages)), ChatOptions{});
    if (!rendered.ok()) return rendered.status();
    return EncodeChat(*engine_.tokenizer(), *rendered);
  }

 private:
  explicit Encoder(const Engine& engine) : engine_(engine) {}

  const Engine& engine_;
  std::optional<ChatTemplate> chat_;
};

absl::Status AtLine(int64_t line, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("line ", line, ": ", status.message()));
}

// Checks the length here, where the line is still known.
absl::Status CheckLength(const Engine& engine, const std::vector<int32_t>& tokens) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (size == 0) return absl::InvalidArgumentError("a text is empty");
  if (size <= engine.context()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("a text has ", size, " tokens, the context holds ", engine.context()));
}

using Clock = std::chrono::steady_clock;

constexpr int kTokens = 16, kRounds = 9, kRowsOfARound = 100;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

absl::StatusOr<double> TokenMicroseconds(Engine* engine, const std::vector<int32_t>& prompt) {
  const std::unique_ptr<Sequence> sequence = engine->NewSequence();
  Sequence* const pointers[] = {sequence.get()};
  if (absl::Status s = sequence->Append(prompt); !s.ok()) return s;
  if (absl::Status s = engine->Evaluate(pointers); !s.ok()) return s;
  std::vector<double> times;
  for (int i = 0; i < kTokens && sequence->size() < engine->context(); ++i) {
    const std::span<const float> logits = sequence->logits();
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (absl::Status s = sequence->Append(std::span(&best, 1)); !s.ok()) return s;
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = engine->Evaluate(pointers); !s.ok()) return s;
    times.push_back(MicrosecondsSince(begin));
  }
  return times.empty() ? 0.0 : Median(std::move(times));
}

double HeadMicroseconds(const Head& head, std::vector<float> row) {
  std::vector<double> times;
  volatile double sink = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kRowsOfARound; ++i) {
      row[0] = static_cast<float>(i);
      sink = head.linear.LogOdds(row);
    }
    times.push_back(MicrosecondsSince(begin) / kRowsOfARound);
  }
  static_cast<void>(sink);
  return Median(std::move(times));
}

}  // namespace

ModelIdentity IdentityOf(const Engine& engine) {
  return IdentityOf(engine.file(), engine.config());
}

absl::StatusOr<std::vector<int32_t>> EncodePrompt(const Engine& engine, const std::string& text,
                                                  PromptForm form) {
  const auto encoder = Encoder::Create(engine, form);
  if (!encoder.ok()) return encoder.status();
  return encoder->Encode(text);
}

absl::StatusOr<std::vector<std::vector<float>>> ReadRows(Engine* engine,
                                                         std::span<const std::string> texts,
                                                         PromptForm form) {
  const auto encoder = Encoder::Create(*engine, form);
  if (!encoder.ok()) return encoder.status();
  std::vector<std::vector<int32_t>> tokens;
  for (const std::string& text : texts) {
    auto encoded = encoder->Encode(text);
    if (!encoded.ok()) return encoded.status();
    if (absl::Status s = CheckLength(*engine, *encoded); !s.ok()) return s;
    tokens.push_back(*std::move(encoded));
  }
  return Embed(engine, std::vector<TokenSpan>(tokens.begin(), tokens.end()), LastRow());
}

absl::Status ReadRows(Engine* engine, PromptForm form, HeadData* data,
                      const std::function<bool(int64_t, int64_t)>& on_progress) {
  const auto encoder = Encoder::Create(*engine, form);
  if (!encoder.ok()) return encoder.status();
  std::vector<std::vector<int32_t>> tokens;
  for (const Example& example : data->examples) {
    for (const std::string& text : example.texts) {
      auto encoded = encoder->Encode(text);
      if (!encoded.ok()) return AtLine(example.line, encoded.status());
      if (absl::Status s = CheckLength(*engine, *encoded); !s.ok()) return AtLine(example.line, s);
      tokens.push_back(*std::move(encoded));
    }
  }
  EmbedOptions options = LastRow();
  options.on_progress = on_progress;
  auto rows = Embed(engine, std::vector<TokenSpan>(tokens.begin(), tokens.end()), options);
  if (!rows.ok()) return rows.status();
  size_t next = 0;
  for (Example& example : data->examples) {
    example.rows.clear();
    for (size_t k = 0; k < example.texts.size(); ++k) {
      example.rows.push_back(std::move((*rows)[next++]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BranchChoiceHead> BranchChoiceHead::Create(Engine* engine, Head head) {
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  if (absl::Status s = CheckFits(head, IdentityOf(*engine)); !s.ok()) return s;
  return BranchChoiceHead(engine, std::move(head));
}

absl::StatusOr<BranchChoiceHead::Choice> BranchChoiceHead::ChooseLabel(
    const std::string& prompt) const {
  return Choose(HeadKind::kLabel, std::span(&prompt, 1));
}

absl::StatusOr<BranchChoiceHead::Choice> BranchChoiceHead::ChooseBranch(
    std::span<const std::string> branches) const {
  if (branches.size() < 2) return absl::InvalidArgumentError("a choice is between two or more");
  return Choose(HeadKind::kBranch, branches);
}

absl::StatusOr<BranchChoiceHead::Choice> BranchChoiceHead::Choose(
    HeadKind kind, std::span<const std::string> texts) const {
  if (kind != head_.kind) {
    return absl::FailedPreconditionError(
        head_.kind == HeadKind::kLabel
            ? "the head was trained with prompts that name their branches: it takes one text"
            : "the head was trained with branches: it takes a text for each of them");
  }
  const auto rows = ReadRows(engine_, texts, head_.form);
  if (!rows.ok()) return rows.status();
  Choice choice;
  choice.probabilities = AnswerProbabilities(head_, *rows);
  choice.best = BestAnswer(choice.probabilities);
  return choice;
}

absl::StatusOr<HeadCost> MeasureHeadCost(Engine* engine, const Head& head,
                                         const std::string& text) {
  const auto prompt = EncodePrompt(*engine, text, head.form);
  if (!prompt.ok()) return prompt.status();
  const auto token = TokenMicroseconds(engine, *prompt);
  if (!token.ok()) return token.status();
  HeadCost cost;
  cost.token_ms = *token / 1000;
  cost.head_us =
      HeadMicroseconds(head, std::vector<float>(static_cast<size_t>(head.model.n_embd), 0.5f));
  return cost;
}

}  // namespace trine
