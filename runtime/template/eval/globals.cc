
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/values/budget.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// A date may grow by this many bytes before they are paid for.
constexpr int64_t kCharactersPaidAtOnce = 4096;

constexpr char kRaised[] = "trine/raised-by-template";

constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};

std::string TimePart(char letter, const std::tm& t) {
  const std::string_view month = kMonths[static_cast<unsigned>(t.tm_mon) % 12];
  const std::string_view day = kDays[static_cast<unsigned>(t.tm_wday) % 7];
  const auto two = [](int number) { return absl::StrFormat("%02d", number); };
  if (letter == 'Y') return Words(1900 + t.tm_year);
  if (letter == 'y') return two(t.tm_year % 100);
  if (letter == 'm') return two(t.tm_mon + 1);
  if (letter == 'd') return two(t.tm_mday);
  if (letter == 'e') return absl::StrFormat("%2d", t.tm_mday);
  if (letter == 'j') return absl::StrFormat("%03d", t.tm_yday + 1);
  if (letter == 'b' || letter == 'B')
    return std::string(letter == 'B' ? month : month.substr(0, 3));
  if (letter == 'a' || letter == 'A') return std::string(letter == 'A' ? day : day.substr(0, 3));
  if (letter == 'H') return two(t.tm_hour);
  if (letter == 'I') return two((t.tm_hour + 11) % 12 + 1);
  if (letter == 'M') return two(t.tm_min);
  if (letter == 'S') return two(t.tm_sec);
  if (letter == 'p') return t.tm_hour < 12 ? "AM" : "PM";
  if (letter == '%') return "%";
  return {'%', letter};
}

}  // namespace

absl::StatusOr<Value> Range(Budget& budget, const Arguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.empty() || given.size() > 3) return Wrong("range() takes one to three integers");
  for (const Value& bound : given) {
    if (!bound.is(Kind::kInt)) return Wrong("range() takes integers, not ", KindName(bound.kind()));
  }
  const int64_t start = given.size() > 1 ? given[0].integer() : 0;
  const int64_t stop = given[given.size() > 1 ? 1 : 0].integer();
  const int64_t step = given.size() > 2 ? given[2].integer() : 1;
  if (step == 0) return Wrong("range() with a step of 0");
  // In 128 bits neither the difference of two bounds overflows nor a multiple of the step.
  const __int128 distance = static_cast<__int128>(stop) - start;
  const __int128 wide_step = step;
  const __int128 count =
      step > 0 ? (distance + wide_step - 1) / wide_step : (distance + wide_step + 1) / wide_step;
  if ((distance > 0) != (step > 0) || distance == 0) return budget.OfList({});
  const int64_t most = budget.limits().memory;
  const int64_t n = count > most ? most : static_cast<int64_t>(count);
  if (absl::Status s = budget.Allocate(n * static_cast<int64_t>(sizeof(Value))); !s.ok()) return s;
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    items.push_back(Value::Int(static_cast<int64_t>(start + i * wide_step)));
  }
  return budget.OfList(std::move(items));
}

absl::StatusOr<Value> RaiseException(Budget&, const Arguments& arguments) {
  const bool given = !arguments.positional.empty() && arguments.positional[0].is(Kind::kString);
  absl::Status status = Wrong(given ? arguments.positional[0].text().bytes()
                                    : "the chat template raised an exception");
  status.SetPayload(kRaised, absl::Cord());
  return status;
}

bool IsRaised(const absl::Status& status) { return status.GetPayload(kRaised).has_value(); }

absl::StatusOr<Dict> NamespaceMembers(const Arguments& arguments, Budget& budget) {
  Dict members;
  if (arguments.positional.size() > 1) {
    return Wrong("namespace() takes one dict, and members by name");
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kDict)) {
      for (const Dict::Entry& entry : source.dict().entries()) {
        if (absl::Status s = budget.Set(entry.key, entry.value, &members); !s.ok()) return s;
      }
    } else if (source.is(Kind::kList)) {
      for (const Value& pair : source.list()) {
        if (!pair.is(Kind::kList) || pair.size() != 2 || !pair.list()[0].is(Kind::kString)) {
          return Wrong("namespace() takes pairs of a name and a value");
        }
        const absl::Status set = budget.Set(pair.list()[0].text(), pair.list()[1], &members);
        if (!set.ok()) return set;
      }
    } else {
      return Wrong("namespace() of ", KindName(source.kind()));
    }
  }
  for (const auto& [name, value] : arguments.named) {
    if (absl::Status s = budget.Set(name, value, &members); !s.ok()) return s;
  }
  return members;
}

absl::StatusOr<std::string> FormatTime(std::string_view format, const std::tm& time,
                                       Budget& budget) {
  std::string out;
  int64_t paid = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool bare = i + 2 < format.size() && format[i + 1] == '-';  // %-d: without leading zeros
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
    } else if (!bare) {
      out += TimePart(format[++i], time);
    } else {
      i += 2;
      const std::string part = TimePart(format[i], time);
      out += part.substr(std::min(part.find_first_not_of("0 "), part.size() - 1));
    }
    const int64_t size = static_cast<int64_t>(out.size());
    if (size - paid < kCharactersPaidAtOnce && i + 1 < format.size()) continue;
    if (absl::Status s = budget.Allocate(size - paid); !s.ok()) return s;
    if (absl::Status s = budget.Work(size - paid); !s.ok()) return s;
    paid = size;
  }
  return out;
}

}  // namespace trine::jinja
