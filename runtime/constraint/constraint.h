// Constrained output: a grammar or a JSON Schema together with a vocabulary says which tokens may
// come next, so that whatever is sampled is a text of the grammar. docs/constrained-output.md says
// what is promised.
#ifndef TRINE_RUNTIME_CONSTRAINT_CONSTRAINT_H_
#define TRINE_RUNTIME_CONSTRAINT_CONSTRAINT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "runtime/constraint/automaton.h"
#include "runtime/constraint/grammar.h"
#include "runtime/constraint/stack_table.h"
#include "runtime/constraint/token_effects.h"
#include "runtime/constraint/token_trie.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

// A vocabulary made ready for constraints; one for all of a tokenizer's. Immutable; any thread.
struct ConstraintVocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const constraint::TokenTrie> trie;

  static ConstraintVocabulary Of(std::shared_ptr<const Tokenizer> tokenizer);
};

// Immutable but for caches of bounded size; any thread, several at once.
class Constraint {
 public:
  // INVALID_ARGUMENT in one line for a grammar or schema that can't be read, can't be honoured, or
  // that no tokens of the vocabulary can write.
  static absl::StatusOr<std::shared_ptr<const Constraint>> FromGbnf(
      std::string_view text, const ConstraintVocabulary& vocabulary);
  static absl::StatusOr<std::shared_ptr<const Constraint>> FromJsonSchema(
      std::string_view text, const ConstraintVocabulary& vocabulary);

  const Tokenizer& tokenizer() const { return *vocabulary_.tokenizer; }
  // 32-bit words of a mask over the vocabulary.
  size_t mask_words() const { return mask_words_; }
  const constraint::Automaton& automaton() const { return automaton_; }

 private:
  friend class ConstraintState;

  // The tokens that may follow a set of stacks.
  struct Followers {
    std::vector<uint32_t> mask;
    int64_t max_cost = 0;  // of finishing, behind the token that is worst in this
    // Those that depend on the stack, with the cost behind them.
    struct Costly {
      int32_t token;
      int64_t cost;
    };
    std::vector<Costly> by_stack;
  };

  Constraint(constraint::Automaton automaton, const ConstraintVocabulary& vocabulary);
  static absl::StatusOr<std::shared_ptr<const Constraint>> Create(
      const constraint::Grammar& grammar, constraint::DeadRules dead_rules,
      const ConstraintVocabulary& vocabulary);

  std::shared_ptr<const constraint::TokenEffects> EffectsOn(uint32_t state) const;
  std::shared_ptr<const Followers> FollowersOf(constraint::StackTable* table,
                                               constraint::StackSet set) const;
  Followers FindFollowers(constraint::StackTable* table, constraint::StackSet set) const;
  // Those that leave no more than `max_cost` to be done.
  void LimitedMask(const constraint::StackTable& table, constraint::StackSet set,
                   const Followers& followers, int64_t max_cost, std::span<uint32_t> mask) const;
  void AddEnds(std::span<uint32_t> mask) const;

  const constraint::Automaton automaton_;
  const ConstraintVocabulary vocabulary_;
  const std::vector<int64_t> costs_;
  const std::vector<uint32_t> classes_;
  const size_t mask_words_;

  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<uint32_t, std::shared_ptr<const constraint::TokenEffects>> effects_
      ABSL_GUARDED_BY(mutex_);
  mutable size_t effects_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable absl::flat_hash_map<constraint::StackTable::Hash, std::shared_ptr<const Followers>>
      followers_ ABSL_GUARDED_BY(mutex_);
  mutable size_t followers_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Where a text stands in a constraint. Copying forks it; the copy shares nothing that changes. One
// thread at a time.
class ConstraintState {
 public:
  explicit ConstraintState(std::shared_ptr<const Constraint> constraint);
  ConstraintState(const ConstraintState& other);
  ConstraintState& operator=(const ConstraintState& other);
  ConstraintState(ConstraintState&&) = default;
  ConstraintState& operator=(ConstraintState&&) = default;

  static constexpr int64_t kNoLimit = INT64_MAX;

  // Sets the bits of the tokens that may come next and clears all others; `mask` has at least
  // mask_words() words. There is always one, but behind the end of the text, or where the text can
  // only end and the vocabulary has no token for that.
  //
  // `tokens_left` is how many may still come. Where the text can be finished with so many, only
  // tokens are allowed after which it still can.
  void Mask(int64_t tokens_left, std::span<uint32_t> mask);

  // INVALID_ARGUMENT for one that may not come next, RESOURCE_EXHAUSTED where the grammar is too
  // ambiguous to be followed; nothing has changed then.
  absl::Status Accept(int32_t token);

  bool IsComplete() const { return table_.done(now_); }  // the text may end here
  // It can only end here: no token of text may follow.
  bool MustEnd() const { return now_ == constraint::StackTable::kDone; }
  bool ended() const { return ended_; }  // an end-of-generation token was accepted
  // So many tokens finish the text.
  int64_t TokensToFinish() const { return table_.cost(now_); }
  const Constraint& constraint() const { return *constraint_; }

 private:
  std::shared_ptr<const Constraint> constraint_;
  constraint::StackTable table_;
  constraint::StackSet now_;
  bool ended_ = false;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_CONSTRAINT_CONSTRAINT_H_
