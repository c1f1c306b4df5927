// Embeddings and heads in the C API.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/c_api/c_api_support.h"
#include "runtime/engine/embed.h"
#include "runtime/head/head_file.h"

namespace trine::c_api {
namespace {

absl::StatusOr<Pooling> PoolingOf(uint32_t number, const Engine& engine) {
  switch (number) {
    case TRINE_POOLING_DEFAULT:
      return DefaultPooling(engine);
    case TRINE_POOLING_NONE:
      return Pooling::kNone;
    case TRINE_POOLING_MEAN:
      return Pooling::kMean;
    case TRINE_POOLING_CLS:
      return Pooling::kCls;
    case TRINE_POOLING_LAST:
      return Pooling::kLast;
  }
  return Invalid("pooling is ", number, ": 0 to 4");
}

absl::StatusOr<int32_t> NormalizeOf(int32_t number) {
  if (number == TRINE_NORMALIZE_DEFAULT) return kNormalizeEuclidean;
  if (number == TRINE_NORMALIZE_MAX) return kNormalizeMax;
  if (number == TRINE_NORMALIZE_NONE) return kNormalizeNone;
  if (number >= 1 && number <= kLargestNorm) return number;
  return Invalid("normalize is ", number, ": -2 to ", kLargestNorm);
}

absl::StatusOr<EmbedOptions> MakeOptions(const trine_embed_options* given, const Engine& engine) {
  trine_embed_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  EmbedOptions options;
  const auto pooling = PoolingOf(read.pooling, engine);
  if (!pooling.ok()) return pooling.status();
  options.pooling = *pooling;
  const auto normalize = NormalizeOf(read.normalize);
  if (!normalize.ok()) return normalize.status();
  options.normalize = *normalize;
  if (read.on_progress != nullptr) {
    options.on_progress = [call = read.on_progress, user = read.user](int64_t done, int64_t total) {
      const InCallback inside(Callback::kOther, nullptr);
      return call(user, done, total) == 0;
    };
  }
  return options;
}

// Returns the texts of an array as `Text`s, which are made from a pointer and a size.
template <class Text, class Unit>
absl::StatusOr<std::vector<Text>> Texts(const Unit* const* texts, const size_t* lengths,
                                        size_t count) {
  if (count != 0 && (texts == nullptr || lengths == nullptr)) {
    return NullArgument("texts or lengths");
  }
  std::vector<Text> all;
  for (size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr && lengths[i] != 0) return NullArgument("a text");
    all.emplace_back(texts[i], lengths[i]);
  }
  return all;
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

int32_t trine_embed(trine_engine* engine, const int32_t* const* texts, const size_t* lengths,
                    size_t count, const trine_embed_options* given, float* values, size_t capacity,
                    size_t* n_values, trine_failure* why) {
  return OnEngine(engine, why, [&](trine::Engine& on) -> absl::Status {
    if (n_values == nullptr) return NullArgument("n_values");
    *n_values = 0;
    if (absl::Status s = InCallback::MayEvaluate(on); !s.ok()) return s;
    if (values == nullptr && capacity != 0) return NullArgument("values");
    const auto options = MakeOptions(given, on);
    if (!options.ok()) return options.status();
    const auto spans = Texts<trine::TokenSpan>(texts, lengths, count);
    if (!spans.ok()) return spans.status();
    if (absl::Status s = trine::CheckTexts(on, *spans); !s.ok()) return s;
    size_t rows = 0;
    for (const trine::TokenSpan& text : *spans) {
      rows += options->pooling == trine::Pooling::kNone ? text.size() : 1;
    }
    *n_values = rows * static_cast<size_t>(on.config().n_embd);
    if (*n_values > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("there are ", *n_values, " values, the array holds ", capacity));
    }
    const auto vectors = trine::Embed(&on, *spans, *options);
    if (!vectors.ok()) return vectors.status();
    for (const std::vector<float>& vector : *vectors) {
      values = std::copy(vector.begin(), vector.end(), values);
    }
    return absl::OkStatus();
  });
}

// Heads.

int32_t trine_head_open(trine_engine* engine, const char* path, trine_head** head,
                        trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (head == nullptr) return NullArgument("head");
    *head = nullptr;
    auto of = Find(engine);
    if (!of.ok()) return of.status();
    if (path == nullptr) return NullArgument("path");
    trine::Engine* const model = (*of)->engine.get();
    if (!model->can_embed()) {
      return absl::FailedPreconditionError(
          "the engine was opened without rows of the hidden state, which a head looks at");
    }
    const auto read = trine::ReadHead(path);
    if (!read.ok()) return read.status();
    auto chooser = trine::BranchChoiceHead::Create(model, *read);
    if (!chooser.ok()) return chooser.status();
    auto value = trine::ValueHead::Create(read->model, *read);
    if (!value.ok()) return value.status();
    *head = NewHandle(std::make_shared<HeadObject>(
        HeadObject{*std::move(of), *std::move(chooser), *std::move(value)}));
    return absl::OkStatus();
  });
}

void trine_head_close(trine_head* head) { Close(head); }

int32_t trine_head_describe(const trine_head* head, trine_head_info* info) {
  return Guarded(nullptr, [&]() -> absl::Status {
    const auto object = Find(head);
    if (!object.ok()) return object.status();
    if (info == nullptr) return NullArgument("info");
    if (!PlausibleSize(*info)) return BadStruct("info");
    const trine::Head& h = (*object)->chooser.head();
    trine_head_info out{};
    out.kind = h.kind == trine::HeadKind::kLabel ? TRINE_HEAD_LABEL : TRINE_HEAD_BRANCH;
    out.chat = h.form == trine::PromptForm::kChat ? 1 : 0;
    for (size_t i = 0; i < h.labels.size(); ++i) CopyText(h.labels[i], out.labels[i]);
    WriteStruct(out, info);
    return absl::OkStatus();
  });
}

int32_t trine_head_choose(const trine_head* head, const char* const* texts, const size_t* lengths,
                          size_t count, size_t* best, double* probabilities, size_t capacity,
                          trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    const auto object = Find(head);
    if (!object.ok()) return object.status();
    if (best == nullptr) return NullArgument("best");
    *best = 0;
    if (absl::Status s = InCallback::MayEvaluate(*(*object)->of->engine); !s.ok()) return s;
    const trine::BranchChoiceHead& chooser = (*object)->chooser;
    const auto views = Texts<std::string_view>(texts, lengths, count);
    if (!views.ok()) return views.status();
    const std::vector<std::string> all(views->begin(), views->end());
    const bool label = chooser.head().kind == trine::HeadKind::kLabel;
    if (label ? count != 1 : count < 2) {
      return absl::FailedPreconditionError(
          absl::StrCat("there are ", count, " texts: a head ",
                       label ? "for labels takes one" : "for branches takes two or more"));
    }
    const size_t answers = label ? 2 : count;
    if (probabilities != nullptr && capacity < answers) {
      return absl::OutOfRangeError(
          absl::StrCat("there are ", answers, " probabilities, the array holds ", capacity));
    }
    const auto choice = label ? chooser.ChooseLabel(all[0]) : chooser.ChooseBranch(all);
    if (!choice.ok()) return choice.status();
    *best = choice->best;
    if (probabilities != nullptr) {
      std::copy(choice->probabilities.begin(), choice->probabilities.end(), probabilities);
    }
    return absl::OkStatus();
  });
}

int32_t trine_session_head_value(trine_session* session, const trine_head* head, double* log_odds,
                                 trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& s) -> absl::Status {
    const auto object = Find(head);
    if (!object.ok()) return object.status();
    if (log_odds == nullptr) return NullArgument("log_odds");
    if (absl::Status may = InCallback::MayEvaluate(s.engine()); !may.ok()) return may;
    if ((*object)->of->engine.get() != &s.engine()) {
      return absl::InvalidArgumentError("the head was opened for another engine");
    }
    const auto row = s.HiddenRow();
    if (!row.ok()) return row.status();
    *log_odds = (*object)->value.LogOdds(*row);
    return absl::OkStatus();
  });
}

}  // extern "C"
