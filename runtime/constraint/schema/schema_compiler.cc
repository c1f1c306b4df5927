#include "runtime/constraint/schema/schema_compiler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/schema/json_text.h"
#include "runtime/constraint/schema/schema_checks.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxSchemaBytes = 4 << 20;
constexpr size_t kMaxSchemaNesting = 200;
constexpr int64_t kMaxCompared = int64_t{1}
                                 << 28;  // pairs of names in the same object, over all objects
constexpr size_t kMaxRules = 20000;

// Limits the nesting, because later steps recurse, and the number of names in an object, because
// the parser searches them linearly.
absl::Status CheckShape(std::string_view text) {
  struct Open {
    bool object;
    int64_t commas;
  };
  std::vector<Open> open;
  int64_t compared = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back({c == '{', 0});
      if (open.size() > kMaxSchemaNesting) {
        return Invalid("json schema: nested more than ", kMaxSchemaNesting, " deep");
      }
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ',' && !open.empty() && open.back().object) {
      compared += ++open.back().commas;
      if (compared > kMaxCompared) {
        return absl::InvalidArgumentError("json schema: too many properties in one object");
      }
    }
  }
  return absl::OkStatus();
}

class Compiler : public RuleMaker {
 public:
  explicit Compiler(const Json& root) : root_(root), reader_(root) {}

  absl::StatusOr<Grammar> Compile() {
    const auto root = RuleFor({{&root_, "#"}});
    if (!root.ok()) return root.status();
    grammar_.root = *root;
    // Makes each body after its rule, so that a rule mostly precedes the rules that it uses.
    while (!waiting_.empty()) {
      const auto [rule, schemas] = std::move(waiting_.back());
      waiting_.pop_back();
      auto body = Body(schemas);
      if (!body.ok()) return body.status();
      grammar_.rules[static_cast<size_t>(rule)].body = *std::move(body);
    }
    const auto productive = RootIsProductive();
    if (!productive.ok()) return productive.status();
    if (!*productive) {
      return Invalid("json schema can't be honoured: ", reader_.contradiction().empty()
                                                            ? "#: only endless values satisfy it"
                                                            : reader_.contradiction());
    }
    return std::move(grammar_);
  }

  absl::StatusOr<ExprPtr> Value(const Schemas& schemas) override {
    const auto rule = RuleFor(schemas);
    if (!rule.ok()) return rule.status();
    return RuleRef(*rule);
  }

  ExprPtr AddRule(const std::string& name, ExprPtr body) override {
    grammar_.rules.push_back({name, std::move(body)});
    return RuleRef(static_cast<int32_t>(grammar_.rules.size()) - 1);
  }

 private:
  // Returns the same rule for equal schemas, so that recursive schemas come to an end.
  absl::StatusOr<int32_t> RuleFor(const Schemas& schemas) {
    std::vector<std::string> pointers;
    for (const SchemaPlace& place : schemas) pointers.push_back(place.pointer);
    std::sort(pointers.begin(), pointers.end());
    std::string key;
    for (const std::string& pointer : pointers) absl::StrAppend(&key, pointer, "\n");
    const auto [it, added] =
        rules_.try_emplace(std::move(key), static_cast<int32_t>(grammar_.rules.size()));
    if (!added) return it->second;
    if (grammar_.rules.size() >= kMaxRules) {
      return Invalid("json schema: it takes more than ", kMaxRules, " rules");
    }
    grammar_.rules.push_back({pointers.empty() ? "any" : pointers.front(), nullptr});
    waiting_.push_back({it->second, schemas});
    return it->second;
  }

  absl::StatusOr<ExprPtr> Body(const Schemas& schemas) {
    const auto alternatives = reader_.Read(schemas);
    if (!alternatives.ok()) return alternatives.status();
    std::vector<ExprPtr> choices;
    for (const Facts& facts : *alternatives) {
      const absl::Status status =
          facts.values.has_value() ? AddValues(facts, &choices) : AddTypes(facts, &choices);
      if (!status.ok()) return status;
    }
    return Choice(std::move(choices));
  }

  absl::Status AddValues(const Facts& facts, std::vector<ExprPtr>* choices) {
    bool any = false;
    for (const auto& [id, value] : *facts.values) {
      const auto good = Satisfies(&reader_, facts, *value);
      if (!good.ok()) return good.status();
      if (!*good) continue;
      choices->push_back(Text(value->dump()));
      any = true;
    }
    if (!any) reader_.NoteContradiction(facts.pointer, "enum: no value satisfies the rest");
    return absl::OkStatus();
  }

  absl::Status AddTypes(const Facts& facts, std::vector<ExprPtr>* choices) {
    if ((facts.types & kNull) != 0) choices->push_back(Text("null"));
    if ((facts.types & kBoolean) != 0) {
      choices->push_back(Text("true"));
      choices->push_back(Text("false"));
    }
    const auto add = [&](absl::StatusOr<ExprPtr> expr) {
      if (expr.ok()) choices->push_back(*std::move(expr));
      return expr.status();
    };
    if ((facts.types & (kInteger | kFraction)) != 0) {
      if (absl::Status s = add(Number(facts)); !s.ok()) return s;
    }
    if ((facts.types & kString) != 0) {
      if (absl::Status s = add(String(facts)); !s.ok()) return s;
    }
    if ((facts.types & kArray) != 0) {
      if (absl::Status s = add(Array(facts)); !s.ok()) return s;
    }
    if ((facts.types & kObject) != 0) {
      if (absl::Status s = add(ObjectText(facts, &reader_, this)); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Returns one rule for all equal numbers or strings, so that they share one set of masks.
  template <class Make>
  absl::StatusOr<ExprPtr> Shared(const std::string& key, Make make) {
    if (const auto it = shared_.find(key); it != shared_.end()) return it->second;
    absl::StatusOr<ExprPtr> body = make();
    if (!body.ok()) return body.status();
    const ExprPtr rule = AddRule(key, *std::move(body));
    shared_[key] = rule;
    return rule;
  }

  absl::StatusOr<ExprPtr> Number(const Facts& facts) {
    NumberRange range = facts.numbers;
    range.whole = (facts.types & kFraction) == 0;
    const auto bound = [](const std::optional<NumberBound>& b) {
      if (!b.has_value()) return std::string("none");
      return absl::StrCat(b->value.digits, "e-", b->value.places, b->exclusive ? "x" : "");
    };
    if (range.min.has_value() && range.max.has_value()) {
      const int order = CompareDecimals(range.min->value, range.max->value);
      if (order > 0 || (order == 0 && (range.min->exclusive || range.max->exclusive))) {
        reader_.NoteContradiction(facts.pointer, "minimum: it is above maximum");
      }
    }
    const std::string key = absl::StrCat(range.whole ? "integer " : "number ", bound(range.min),
                                         " ", bound(range.max), " ", range.multiple_of);
    return Shared(key, [&]() -> absl::StatusOr<ExprPtr> {
      auto text = NumberText(range);
      if (!text.ok()) {
        return SchemaError(facts.pointer, "multipleOf", std::string(text.status().message()));
      }
      return text;
    });
  }

  absl::StatusOr<ExprPtr> String(const Facts& facts) {
    if (facts.max_length != Expr::kNoLimit && facts.min_length > facts.max_length) {
      reader_.NoteContradiction(facts.pointer, "minLength: it is above maxLength");
      return Choice({});
    }
    std::string key = absl::StrCat("string ", facts.min_length, " ", facts.max_length);
    for (const std::string& pattern : facts.patterns) absl::StrAppend(&key, " ", pattern);
    return Shared(key, [&]() -> absl::StatusOr<ExprPtr> {
      if (facts.patterns.empty()) return JsonString(facts.min_length, facts.max_length);
      const auto dfa = StringsOf(facts);
      if (!dfa.ok()) return dfa.status();
      if (dfa->empty()) {
        reader_.NoteContradiction(facts.pointer, "pattern: no string satisfies it and the rest");
      }
      return JsonString(*dfa);
    });
  }

  absl::StatusOr<ExprPtr> Array(const Facts& facts) {
    const int64_t min = facts.min_items, max = facts.max_items;
    if (max != Expr::kNoLimit && min > max) {
      reader_.NoteContradiction(facts.pointer, "minItems: it is above maxItems");
      return Choice({});
    }
    if (facts.unique && (max == Expr::kNoLimit || max > 1)) {
      return SchemaError(facts.pointer, "uniqueItems", "this keyword is not supported");
    }
    // One state per item of the prefix list; one edge to the last state writes all items after it.
    const auto prefix = static_cast<int64_t>(facts.prefix.size());
    const int64_t listed = max == Expr::kNoLimit ? prefix : std::min(prefix, max);
    ExprAutomaton machine;
    machine.accepts.assign(static_cast<size_t>(listed) + 1, false);
    for (int64_t i = 0; i <= listed; ++i) machine.accepts[static_cast<size_t>(i)] = i >= min;
    for (int64_t i = 0; i < listed; ++i) {
      const auto item = Value(facts.prefix[static_cast<size_t>(i)]);
      if (!item.ok()) return item.status();
      machine.edges.push_back({static_cast<int32_t>(i), static_cast<int32_t>(i) + 1,
                               i > 0 ? Sequence({JsonComma(), *item}) : *item});
    }
    if (listed == prefix && max != prefix) {
      const auto item = Value(facts.items);
      if (!item.ok()) return item.status();
      // Items after a prefix list all have a comma before them; without a list the first has none.
      const ExprPtr more = Sequence({JsonComma(), *item});
      const int64_t least = std::max<int64_t>(1, min - prefix);
      const int64_t most = max == Expr::kNoLimit ? max : max - prefix;
      const ExprPtr rest = Repeat(more, least - 1, most == Expr::kNoLimit ? most : most - 1);
      machine.accepts.push_back(true);
      machine.edges.push_back({static_cast<int32_t>(listed), static_cast<int32_t>(listed) + 1,
                               Sequence({prefix > 0 ? more : *item, rest})});
    }
    return Sequence({Text("["), Machine(std::move(machine)), Text("]")});
  }

  // Returns whether the root generates a finite text. Goes backwards through the rules, because
  // most rules are used by earlier ones.
  absl::StatusOr<bool> RootIsProductive() {
    std::vector<bool> productive(grammar_.rules.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      const auto work = static_cast<int64_t>(grammar_.rules.size()) / 8;
      if (absl::Status status = reader_.Spend(work); !status.ok()) return status;
      for (size_t r = grammar_.rules.size(); r-- > 0;) {
        if (productive[r] || !IsProductive(*grammar_.rules[r].body, productive)) continue;
        productive[r] = changed = true;
      }
    }
    return productive[static_cast<size_t>(grammar_.root)];
  }

  static bool IsProductive(const Expr& expr, const std::vector<bool>& rules) {
    const auto good = [&](const ExprPtr& part) { return IsProductive(*part, rules); };
    switch (expr.kind) {
      case Expr::Kind::kText:
        return true;
      case Expr::Kind::kCharacter:
        return !expr.set.empty();
      case Expr::Kind::kSequence:
        return std::all_of(expr.parts.begin(), expr.parts.end(), good);
      case Expr::Kind::kChoice:
        return std::any_of(expr.parts.begin(), expr.parts.end(), good);
      case Expr::Kind::kRepeat:
        return expr.min == 0 || good(expr.parts.front());
      case Expr::Kind::kRule:
        return rules[static_cast<size_t>(expr.rule)];
      case Expr::Kind::kMachine: {
        const ExprAutomaton& machine = *expr.automaton;
        std::vector<bool> reached(machine.accepts.size(), false);
        reached[0] = true;
        for (bool changed = true; changed;) {
          changed = false;
          for (const ExprAutomaton::Edge& e : machine.edges) {
            if (!reached[static_cast<size_t>(e.from)] || reached[static_cast<size_t>(e.to)] ||
                !good(e.label)) {
              continue;
            }
            reached[static_cast<size_t>(e.to)] = changed = true;
          }
        }
        for (size_t s = 0; s < reached.size(); ++s) {
          if (reached[s] && machine.accepts[s]) return true;
        }
        return false;
      }
    }
    return false;
  }

  const Json& root_;
  SchemaReader reader_;
  Grammar grammar_;
  absl::flat_hash_map<std::string, int32_t> rules_;
  absl::flat_hash_map<std::string, ExprPtr> shared_;
  std::vector<std::pair<int32_t, Schemas>> waiting_;
};

}  // namespace

absl::StatusOr<Grammar> CompileJsonSchema(std::string_view text) {
  if (text.size() > kMaxSchemaBytes) {
    return Invalid("json schema: ", text.size(), " bytes are more than the limit of ",
                   kMaxSchemaBytes);
  }
  if (absl::Status s = CheckShape(text); !s.ok()) return s;
  try {
    const Json schema = Json::parse(text.begin(), text.end());
    return Compiler(schema).Compile();
  } catch (const Json::parse_error& e) {
    return Invalid("json schema: it is no valid JSON, from byte ", e.byte, " on");
  }
}

}  // namespace trine::constraint
