// The tree of a template: statements and expressions. The parser makes it; it never changes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/template/values/value.h"

namespace trine::jinja {

struct Expr;
struct Statement;
using ExprPtr = std::unique_ptr<Expr>;
using Block = std::vector<Statement>;

enum class Operator {
  kAdd,
  kSubtract,
  kConcatenate,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

// An argument of a call.
struct Argument {
  enum class Kind { kPositional, kNamed, kSpread, kSpreadNamed };  // x, name=x, *x, **x
  Kind kind = Kind::kPositional;
  std::string name;
  ExprPtr value;
};

// An expression. Each kind uses the members that its comment names.
struct Expr {
  enum class Kind {
    kLiteral,    // literal
    kName,       // name
    kList,       // children
    kDict,       // children: key, value, key, value, ...
    kAttribute,  // children[0].name
    kIndex,      // children[0][children[1]]
    kSlice,      // children[0][children[1]:children[2]:children[3]], the last three may be null
    kCall,       // children[0](arguments)
    kFilter,     // children[0] | name(arguments)
    kTest,       // children[0] is name(arguments), negated or not
    kNot,        // not children[0]
    kNegate,     // -children[0]
    kPlus,       // +children[0]
    kBinary,     // children[0] op children[1]
    kAnd,
    kOr,
    kConditional,  // children[0] if children[1] else children[2], which may be null
  };
  Kind kind = Kind::kLiteral;
  Operator op = Operator::kAdd;
  bool negated = false;  // a test: "is not"
  int height = 1;        // the levels of expressions below this one, itself included
  size_t offset = 0;     // the place in the source
  std::string name;
  Value literal;
  std::vector<ExprPtr> children;
  std::vector<Argument> arguments;
};

// A parameter of a macro.
struct Parameter {
  std::string name;
  ExprPtr value;  // the default; may be null
};

// A macro, or the body of a call block.
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_varargs = false;  // the body uses `varargs`
  bool takes_kwargs = false;
  Block body;
};

// A statement. Each kind uses the members that its comment names.
struct Statement {
  enum class Kind {
    kText,    // text
    kOutput,  // {{ expr }}
    kIf,      // branches in order; the else has no condition
    kFor,     // for names in expr if condition: body, or `otherwise` if there is no item
    kSet,     // names, or expr.name if there is an expr, = value or the text of body
    kMacro,   // macro
    kCall,    // {% call(macro.parameters) expr(...) %}
    kFilter,  // body | expr, a filter without an operand
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr condition;
    Block body;
  };
  Kind kind = Kind::kText;
  size_t offset = 0;
  std::string text;
  std::vector<std::string> names;
  ExprPtr expr;
  ExprPtr value;
  ExprPtr condition;
  Block body;
  Block otherwise;
  std::vector<Branch> branches;
  std::unique_ptr<Macro> macro;
};

}  // namespace trine::jinja
