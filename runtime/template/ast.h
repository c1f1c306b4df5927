// A template as a tree. Made by the parser, then never changed.
#ifndef TRINE_RUNTIME_TEMPLATE_AST_H_
#define TRINE_RUNTIME_TEMPLATE_AST_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/template/value.h"

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

struct Argument {
  enum class Kind { kPositional, kNamed, kSpread, kSpreadNamed };  // x, name=x, *x, **x
  Kind kind = Kind::kPositional;
  std::string name;
  ExprPtr value;
};

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
  bool negated = false;
  int height = 1;
  size_t offset = 0;
  std::string name;
  Value literal;
  std::vector<ExprPtr> children;
  std::vector<Argument> arguments;
};

struct Parameter {
  std::string name;
  ExprPtr value;  // when it is not given; may be null
};

// A macro, or the body of a call block.
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_varargs = false;  // the body speaks of `varargs`
  bool takes_kwargs = false;
  Block body;
};

struct Statement {
  enum class Kind {
    kText,    // text
    kOutput,  // {{ expr }}
    kIf,      // branches in order; one without a condition is the else
    kFor,     // names in expr if condition: body, otherwise
    kSet,     // names, or expr.name where there is an expr, = value, or the body's text
    kMacro,   // macro
    kCall,    // {% call(macro.parameters) expr(...) %}
    kFilter,  // body, through the filter that expr is with nothing to work on
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

#endif  // TRINE_RUNTIME_TEMPLATE_AST_H_
