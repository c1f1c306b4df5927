#include "runtime/constraint/schema/schema_numbers.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/grammar/char_dfa.h"

namespace trine::constraint {
namespace {

using Wide = __int128;

constexpr int32_t kMaxDigits = 15;  // digits that a double keeps exactly
constexpr int32_t kUsualPlaces = 6;
constexpr int32_t kMaxPlaces = 18;      // most decimal places of a Decimal
constexpr int64_t kMaxMultiple = 2000;  // each remainder is a state

Wide PowerOfTen(int32_t n) {
  Wide power = 1;
  for (; n > 0; --n) power *= 10;
  return power;
}

Wide FloorDivide(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

// Returns the bound times 10^places, rounded down, and whether it is a whole number.
std::pair<Wide, bool> Floor(const NumberBound& bound, int32_t places) {
  const Wide scaled = bound.value.digits * PowerOfTen(places);
  const Wide unit = PowerOfTen(bound.value.places);
  const Wide floor = FloorDivide(scaled, unit);
  return {floor, floor * unit == scaled};
}

// Least and Greatest return the least and the greatest n in -limit..limit such that n / 10^places
// is within the bound.
Wide Least(const std::optional<NumberBound>& bound, int32_t places, Wide limit) {
  if (!bound.has_value()) return -limit;
  const auto [floor, exact] = Floor(*bound, places);
  return std::max(-limit, exact && !bound->exclusive ? floor : floor + 1);
}

Wide Greatest(const std::optional<NumberBound>& bound, int32_t places, Wide limit) {
  if (!bound.has_value()) return limit;
  const auto [floor, exact] = Floor(*bound, places);
  return std::min(limit, exact && bound->exclusive ? floor - 1 : floor);
}

std::string DigitsOf(Wide value, size_t width) {
  std::string digits;
  for (; value > 0 || digits.size() < width; value /= 10) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  }
  return digits;
}

ExprPtr Digit(char low, char high) {
  return Character({{static_cast<uint32_t>(low), static_cast<uint32_t>(high)}});
}

// Digit strings of equal length from `low` to `high`, with a point before the last `places` digits.
class DigitRange {
 public:
  DigitRange(std::string low, std::string high, size_t places)
      : low_(std::move(low)), high_(std::move(high)), point_(low_.size() - places) {}

  ExprPtr Make() const { return From(0, true, true); }

 private:
  ExprPtr From(size_t i, bool at_low, bool at_high) const {
    if (i == low_.size()) return Text("");
    // Drops a bound that no choice of the remaining digits can cross.
    at_low = at_low && low_.find_first_not_of('0', i) != low_.npos;
    at_high = at_high && high_.find_first_not_of('9', i) != high_.npos;
    const ExprPtr point = Text(i == point_ ? "." : "");
    const char low = at_low ? low_[i] : '0', high = at_high ? high_[i] : '9';
    std::vector<ExprPtr> choices;
    const auto add = [&](char from, char to, bool still_low, bool still_high) {
      if (from > to) return;
      choices.push_back(Sequence({point, Digit(from, to), From(i + 1, still_low, still_high)}));
    };
    if (low == high) {
      add(low, high, at_low, at_high);
    } else {
      if (at_low) add(low, low, true, false);
      add(static_cast<char>(low + (at_low ? 1 : 0)), static_cast<char>(high - (at_high ? 1 : 0)),
          false, false);
      if (at_high) add(high, high, false, true);
    }
    return Choice(std::move(choices));
  }

  std::string low_, high_;
  size_t point_;
};

// Returns the texts of n / 10^places for low <= n <= high. REQUIRES: low >= 0.
ExprPtr Positive(Wide low, Wide high, int32_t places) {
  std::vector<ExprPtr> choices;
  // Handles each number of digits by itself, with at least one digit before the point.
  Wide first = 0;
  for (size_t width = static_cast<size_t>(places) + 1; first <= high; ++width) {
    const Wide last = PowerOfTen(static_cast<int32_t>(width)) - 1;
    const Wide from = std::max(first, low), to = std::min(last, high);
    if (from <= to) {
      choices.push_back(
          DigitRange(DigitsOf(from, width), DigitsOf(to, width), static_cast<size_t>(places))
              .Make());
    }
    first = last + 1;
  }
  return Choice(std::move(choices));
}

ExprPtr Range(Wide low, Wide high, int32_t places) {
  std::vector<ExprPtr> choices;
  if (high >= 0 && low <= high) choices.push_back(Positive(std::max<Wide>(low, 0), high, places));
  if (low < 0 && low <= high) {
    choices.push_back(Sequence({Text("-"), Positive(std::max<Wide>(1, -high), -low, places)}));
  }
  return Choice(std::move(choices));
}

// Returns the decimal texts of the multiples of n.
CharDfa Multiples(int64_t n) {
  // State 0: nothing read. State 1: a sign read. State 2 + r: the digits so far have remainder r.
  std::vector<CharDfa::State> states(static_cast<size_t>(n) + 2);
  states[2].accepts = true;
  states[0].edges.push_back({{'-', '-'}, 1});
  for (size_t s = 0; s < states.size(); ++s) {
    const int64_t remainder = s < 2 ? 0 : static_cast<int64_t>(s) - 2;
    for (uint32_t digit = 0; digit < 10; ++digit) {
      const auto to = static_cast<int32_t>((remainder * 10 + digit) % n + 2);
      states[s].edges.push_back({{'0' + digit, '0' + digit}, to});
    }
  }
  return CharDfa(std::move(states));
}

}  // namespace

std::optional<Decimal> DecimalOf(double value) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific);
  if (end.ec != std::errc()) return std::nullopt;
  const std::string_view all(text, static_cast<size_t>(end.ptr - text));
  const size_t e = all.find('e');
  if (e == all.npos) return std::nullopt;
  int exponent = 0;
  const std::string_view power = all.substr(e + (all[e + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  Decimal decimal;
  for (const char c : all.substr(0, e)) {
    if (c >= '0' && c <= '9') decimal.digits = decimal.digits * 10 + (c - '0');
  }
  const size_t point = all.substr(0, e).find('.');
  decimal.places = (point == all.npos ? 0 : static_cast<int32_t>(e - point - 1)) - exponent;
  if (decimal.places > kMaxPlaces) return std::nullopt;
  for (; decimal.places < 0; ++decimal.places) {
    if (decimal.digits > INT64_MAX / 10) return std::nullopt;
    decimal.digits *= 10;
  }
  if (all[0] == '-') decimal.digits = -decimal.digits;
  return decimal;
}

int CompareDecimals(const Decimal& a, const Decimal& b) {
  const Wide left = a.digits * PowerOfTen(b.places), right = b.digits * PowerOfTen(a.places);
  return left < right ? -1 : left > right ? 1 : 0;
}

absl::StatusOr<ExprPtr> NumberText(const NumberRange& range) {
  // Lifts the usual limit on digits if the bounds leave no number within it.
  Wide limit = PowerOfTen(kMaxDigits) - 1;
  if (Least(range.min, 0, INT64_MAX) > limit || Greatest(range.max, 0, INT64_MAX) < -limit) {
    limit = INT64_MAX;
  }
  const Wide low = Least(range.min, 0, limit), high = Greatest(range.max, 0, limit);
  ExprPtr whole = Range(low, high, 0);
  if (range.multiple_of != 1) {
    if (range.multiple_of > kMaxMultiple) return Invalid("above ", kMaxMultiple);
    const auto within = CharDfa::Of(*whole);
    if (!within.ok()) return within.status();
    const auto multiples = within->Intersect(Multiples(range.multiple_of));
    if (!multiples.ok()) return multiples.status();
    return multiples->ToExpr(Character);
  }
  std::vector<ExprPtr> choices = {std::move(whole)};
  if (!range.whole) {
    int32_t most = kUsualPlaces;
    for (const auto& bound : {range.min, range.max}) {
      if (bound.has_value()) most = std::max(most, std::min(bound->value.places + 1, kMaxDigits));
    }
    for (int32_t places = 1; places <= std::min(most, kMaxDigits - 1); ++places) {
      const Wide most_digits = PowerOfTen(kMaxDigits) - 1;
      choices.push_back(Range(Least(range.min, places, most_digits),
                              Greatest(range.max, places, most_digits), places));
    }
  }
  const auto dfa = CharDfa::Of(*Choice(std::move(choices)));
  if (!dfa.ok()) return dfa.status();
  return dfa->ToExpr(Character);
}

}  // namespace trine::constraint
