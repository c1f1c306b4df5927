#include "runtime/constraint/char_nfa.h"

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxStates = 40000;
constexpr size_t kMaxEdges = 1 << 19;

}  // namespace

absl::StatusOr<CharNfa> CharNfa::Of(const Expr& expr) {
  CharNfa nfa;
  nfa.states_.resize(2);
  nfa.Add(expr, nfa.start(), nfa.accept());
  if (nfa.TooLarge()) {
    return absl::InvalidArgumentError(
        absl::StrCat("with its repetitions written out it has more than ", kMaxStates,
                     " states, or ", kMaxEdges, " ranges of characters"));
  }
  return nfa;
}

bool CharNfa::TooLarge() const { return states_.size() > kMaxStates || edges_ > kMaxEdges; }

int32_t CharNfa::NewState() {
  states_.emplace_back();
  return static_cast<int32_t>(states_.size()) - 1;
}

void CharNfa::Add(const Expr& expr, int32_t from, int32_t to) {
  if (TooLarge()) return;
  const auto state = [this](int32_t s) -> State& { return states_[static_cast<size_t>(s)]; };
  switch (expr.kind) {
    case Expr::Kind::kText: {
      std::string_view text = expr.text;
      while (!text.empty()) {
        const Utf8Step step = NextUtf8(text);
        text.remove_prefix(step.bytes);
        const int32_t next = text.empty() ? to : NewState();
        state(from).edges.push_back({{step.code_point, step.code_point}, next});
        from = next;
      }
      if (expr.text.empty()) state(from).empty.push_back(to);
      break;
    }
    case Expr::Kind::kCharacter:
      for (const CodePointRange& r : expr.set.ranges()) state(from).edges.push_back({r, to});
      edges_ += expr.set.ranges().size();
      break;
    case Expr::Kind::kSequence:
      for (const ExprPtr& part : expr.parts) {
        const int32_t next = &part == &expr.parts.back() ? to : NewState();
        Add(*part, from, next);
        from = next;
      }
      if (expr.parts.empty()) state(from).empty.push_back(to);
      break;
    case Expr::Kind::kChoice:
      for (const ExprPtr& part : expr.parts) Add(*part, from, to);
      break;
    case Expr::Kind::kRepeat: {
      const Expr& part = *expr.parts.front();
      for (int64_t i = 0; i < expr.min && !TooLarge(); ++i) {
        const int32_t next = NewState();
        Add(part, from, next);
        from = next;
      }
      if (expr.max == Expr::kNoLimit) {
        const int32_t loop = NewState();
        state(from).empty.push_back(loop);
        Add(part, loop, loop);
        state(loop).empty.push_back(to);
        break;
      }
      for (int64_t i = expr.min; i < expr.max && !TooLarge(); ++i) {
        const int32_t next = NewState();
        state(from).empty.push_back(to);
        Add(part, from, next);
        from = next;
      }
      state(from).empty.push_back(to);
      break;
    }
    case Expr::Kind::kRule:
    case Expr::Kind::kMachine:
      break;  // not in regular expressions
  }
}

std::vector<int32_t> CharNfa::Close(std::vector<int32_t> states) const {
  std::vector<bool> seen(states_.size(), false);
  std::vector<int32_t> closed;
  while (!states.empty()) {
    const int32_t s = states.back();
    states.pop_back();
    if (seen[static_cast<size_t>(s)]) continue;
    seen[static_cast<size_t>(s)] = true;
    closed.push_back(s);
    const auto& empty = states_[static_cast<size_t>(s)].empty;
    states.insert(states.end(), empty.begin(), empty.end());
  }
  std::sort(closed.begin(), closed.end());
  return closed;
}

}  // namespace trine::constraint
