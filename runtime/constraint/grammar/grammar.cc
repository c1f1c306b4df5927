#include "runtime/constraint/grammar/grammar.h"

#include <algorithm>
#include <utility>

#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr CodePointRange kSurrogates = {0xD800, 0xDFFF};

// Returns the UTF-8 of low to high. REQUIRES: both have the same length, and all bytes after the
// first one that differs take every possible value.
Utf8Sequence EncodeBounds(uint32_t low, uint32_t high) {
  std::string first, last;
  AppendUtf8(low, &first);
  AppendUtf8(high, &last);
  Utf8Sequence sequence;
  sequence.length = static_cast<int>(first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    sequence.bytes[i] = {static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])};
  }
  return sequence;
}

// Splits [low, high] where the length changes and where a later byte would not take every value.
void Split(uint32_t low, uint32_t high, std::vector<Utf8Sequence>* out) {
  for (const uint32_t last_of_length : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (low <= last_of_length && last_of_length < high) {
      Split(low, last_of_length, out);
      Split(last_of_length + 1, high, out);
      return;
    }
  }
  if (low > 0x7F) {
    for (int bits = 6; bits <= 18; bits += 6) {
      const uint32_t rest = (1u << bits) - 1;
      if ((low & ~rest) == (high & ~rest)) continue;
      if ((low & rest) != 0) {
        Split(low, low | rest, out);
        Split((low | rest) + 1, high, out);
        return;
      }
      if ((high & rest) != rest) {
        Split(low, (high & ~rest) - 1, out);
        Split(high & ~rest, high, out);
        return;
      }
    }
  }
  out->push_back(EncodeBounds(low, high));
}

ExprPtr Make(Expr expr) { return std::make_shared<const Expr>(std::move(expr)); }

}  // namespace

void CodePointSet::Add(uint32_t low, uint32_t high) {
  high = std::min(high, kLastCodePoint);
  if (low <= kSurrogates.high && high >= kSurrogates.low) {
    if (low < kSurrogates.low) Add(low, kSurrogates.low - 1);
    if (high > kSurrogates.high) Add(kSurrogates.high + 1, high);
    return;
  }
  if (low > high) return;
  auto it = std::lower_bound(ranges_.begin(), ranges_.end(), low,
                             [](const CodePointRange& r, uint32_t c) { return r.high + 1 < c; });
  auto end = it;
  for (; end != ranges_.end() && end->low <= high + 1; ++end) {
    low = std::min(low, end->low);
    high = std::max(high, end->high);
  }
  it = ranges_.erase(it, end);
  ranges_.insert(it, {low, high});
}

void CodePointSet::Add(const CodePointSet& other) {
  for (const CodePointRange& r : other.ranges_) Add(r.low, r.high);
}

CodePointSet CodePointSet::Complement() const {
  CodePointSet out;
  uint32_t next = 0;
  for (const CodePointRange& r : ranges_) {
    if (r.low > next) out.Add(next, r.low - 1);
    next = r.high + 1;
  }
  if (next <= kLastCodePoint) out.Add(next, kLastCodePoint);
  return out;
}

CodePointSet CodePointSet::Intersect(const CodePointSet& other) const {
  CodePointSet out;
  auto a = ranges_.begin(), b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const uint32_t low = std::max(a->low, b->low), high = std::min(a->high, b->high);
    if (low <= high) out.Add(low, high);
    if (a->high < b->high) {
      ++a;
    } else {
      ++b;
    }
  }
  return out;
}

bool CodePointSet::Contains(uint32_t code_point) const {
  const auto it = std::lower_bound(ranges_.begin(), ranges_.end(), code_point,
                                   [](const CodePointRange& r, uint32_t c) { return r.high < c; });
  return it != ranges_.end() && it->low <= code_point;
}

std::vector<Utf8Sequence> Utf8Sequences(const CodePointSet& set) {
  std::vector<Utf8Sequence> sequences;
  for (const CodePointRange& r : set.ranges()) Split(r.low, r.high, &sequences);
  return sequences;
}

ExprPtr Text(std::string bytes) {
  return Make({.kind = Expr::Kind::kText, .text = std::move(bytes)});
}

ExprPtr Character(CodePointSet set) {
  return Make({.kind = Expr::Kind::kCharacter, .set = std::move(set)});
}

ExprPtr Sequence(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  return Make({.kind = Expr::Kind::kSequence, .parts = std::move(parts)});
}

ExprPtr Choice(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  return Make({.kind = Expr::Kind::kChoice, .parts = std::move(parts)});
}

ExprPtr Repeat(ExprPtr part, int64_t min, int64_t max) {
  return Make({.kind = Expr::Kind::kRepeat, .parts = {std::move(part)}, .min = min, .max = max});
}

ExprPtr Optional(ExprPtr part) { return Repeat(std::move(part), 0, 1); }

ExprPtr RuleRef(int32_t rule) { return Make({.kind = Expr::Kind::kRule, .rule = rule}); }

ExprPtr Machine(ExprAutomaton automaton) {
  return Make({.kind = Expr::Kind::kMachine,
               .automaton = std::make_shared<const ExprAutomaton>(std::move(automaton))});
}

}  // namespace trine::constraint
