#include "runtime/constraint/object_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/char_dfa.h"
#include "runtime/constraint/json_text.h"
#include "runtime/constraint/schema_checks.h"

namespace trine::constraint {
namespace {

constexpr int64_t kMaxStates = 1 << 16;

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
    // Names the schema does not give could come twice, and then count once.
    if (!others_.empty() && min > named + 1) {
      return SchemaError(facts_.pointer, "minProperties",
                         absl::StrCat("at most ", named + 1, " with the properties named here"));
    }
    // A state is how far the names have been gone through, and how many properties there are, as
    // far as that matters.
    counts_ = std::max<int64_t>({1, min, max}) + 1;
    if (counts_ > kMaxStates / (named + 2)) {
      if (max > named && others_.empty()) counts_ = std::max<int64_t>(1, min) + 1;
      if (counts_ > kMaxStates / (named + 2)) {
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
      // All of them are kept, and each is compared with the others.
      const auto states = static_cast<int64_t>(dfa->states().size());
      if (absl::Status s = reader_->Spend(2000 + 10 * states); !s.ok()) return s;
      patterns_.push_back({*std::move(dfa), &schemas});
    }
    return absl::OkStatus();
  }

  // Properties the schema names, and those it requires without saying more.
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

  // Properties of other names: those with a pattern, and any where the schema speaks of them or of
  // none at all.
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

absl::StatusOr<ExprPtr> ObjectText(const Facts& facts, SchemaReader* reader, RuleMaker* rules) {
  if (facts.max_properties != Expr::kNoLimit && facts.min_properties > facts.max_properties) {
    reader->NoteContradiction(facts.pointer, "minProperties: it is above maxProperties");
    return Choice({});
  }
  return ObjectMaker(facts, reader, rules).Make();
}

}  // namespace trine::constraint
