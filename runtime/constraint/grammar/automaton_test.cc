// Compares the automaton with a recogniser that tries everything.
#include "runtime/constraint/grammar/automaton.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/mask/constraint_test_util.h"
#include "runtime/constraint/mask/stack_table.h"

namespace trine::constraint {
namespace {

// Finds all positions where a match of an expression that begins at `at` may end.
class Oracle {
 public:
  Oracle(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}
  bool Matches() { return Ends(*RuleRef(grammar_.root), 0).contains(text_.size()); }

 private:
  using Positions = std::set<size_t>;

  Positions Ends(const Expr& expr, size_t at) {
    Positions out;
    switch (expr.kind) {
      case Expr::Kind::kText:
        if (text_.substr(at, expr.text.size()) == expr.text) out.insert(at + expr.text.size());
        break;
      case Expr::Kind::kCharacter:
        if (at < text_.size() && expr.set.Contains(static_cast<uint8_t>(text_[at]))) {
          out.insert(at + 1);
        }
        break;
      case Expr::Kind::kSequence:
        out = {at};
        for (const ExprPtr& part : expr.parts) out = After(*part, out);
        break;
      case Expr::Kind::kChoice:
        for (const ExprPtr& part : expr.parts) out.merge(Ends(*part, at));
        break;
      case Expr::Kind::kRepeat: {
        Positions now = {at};
        const int64_t most =
            expr.max == Expr::kNoLimit ? expr.min + static_cast<int64_t>(text_.size()) : expr.max;
        for (int64_t i = 0; i <= most && !now.empty(); ++i) {
          if (i >= expr.min) out.insert(now.begin(), now.end());
          if (i < most) now = After(*expr.parts[0], now);
        }
        break;
      }
      case Expr::Kind::kRule: {
        const auto key = std::pair(expr.rule, at);
        if (const auto it = known_.find(key); it != known_.end()) return it->second;
        out = Ends(*grammar_.rules[static_cast<size_t>(expr.rule)].body, at);
        known_[key] = out;
        break;
      }
      case Expr::Kind::kMachine:
        ADD_FAILURE();
    }
    return out;
  }

  Positions After(const Expr& part, const Positions& from) {
    Positions out;
    for (const size_t at : from) out.merge(Ends(part, at));
    return out;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<int32_t, size_t>, Positions> known_;
};

ExprPtr RandomExpr(std::mt19937* random, int32_t rules, int depth) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>((*random)() % n); };
  if (depth == 0) {
    switch (pick(4)) {
      case 0:
        return RuleRef(static_cast<int32_t>(pick(static_cast<uint32_t>(rules))));
      case 1:
        return Character({{'a', 'a' + pick(3)}});
      default: {
        std::string text;
        for (uint32_t n = pick(3); n > 0; --n) text += static_cast<char>('a' + pick(3));
        return Text(text);
      }
    }
  }
  std::vector<ExprPtr> parts;
  for (uint32_t n = 1 + pick(3); n > 0; --n) {
    parts.push_back(
        RandomExpr(random, rules, static_cast<int>(pick(static_cast<uint32_t>(depth)))));
  }
  switch (pick(3)) {
    case 0:
      return Choice(std::move(parts));
    case 1: {
      const int64_t min = pick(3);
      return Repeat(parts[0], min, pick(2) == 0 ? Expr::kNoLimit : min + pick(3));
    }
    default:
      return Sequence(std::move(parts));
  }
}

// Returns every text over a, b, c of up to `length` bytes.
std::vector<std::string> AllTexts(size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) break;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

TEST(AutomatonTest, AcceptsWhatTheOracleAccepts) {
  std::mt19937 random(1);
  const std::vector<std::string> texts = AllTexts(6);
  int usable = 0, accepted = 0;
  for (int round = 0; round < 600; ++round) {
    Grammar grammar;
    const int32_t rules = 1 + static_cast<int32_t>(random() % 4);
    for (int32_t r = 0; r < rules; ++r) {
      grammar.rules.push_back({"r" + std::to_string(r), RandomExpr(&random, rules, 3)});
    }
    const auto automaton = BuildAutomaton(grammar, ByteSet().set(), DeadRules::kLeaveOut);
    if (!automaton.ok()) continue;  // left recursion, or no text at all
    ++usable;
    const std::vector<int64_t> costs = FinishCosts(*automaton, nullptr);
    StackTable table(&*automaton, &costs);
    for (const std::string& text : texts) {
      StackSet set = table.Begin();
      for (const char c : text) set = table.Step(set, static_cast<uint8_t>(c));
      const bool expected = Oracle(grammar, text).Matches();
      ASSERT_EQ(table.done(set), expected) << "round " << round << ": '" << text << "'";
      accepted += expected ? 1 : 0;
      // A live prefix can be finished in as many bytes as its cost says, and in no fewer.
      int64_t cost = table.cost(set);
      if (set == StackTable::kNoStacks) continue;
      ASSERT_LT(cost, kNeverFinishes);
      for (; cost > 0; --cost) {
        StackSet next = StackTable::kNoStacks;
        for (const char c : {'a', 'b', 'c'}) {
          const StackSet after = table.Step(set, static_cast<uint8_t>(c));
          if (after == StackTable::kNoStacks) continue;
          ASSERT_GE(table.cost(after), cost - 1);
          if (table.cost(after) == cost - 1) next = after;
        }
        ASSERT_NE(next, StackTable::kNoStacks);
        set = next;
      }
      ASSERT_TRUE(table.done(set));
    }
  }
  EXPECT_GT(usable, 150);
  EXPECT_GT(accepted, 5000);
}

TEST(AutomatonTest, AmbiguityStaysSmall) {
  // After n bytes 'a' there are 3^n ways to go on.
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  const auto constraint =
      MustMakeGbnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"\"", vocabulary);
  ConstraintState state(constraint);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(state.Accept('a').ok());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(state.Accept(i % 3 == 0 ? 'b' : 'c').ok());
  EXPECT_TRUE(state.IsComplete());
}

TEST(AutomatonTest, RightRecursionTakesNoStack) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  const auto constraint = MustMakeGbnf(
      "root ::= item rest\nrest ::= \",\" item rest | \"\"\nitem ::= [a-c]+", vocabulary);
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(state.Accept(i % 2 == 0 ? 'a' : ',').ok());
    if (i % 2 == 0) {
      ASSERT_EQ(state.TokensToFinish(), 0);
    }
  }
}

Automaton MustBuild(std::string_view text) {
  const auto grammar = ParseGbnf(text);
  EXPECT_TRUE(grammar.ok()) << grammar.status();
  auto automaton = BuildAutomaton(*grammar, ByteSet().set(), DeadRules::kRefuse);
  EXPECT_TRUE(automaton.ok()) << automaton.status();
  return *std::move(automaton);
}

// Each rule calls the next two before it reads a byte, so the ways down number like Fibonacci's.
TEST(AutomatonTest, WaysThatPartAndMeetAreGoneOnce) {
  constexpr int kRules = 500;
  std::string text = "root ::= r0\n";
  for (int i = 0; i < kRules; ++i) {
    absl::StrAppend(&text, "r", i, " ::= r", i + 1, " \"a\" | r", i + 2, " \"b\"\n");
  }
  absl::StrAppend(&text, "r", kRules, " ::= \"c\"\nr", kRules + 1, " ::= \"d\"\n");
  const Automaton automaton = MustBuild(text);
  const std::vector<int64_t> costs = FinishCosts(automaton, nullptr);
  StackTable table(&automaton, &costs);
  StackSet set = table.Begin();
  EXPECT_LT(table.size(), size_t{4 * kRules});
  for (const char c : "c" + std::string(kRules, 'a'))
    set = table.Step(set, static_cast<uint8_t>(c));
  EXPECT_EQ(set, StackTable::kDone);
}

// The stack doesn't tell where a p or q was pushed, but what lies below it depends on that, so few
// stacks share what is below them.
TEST(AutomatonTest, TooManyWaysOverrunTheTable) {
  const Automaton automaton = MustBuild(
      "root ::= t\nt ::= (\"a\" [ab] | \"b\" [ab] [ab]) t \"p\" |"
      " (\"b\" | \"a\" [ab] [ab] [ab]) t \"q\" | \"c\"\n");
  const std::vector<int64_t> costs = FinishCosts(automaton, nullptr);
  StackTable table(&automaton, &costs);
  StackSet set = table.Begin();
  std::mt19937 random(1);
  for (int i = 0; i < 500 && set != StackTable::kNoStacks; ++i) {
    set = table.Step(set, random() % 2 == 0 ? 'a' : 'b');
  }
  EXPECT_TRUE(table.overrun());
  EXPECT_EQ(set, StackTable::kNoStacks);
}

}  // namespace
}  // namespace trine::constraint
