// Constrained output: determines from a grammar or a JSON Schema which tokens of a vocabulary may
// come next, so that every sampled text is a text of the grammar. docs/constrained-output.md says
// what is promised.
#pragma once

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
#include "runtime/constraint/grammar/automaton.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/grammar/token_trie.h"
#include "runtime/constraint/mask/stack_table.h"
#include "runtime/constraint/mask/token_effects.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

// A vocabulary that is prepared for constraints. All constraints for the same tokenizer can share
// it. Immutable; any thread may use it.
struct ConstraintVocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const constraint::TokenTrie> trie;

  static ConstraintVocabulary Of(std::shared_ptr<const Tokenizer> tokenizer);
};

// A compiled grammar or schema. Immutable except for caches of bounded size; several threads may
// use it at once.
class Constraint {
 public:
  // Compile a grammar or a schema. Return INVALID_ARGUMENT, with a message of one line, if it is
  // malformed, can't be honoured, or has no text that the vocabulary's tokens can write.
  static absl::StatusOr<std::shared_ptr<const Constraint>> FromGbnf(
      std::string_view text, const ConstraintVocabulary& vocabulary);
  static absl::StatusOr<std::shared_ptr<const Constraint>> FromJsonSchema(
      std::string_view text, const ConstraintVocabulary& vocabulary);

  const Tokenizer& tokenizer() const { return *vocabulary_.tokenizer; }
  // Returns the number of 32-bit words in a mask: bit i % 32 of word i / 32 stands for token i.
  size_t mask_words() const { return mask_words_; }
  const constraint::Automaton& automaton() const { return automaton_; }

 private:
  friend class ConstraintState;

  // The tokens that may follow a set of stacks.
  struct Followers {
    std::vector<uint32_t> mask;
    int64_t max_cost = 0;  // the highest cost of finishing after any of the tokens
    // A token that depends on the stack, and the cost of finishing after the token.
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
  // Adds the followers after which finishing costs at most `max_cost` to `mask`.
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

// The position of a text in a constraint. A copy shares nothing mutable with the original. One
// thread at a time.
class ConstraintState {
 public:
  explicit ConstraintState(std::shared_ptr<const Constraint> constraint);
  ConstraintState(const ConstraintState& other);
  ConstraintState& operator=(const ConstraintState& other);
  ConstraintState(ConstraintState&&) = default;
  ConstraintState& operator=(ConstraintState&&) = default;

  static constexpr int64_t kNoLimit = INT64_MAX;

  // Sets the bits of the tokens that may come next and clears all others. Sets no bit after the end
  // of the text, or if the text can only end and the vocabulary has no token for that. REQUIRES:
  // `mask` has at least mask_words() words.
  //
  // `tokens_left` is the number of tokens that may still come, or kNoLimit. If they are enough to
  // finish the text, allows only tokens after which the remaining tokens are still enough, and
  // where the text is nested very deep, only tokens that bring its end nearer. If they are not
  // enough, allows all tokens that may follow.
  void Mask(int64_t tokens_left, std::span<uint32_t> mask);

  // Moves the position past a token. Accepts any token that may follow, whatever limit Mask was
  // given. Returns INVALID_ARGUMENT if the token must not come next, and RESOURCE_EXHAUSTED if the
  // grammar is too ambiguous or nested too deep to be followed. After an error the position is
  // unchanged.
  absl::Status Accept(int32_t token);

  // Returns whether the text may end here.
  bool IsComplete() const { return table_.done(now_); }
  // Returns whether the text can only end here: no text token may follow.
  bool MustEnd() const { return now_ == constraint::StackTable::kDone; }
  bool ended() const { return ended_; }  // true: an end-of-generation token was accepted
  // Returns a number of tokens that is enough to finish the text.
  int64_t TokensToFinish() const { return table_.cost(now_); }
  const Constraint& constraint() const { return *constraint_; }

 private:
  std::shared_ptr<const Constraint> constraint_;
  constraint::StackTable table_;
  constraint::StackSet now_;
  bool ended_ = false;
};

}  // namespace trine
