#include "runtime/engine/embed.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

// Texts that go through the model together.
class Wave {
 public:
  Wave(Engine* engine, Pooling pooling, const EmbedOptions& options)
      : engine_(engine), pooling_(pooling), options_(options) {}

  absl::Status Run(std::span<const TokenSpan> texts, std::span<const size_t> members,
                   std::vector<std::vector<float>>* vectors) {
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Sequence*> pointers;
    std::vector<Pooler> poolers;
    poolers.reserve(members.size());  // observers hold pointers into it
    for (const size_t i : members) {
      sequences.push_back(engine_->NewSequence());
      pointers.push_back(sequences.back().get());
      sequences.back()->set_hidden(!engine_->embeddings());
      poolers.emplace_back(pooling_, options_.normalize, engine_->config().n_embd,
                           static_cast<int64_t>(texts[i].size()));
      if (pooling_ != Pooling::kLast) {
        sequences.back()->set_row_observer(
            [pooler = &poolers.back(), next = int64_t{0}](int64_t position,
                                                          std::span<const float> row) mutable {
              // A pass that failed half-way is run again, and delivers its rows again.
              if (position != next) return;
              ++next;
              pooler->Add(row);
            });
      }
      if (options_.wanted) {
        sequences.back()->set_progress([this, sequence = sequences.back().get()](int64_t, int64_t) {
          if (!options_.wanted()) sequence->Cancel();
        });
      }
      if (absl::Status s = sequences.back()->Append(texts[i]); !s.ok()) return s;
    }
    if (absl::Status s = engine_->Evaluate(pointers); !s.ok()) return s;
    for (size_t k = 0; k < members.size(); ++k) {
      if (pooling_ == Pooling::kLast) poolers[k].Add(sequences[k]->logits());
      (*vectors)[members[k]] = poolers[k].Finish();
    }
    return absl::OkStatus();
  }

 private:
  Engine* engine_;
  Pooling pooling_;
  const EmbedOptions& options_;
};

int64_t BlocksOf(TokenSpan text) {
  return (static_cast<int64_t>(text.size()) + kBlockPositions - 1) / kBlockPositions;
}

}  // namespace

absl::StatusOr<Pooling> DefaultPooling(const Engine& engine) {
  constexpr int64_t kRank = 4;
  const std::string key = absl::StrCat(engine.config().architecture, ".pooling_type");
  const auto type =
      engine.file().metadata().IntegerOr(key, 0, kRank, static_cast<int64_t>(Pooling::kLast));
  if (!type.ok()) return type.status();
  if (*type == kRank) {
    return absl::UnimplementedError(
        absl::StrCat(key, " is 4: the file is a reranker, which gives scores and no vectors"));
  }
  return static_cast<Pooling>(*type);
}

absl::Status CheckTexts(const Engine& engine, std::span<const TokenSpan> texts) {
  if (!engine.can_embed()) {
    return absl::FailedPreconditionError(
        "the engine was opened for generation: embeddings need one that was opened for them");
  }
  const int64_t n_vocab = engine.config().n_vocab;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto size = static_cast<int64_t>(texts[i].size());
    if (size == 0) return Invalid("text ", i + 1, " is empty: there is nothing to embed");
    if (size > engine.context()) {
      return absl::OutOfRangeError(absl::StrCat("text ", i + 1, " has ", size,
                                                " tokens, the context holds ", engine.context()));
    }
    for (const int32_t token : texts[i]) {
      if (token >= 0 && token < n_vocab) continue;
      return Invalid("text ", i + 1, ": token ", token, " is not in the vocabulary of ", n_vocab);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<float>>> Embed(Engine* engine,
                                                      std::span<const TokenSpan> texts,
                                                      const EmbedOptions& options) {
  if (absl::Status s = CheckNormalize(options.normalize); !s.ok()) return s;
  if (absl::Status s = CheckTexts(*engine, texts); !s.ok()) return s;
  engine->BeginRequest();
  absl::StatusOr<Pooling> pooling = DefaultPooling(*engine);
  if (options.pooling.has_value()) pooling = *options.pooling;
  if (!pooling.ok()) return pooling.status();

  // Sorted by length, so that texts of a wave are done at about the same time.
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() > texts[b].size(); });
  std::vector<int64_t> blocks;
  for (const size_t i : order) blocks.push_back(BlocksOf(texts[i]));

  std::vector<std::vector<float>> vectors(texts.size());
  Wave wave(engine, *pooling, options);
  BlockBudget one_sequence(engine->limits().max_blocks_per_sequence());
  BlockBudget& budget = engine->embeddings() ? engine->text_budget() : one_sequence;
  const auto most = static_cast<size_t>(engine->limits().max_sequences);
  for (size_t done = 0; done < order.size();) {
    const size_t limit = std::min(order.size() - done, most);
    const size_t n = budget.Take(std::span(blocks).subspan(done, limit));
    const absl::Status s = [&] {
      const absl::Cleanup give_back = [&] {
        const auto first = blocks.begin() + static_cast<ptrdiff_t>(done);
        budget.GiveBack(std::accumulate(first, first + static_cast<ptrdiff_t>(n), int64_t{0}));
      };
      return wave.Run(texts, std::span(order).subspan(done, n), &vectors);
    }();
    if (!s.ok()) return s;
    done += n;
    if (options.on_progress &&
        !options.on_progress(static_cast<int64_t>(done), static_cast<int64_t>(texts.size()))) {
      return absl::CancelledError("the embedding was cancelled");
    }
  }
  return vectors;
}

}  // namespace trine
