#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/template/eval/operators.h"
#include "runtime/template/values/budget.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

int64_t AsInteger(const Value& value) {
  return value.is(Kind::kBool) ? (value.boolean() ? 1 : 0) : value.integer();
}

absl::Status TooLarge() { return Wrong("the result takes more than 64 bits"); }
absl::Status ByZero() { return Wrong("a division by zero"); }

// Divides and rounds down, as Python does.
int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

absl::StatusOr<Value> IntegerPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  // Other bases than -1, 0 and 1 overflow within 64 steps.
  if (base == 0 || base == 1) return Value::Int(exponent == 0 ? 1 : base);
  if (base == -1) return Value::Int(exponent % 2 == 0 ? 1 : -1);
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return TooLarge();
  }
  return Value::Int(result);
}

absl::StatusOr<Value> CalculateIntegers(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return TooLarge();
      return Value::Int(result);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return TooLarge();
      return Value::Int(result);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return TooLarge();
      return Value::Int(result);
    case Operator::kFloorDivide:
      if (b == 0) return ByZero();
      if (b == -1) return CalculateIntegers(Operator::kSubtract, 0, a);
      return Value::Int(FloorDivide(a, b));
    case Operator::kModulo:
      if (b == 0) return ByZero();
      if (b == -1) return Value::Int(0);
      result = a % b;
      return Value::Int(result != 0 && (result < 0) != (b < 0) ? result + b : result);
    default:
      return IntegerPower(a, b);
  }
}

absl::StatusOr<Value> CalculateFloats(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::Float(a + b);
    case Operator::kSubtract:
      return Value::Float(a - b);
    case Operator::kMultiply:
      return Value::Float(a * b);
    case Operator::kDivide:
      if (b == 0) return ByZero();
      return Value::Float(a / b);
    case Operator::kFloorDivide:
      if (b == 0) return ByZero();
      return Value::Float(std::floor(a / b));
    case Operator::kModulo: {
      if (b == 0) return ByZero();
      const double rest = std::fmod(a, b);
      return Value::Float(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
    default: {
      if (a == 0 && b < 0) return ByZero();
      const double power = std::pow(a, b);
      if (!std::isfinite(power)) return Wrong("the power is no finite number");
      return Value::Float(power);
    }
  }
}

}  // namespace

bool IsNumeric(const Value& value) { return value.number() || value.is(Kind::kBool); }

double AsDouble(const Value& value) {
  return value.is(Kind::kFloat) ? value.real() : static_cast<double>(AsInteger(value));
}

int CompareNumbers(const Value& a, const Value& b) {
  if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) {
    const double x = AsDouble(a), y = AsDouble(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const int64_t x = AsInteger(a), y = AsInteger(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

absl::StatusOr<Value> Calculate(Operator op, const Value& left, const Value& right) {
  const bool floats = left.is(Kind::kFloat) || right.is(Kind::kFloat) || op == Operator::kDivide ||
                      (op == Operator::kPower && AsInteger(right) < 0);
  return floats ? CalculateFloats(op, AsDouble(left), AsDouble(right))
                : CalculateIntegers(op, AsInteger(left), AsInteger(right));
}

absl::StatusOr<Value> Truncated(double value) {
  if (!(std::fabs(value) < 9.2e18)) return TooLarge();
  return Value::Int(static_cast<int64_t>(value));
}

}  // namespace trine::jinja
