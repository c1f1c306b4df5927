#include "runtime/constraint/mask/constraint.h"

#include <algorithm>
#include <utility>

#include "runtime/base/invalid.h"
#include "runtime/constraint/schema/schema_compiler.h"

namespace trine {

using constraint::AddToMask;
using constraint::Automaton;
using constraint::Grammar;
using constraint::StackSet;
using constraint::StackTable;
using constraint::TokenEffects;
using constraint::TokenTrie;

namespace {

constexpr size_t kMaxEffectsBytes = size_t{32} << 20;
constexpr size_t kMaxFollowersBytes = size_t{32} << 20;
// A ConstraintState that has more sets of stacks than this drops the sets of the past.
constexpr size_t kMaxSets = 1 << 13;
// Beyond this depth only tokens that bring the end nearer are allowed.
constexpr int32_t kMaxStackDepth = 1000;

}  // namespace

ConstraintVocabulary ConstraintVocabulary::Of(std::shared_ptr<const Tokenizer> tokenizer) {
  ConstraintVocabulary vocabulary;
  vocabulary.trie = TokenTrie::Of(*tokenizer);
  vocabulary.tokenizer = std::move(tokenizer);
  return vocabulary;
}

Constraint::Constraint(Automaton automaton, const ConstraintVocabulary& vocabulary)
    : automaton_(std::move(automaton)),
      vocabulary_(vocabulary),
      costs_(constraint::FinishCosts(automaton_, vocabulary.trie.get())),
      classes_(constraint::StateClasses(automaton_, costs_, vocabulary.trie->max_depth())),
      mask_words_((static_cast<size_t>(vocabulary.tokenizer->vocab_size()) + 31) / 32) {}

absl::StatusOr<std::shared_ptr<const Constraint>> Constraint::Create(
    const Grammar& grammar, constraint::DeadRules dead_rules,
    const ConstraintVocabulary& vocabulary) {
  const constraint::ByteSet every = constraint::ByteSet().set();
  auto automaton = constraint::BuildAutomaton(grammar, every, dead_rules);
  if (!automaton.ok()) return automaton.status();
  // A text may need a byte that is not a token by itself. Texts with such a byte are left out, so
  // that a sampled text never gets to a place where no token continues it.
  const constraint::ByteSet& writable = vocabulary.trie->single_bytes();
  if (!writable.all()) {
    automaton = constraint::BuildAutomaton(grammar, writable, constraint::DeadRules::kLeaveOut);
    if (!automaton.ok()) {
      return Invalid(automaton.status().message(),
                     " with the bytes this vocabulary has tokens for, ", writable.count(),
                     " of 256");
    }
  }
  std::shared_ptr<const Constraint> constraint(new Constraint(*std::move(automaton), vocabulary));
  StackTable table(&constraint->automaton_, &constraint->costs_);
  table.Begin();
  if (table.overrun()) return absl::InvalidArgumentError("grammar: it can begin in too many ways");
  return constraint;
}

absl::StatusOr<std::shared_ptr<const Constraint>> Constraint::FromGbnf(
    std::string_view text, const ConstraintVocabulary& vocabulary) {
  const auto grammar = constraint::ParseGbnf(text);
  if (!grammar.ok()) return grammar.status();
  return Create(*grammar, constraint::DeadRules::kRefuse, vocabulary);
}

absl::StatusOr<std::shared_ptr<const Constraint>> Constraint::FromJsonSchema(
    std::string_view text, const ConstraintVocabulary& vocabulary) {
  const auto grammar = constraint::CompileJsonSchema(text);
  if (!grammar.ok()) return grammar.status();
  return Create(*grammar, constraint::DeadRules::kLeaveOut, vocabulary);
}

std::shared_ptr<const TokenEffects> Constraint::EffectsOn(uint32_t state) const {
  state = classes_[state];
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (const auto it = effects_.find(state); it != effects_.end()) return it->second;
  }
  auto effects = std::make_shared<const TokenEffects>(
      constraint::FindTokenEffects(automaton_, costs_, *vocabulary_.trie, state, mask_words_));
  absl::MutexLock lock(&mutex_);
  if (effects_bytes_ > kMaxEffectsBytes) {
    effects_.clear();
    effects_bytes_ = 0;
  }
  const auto [it, added] = effects_.try_emplace(state, std::move(effects));
  if (added) effects_bytes_ += it->second->bytes();
  return it->second;
}

std::shared_ptr<const Constraint::Followers> Constraint::FollowersOf(StackTable* table,
                                                                     StackSet set) const {
  const StackTable::Hash hash = table->hash(set);
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (const auto it = followers_.find(hash); it != followers_.end()) return it->second;
  }
  auto followers = std::make_shared<const Followers>(FindFollowers(table, set));
  absl::MutexLock lock(&mutex_);
  if (followers_bytes_ > kMaxFollowersBytes) {
    followers_.clear();
    followers_bytes_ = 0;
  }
  const auto [it, added] = followers_.try_emplace(hash, std::move(followers));
  if (added) {
    followers_bytes_ += sizeof(Followers) + mask_words_ * sizeof(uint32_t) +
                        it->second->by_stack.size() * sizeof(Followers::Costly);
  }
  return it->second;
}

Constraint::Followers Constraint::FindFollowers(StackTable* table, StackSet set) const {
  const TokenTrie& trie = *vocabulary_.trie;
  Followers followers;
  followers.mask.resize(mask_words_);
  constraint::TrieWalker walker(trie);
  for (size_t i = 0; i < table->frames(set).size(); ++i) {
    const StackTable::Frame frame = table->frames(set)[i];
    if (frame.state == Automaton::kBottom) {
      AddEnds(followers.mask);
      continue;
    }
    const auto effects = EffectsOn(frame.state);
    const int64_t cost = constraint::AddCosts(costs_[frame.state], table->cost(frame.below));
    for (const TokenEffects::Group& group : effects->groups) {
      AddToMask(group, followers.mask);
      followers.max_cost = std::max(followers.max_cost, cost + group.change);
    }
    if (effects->exits.empty()) continue;
    const StackSet rest = table->Return(frame.below);
    if (rest == StackTable::kDone) continue;
    const size_t known = table->size();
    for (const uint32_t exit : effects->exits) {
      walker.Walk(exit, table, rest, known, [&](uint32_t node, StackSet after) {
        for (const int32_t token : trie.tokens(node)) {
          AddToMask(token, followers.mask);
          followers.by_stack.push_back({token, table->cost(after)});
          followers.max_cost = std::max(followers.max_cost, table->cost(after));
        }
        return true;
      });
    }
  }
  return followers;
}

void Constraint::LimitedMask(const StackTable& table, StackSet set, const Followers& followers,
                             int64_t max_cost, std::span<uint32_t> mask) const {
  for (const StackTable::Frame& frame : table.frames(set)) {
    if (frame.state == Automaton::kBottom) {
      AddEnds(mask);
      continue;
    }
    const int64_t cost = constraint::AddCosts(costs_[frame.state], table.cost(frame.below));
    for (const TokenEffects::Group& group : EffectsOn(frame.state)->groups) {
      if (cost + group.change <= max_cost) AddToMask(group, mask);
    }
  }
  for (const Followers::Costly& costly : followers.by_stack) {
    if (costly.cost <= max_cost) AddToMask(costly.token, mask);
  }
}

void Constraint::AddEnds(std::span<uint32_t> mask) const {
  for (const int32_t end : vocabulary_.tokenizer->end_of_generation()) AddToMask(end, mask);
}

ConstraintState::ConstraintState(std::shared_ptr<const Constraint> constraint)
    : constraint_(std::move(constraint)),
      table_(&constraint_->automaton_, &constraint_->costs_),
      now_(table_.Begin()) {}

ConstraintState::ConstraintState(const ConstraintState& other)
    : constraint_(other.constraint_),
      table_(&constraint_->automaton_, &constraint_->costs_),
      now_(table_.Copy(other.table_, other.now_)),
      ended_(other.ended_) {}

ConstraintState& ConstraintState::operator=(const ConstraintState& other) {
  if (this != &other) *this = ConstraintState(other);
  return *this;
}

void ConstraintState::Mask(int64_t tokens_left, std::span<uint32_t> mask) {
  std::fill(mask.begin(), mask.end(), 0u);
  if (ended_) return;
  const int64_t cost = table_.cost(now_);
  if (table_.depth(now_) > kMaxStackDepth) tokens_left = std::min(tokens_left, cost);
  const auto followers = constraint_->FollowersOf(&table_, now_);
  // A text that can't be finished in time continues as if there were no limit.
  const bool in_time = cost <= tokens_left;
  if (!in_time || followers->max_cost < tokens_left) {
    std::copy(followers->mask.begin(), followers->mask.end(), mask.begin());
  } else {
    constraint_->LimitedMask(table_, now_, *followers, tokens_left - 1, mask);
  }
}

absl::Status ConstraintState::Accept(int32_t token) {
  const Tokenizer& tokenizer = constraint_->tokenizer();
  const bool is_end = tokenizer.IsEndOfGeneration(token);
  const std::string_view bytes = tokenizer.TokenBytes(token);
  StackSet next = is_end || bytes.empty() || ended_ ? StackTable::kNoStacks : now_;
  for (const char c : bytes) {
    if (next == StackTable::kNoStacks) break;
    next = table_.Step(next, static_cast<uint8_t>(c));
  }
  if (is_end && IsComplete() && !ended_) {
    ended_ = true;
    return absl::OkStatus();
  }
  if (table_.overrun()) {
    return absl::ResourceExhaustedError(
        "the constraint's grammar can be read in too many ways here, or is nested too deep");
  }
  if (next == StackTable::kNoStacks) {
    return Invalid("the constraint does not allow token ", token, " here");
  }
  now_ = next;
  if (table_.size() > kMaxSets || table_.full()) {
    StackTable fresh(&constraint_->automaton_, &constraint_->costs_);
    now_ = fresh.Copy(table_, now_);
    table_ = std::move(fresh);
  }
  return absl::OkStatus();
}

}  // namespace trine
