#include "runtime/head/branch_choice_head.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/chat_messages.h"
#include "runtime/chat_template.h"
#include "runtime/embed.h"
#include "runtime/head/head_report.h"

namespace trine {
namespace {

EmbedOptions LastRow() {
  EmbedOptions options;
  options.pooling = Pooling::kLast;
  options.normalize = kNormalizeNone;
  return options;
}

// One text's tokens after another's. Reading the template anew for each would take longer than the
// rest.
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

// Checked here, where the line is still known.
absl::Status CheckLength(const Engine& engine, const std::vector<int32_t>& tokens) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (size == 0) return absl::InvalidArgumentError("a text is empty");
  if (size <= engine.context()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("a text has ", size, " tokens, the context holds ", engine.context()));
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

}  // namespace trine
