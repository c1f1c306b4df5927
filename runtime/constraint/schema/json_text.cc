#include "runtime/constraint/schema/json_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/schema/schema_checks.h"

namespace trine::constraint {
namespace {

// Returns the letter of a short escape (n for a line end), or 0 where there is none.
char ShortEscape(uint32_t c) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  const size_t i = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : kEscaped.npos;
  return i == kEscaped.npos ? '\0' : kLetters[i];
}

uint32_t HexDigit(uint32_t value) { return value < 10 ? '0' + value : 'a' + value - 10; }

constexpr int64_t kMaxObjectStates = 1 << 16;

class ObjectMaker {
 public:
  ObjectMaker(const Facts& facts, SchemaReader* reader, RuleMaker* rules)
      : facts_(facts),
        reader_(reader),
        rules_(rules),
        required_(facts.required.begin(), facts.required.end()) {}

  absl::StatusOr<ExprPtr> Make() {
    if (absl::Status s = MakeMembers(); !s.ok()) return s;
    if (absl::Status s = MakeOthers(); !s.ok()) return s;
    const int64_t min = facts_.min_properties, max = facts_.max_properties;
    const auto named = static_cast<int64_t>(members_.size());
    // A name that the schema doesn't list could be written twice and would then count once, so only
    // one such property is certain.
    if (!others_.empty() && min > named + 1) {
      return SchemaError(facts_.pointer, "minProperties",
                         absl::StrCat("at most ", named + 1, " with the properties named here"));
    }
    // A state holds how many names have been passed and how many properties have been written.
    // Counts that make no difference share a state.
    counts_ = std::max<int64_t>({1, min, max}) + 1;
    if (counts_ > kMaxObjectStates / (named + 2)) {
      if (max > named && others_.empty()) counts_ = std::max<int64_t>(1, min) + 1;
      if (counts_ > kMaxObjectStates / (named + 2)) {
        return SchemaError(facts_.pointer, "maxProperties", "it is too large");
      }
    }
    machine_.accepts.assign(static_cast<size_t>((named + 2) * counts_), false);
    for (int64_t count = 0; count < counts_; ++count) {
      for (int64_t i = 0; i < named; ++i) {
        const Member& member = members_[static_cast<size_t>(i)];
        if (!member.required) AddEdge(i, count, i + 1, count, Text(""));
        AddMember(i, count, i + 1, member.text);
      }
      machine_.accepts[static_cast<size_t>(State(named, count))] = count >= min;
      machine_.accepts[static_cast<size_t>(State(named + 1, count))] = true;
      for (const ExprPtr& other : others_) {
        if (count + 1 >= min) AddMember(named, count, named + 1, other);
        AddMember(named + 1, count, named + 1, other);
      }
    }
    return Sequence({Text("{"), Machine(std::move(machine_)), Text("}")});
  }

 private:
  struct Member {
    ExprPtr text;
    bool required;
  };

  int32_t State(int64_t i, int64_t count) const {
    return static_cast<int32_t>(i * counts_ + count);
  }
  void AddEdge(int64_t i, int64_t count, int64_t to, int64_t to_count, ExprPtr label) {
    machine_.edges.push_back({State(i, count), State(to, to_count), std::move(label)});
  }
  void AddMember(int64_t i, int64_t count, int64_t to, const ExprPtr& text) {
    const bool limited = facts_.max_properties != Expr::kNoLimit;
    if (limited && count >= facts_.max_properties) return;
    AddEdge(i, count, to, std::min(count + 1, counts_ - 1),
            count == 0 ? text : Sequence({JsonComma(), text}));
  }

  absl::Status MakePatterns() {
    for (const auto& [pattern, schemas] : facts_.by_pattern) {
      auto dfa = PatternDfa(pattern, facts_.pointer, "patternProperties");
      if (!dfa.ok()) return dfa.status();
      // Pays for keeping the automaton and for comparing it with the others.
      const auto states = static_cast<int64_t>(dfa->states().size());
      if (absl::Status s = reader_->Spend(2000 + 10 * states); !s.ok()) return s;
      patterns_.push_back({*std::move(dfa), &schemas});
    }
    return absl::OkStatus();
  }

  // Adds the properties that the schema describes, then the properties that only `required` names.
  absl::Status MakeMembers() {
    if (absl::Status s = MakePatterns(); !s.ok()) return s;
    for (const auto& [name, schemas] : facts_.properties) {
      if (absl::Status s = AddNamed(name, schemas); !s.ok()) return s;
    }
    absl::flat_hash_set<std::string_view> named;
    for (const auto& [name, schemas] : facts_.properties) named.insert(name);
    for (const std::string& name : facts_.required) {
      if (named.contains(name)) continue;
      const bool matched = std::any_of(patterns_.begin(), patterns_.end(),
                                       [&](const auto& p) { return p.first.Accepts(name); });
      if (!matched && ForbidsOthers()) {
        reader_->NoteContradiction(
            facts_.pointer, absl::StrCat("required: additionalProperties forbids '", name, "'"));
      }
      if (absl::Status s = AddNamed(name, matched ? Schemas() : facts_.others); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status AddNamed(const std::string& name, Schemas schemas) {
    for (const auto& [dfa, by_pattern] : patterns_) {
      if (dfa.Accepts(name)) schemas.insert(schemas.end(), by_pattern->begin(), by_pattern->end());
    }
    const auto value = rules_->Value(schemas);
    if (!value.ok()) return value.status();
    members_.push_back(
        {Sequence({Text(Json(name).dump()), JsonColon(), *value}), required_.contains(name)});
    names_.push_back(Text(name));
    return absl::OkStatus();
  }

  bool ForbidsOthers() const {
    return std::any_of(facts_.others.begin(), facts_.others.end(), [](const SchemaPlace& p) {
      return p.schema->is_boolean() && !p.schema->get<bool>();
    });
  }

  // Adds properties with other names: names that match a pattern, and any name at all if the schema
  // has additionalProperties or describes no property.
  absl::Status MakeOthers() {
    const bool any =
        !ForbidsOthers() && (facts_.says_others || (members_.empty() && patterns_.empty()));
    if (!any && patterns_.empty()) return absl::OkStatus();
    const auto failed = [&](const absl::Status& status) {
      return SchemaError(facts_.pointer, "additionalProperties", std::string(status.message()));
    };
    const auto named = CharDfa::Of(*Choice(names_));
    if (!named.ok()) return failed(named.status());
    auto free = CharDfa::Any().Minus(*named);
    if (!free.ok()) return failed(free.status());
    for (size_t i = 0; i < patterns_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto both = patterns_[i].first.Intersect(patterns_[j].first);
        if (!both.ok()) return failed(both.status());
        if (!both->empty()) {
          return SchemaError(facts_.pointer, "patternProperties",
                             "a name might match two of the patterns");
        }
      }
      const auto names = patterns_[i].first.Minus(*named);
      if (!names.ok()) return failed(names.status());
      if (absl::Status s = AddOthers(*names, *patterns_[i].second); !s.ok()) return s;
      free = free->Minus(patterns_[i].first);
      if (!free.ok()) return failed(free.status());
    }
    return any ? AddOthers(*free, facts_.others) : absl::OkStatus();
  }

  absl::Status AddOthers(const CharDfa& names, const Schemas& schemas) {
    if (names.empty()) return absl::OkStatus();
    const auto value = rules_->Value(schemas);
    if (!value.ok()) return value.status();
    others_.push_back(rules_->AddRule(facts_.pointer + " (another property)",
                                      Sequence({JsonString(names), JsonColon(), *value})));
    return absl::OkStatus();
  }

  const Facts& facts_;
  SchemaReader* reader_;
  RuleMaker* rules_;
  const absl::flat_hash_set<std::string_view> required_;
  std::vector<std::pair<CharDfa, const Schemas*>> patterns_;
  std::vector<Member> members_;
  std::vector<ExprPtr> names_;
  std::vector<ExprPtr> others_;
  int64_t counts_ = 2;
  ExprAutomaton machine_;
};

}  // namespace

ExprPtr JsonCharacter(const CodePointSet& set) {
  static const auto* const escaped = new CodePointSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CodePointSet plain = set.Intersect(escaped->Complement());
  const CodePointSet special = set.Intersect(*escaped);
  // A long string repeats this expression many times, so escapes share their common beginnings.
  CodePointSet letters, low_controls, high_controls;
  for (const CodePointRange& r : special.ranges()) {
    for (uint32_t c = r.low; c <= r.high; ++c) {
      const uint32_t digit = HexDigit(c % 16);
      if (const char letter = ShortEscape(c); letter != '\0') {
        letters.Add(static_cast<uint32_t>(letter), static_cast<uint32_t>(letter));
      } else {
        (c < 16 ? low_controls : high_controls).Add(digit, digit);
      }
    }
  }
  std::vector<ExprPtr> numbers, escapes, all;
  if (!low_controls.empty()) numbers.push_back(Sequence({Text("0"), Character(low_controls)}));
  if (!high_controls.empty()) numbers.push_back(Sequence({Text("1"), Character(high_controls)}));
  if (!letters.empty()) escapes.push_back(Character(std::move(letters)));
  if (!numbers.empty()) escapes.push_back(Sequence({Text("u00"), Choice(std::move(numbers))}));
  if (!plain.empty()) all.push_back(Character(plain));
  if (!escapes.empty()) all.push_back(Sequence({Text("\\"), Choice(std::move(escapes))}));
  return Choice(std::move(all));
}

ExprPtr JsonString(int64_t min, int64_t max) {
  return Sequence({Text("\""), Repeat(JsonCharacter(CodePointSet::All()), min, max), Text("\"")});
}

ExprPtr JsonString(const CharDfa& dfa) {
  return Sequence({Text("\""), dfa.ToExpr(JsonCharacter), Text("\"")});
}

ExprPtr JsonComma() { return Sequence({Text(","), Optional(Text(" "))}); }
ExprPtr JsonColon() { return Sequence({Text(":"), Optional(Text(" "))}); }

absl::StatusOr<ExprPtr> ObjectText(const Facts& facts, SchemaReader* reader, RuleMaker* rules) {
  if (facts.max_properties != Expr::kNoLimit && facts.min_properties > facts.max_properties) {
    reader->NoteContradiction(facts.pointer, "minProperties: it is above maxProperties");
    return Choice({});
  }
  return ObjectMaker(facts, reader, rules).Make();
}

}  // namespace trine::constraint
