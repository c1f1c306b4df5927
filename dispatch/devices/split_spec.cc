#include "dispatch/devices/split_spec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "detect/text.h"

namespace trine {
namespace {

using Unit = SplitShare::Unit;

constexpr char kAmounts[] =
    "write whole layers (4 or 4L), bytes (12G; K, M, G, T) or a share (50%)";
// The largest amount: more than any machine has of anything, and still exact in a double.
constexpr double kMostAmount = 1e15;

absl::Status Wrong(const std::string& part, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("tensor split: '", part, "' ", why));
}

// Accepts digits with at most one point; no sign and no exponent.
bool ParseDecimal(absl::string_view text, double* value) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  const auto points = std::count(text.begin(), text.end(), '.');
  const auto digits = std::count_if(text.begin(), text.end(), is_digit);
  if (digits == 0 || points > 1 || static_cast<size_t>(digits + points) != text.size()) {
    return false;
  }
  return absl::SimpleAtod(text, value) && *value <= kMostAmount;
}

// Parses "4", "4L", "12G" or "50%". Returns false for anything else.
bool ParseAmount(std::string text, SplitShare* share) {
  if (text.empty()) return false;
  double unit = 1;
  share->unit = Unit::kLayers;
  switch (text.back()) {
    case 'T':
      unit *= 1024;
      [[fallthrough]];
    case 'G':
      unit *= 1024;
      [[fallthrough]];
    case 'M':
      unit *= 1024;
      [[fallthrough]];
    case 'K':
      unit *= 1024;
      share->unit = Unit::kBytes;
      text.pop_back();
      break;
    case '%':
      share->unit = Unit::kPercent;
      text.pop_back();
      break;
    case 'L':
      text.pop_back();
      break;
    default:
      break;
  }
  double value = 0;
  if (!ParseDecimal(text, &value)) return false;
  if (share->unit == Unit::kLayers && text.find('.') != std::string::npos) return false;
  share->amount = value * unit;
  return true;
}

absl::StatusOr<SplitShare> ParseShare(const std::string& part) {
  SplitShare share;
  const size_t colon = part.find(':');
  if (colon == std::string::npos) {
    share.unit = Unit::kProportion;
    if (!ParseDecimal(part, &share.amount)) {
      return Wrong(part, "is neither DEVICE:AMOUNT, such as cpu:4, nor a number");
    }
    return share;
  }
  share.device = part.substr(0, colon);
  if (share.device.empty()) return Wrong(part, "names no device");
  const std::string amount = part.substr(colon + 1);
  if (amount.empty()) return Wrong(part, absl::StrCat("has no amount: ", kAmounts));
  if (!ParseAmount(amount, &share)) {
    return Wrong(part, absl::StrCat("has a wrong amount, '", amount, "': ", kAmounts));
  }
  return share;
}

// Checks the shares together, as far as that is possible without a model.
absl::Status CheckTogether(const std::vector<SplitShare>& shares) {
  double total = 0;
  size_t percents = 0;
  for (const SplitShare& s : shares) {
    total += s.amount;
    percents += s.unit == Unit::kPercent ? 1 : 0;
  }
  if (shares.front().unit == Unit::kProportion && total <= 0) {
    return absl::InvalidArgumentError("tensor split: the proportions are all 0");
  }
  if (percents != 0 && percents != shares.size()) {
    return absl::InvalidArgumentError(
        "tensor split: shares in % can't be mixed with layers or bytes");
  }
  if (percents != 0 && std::abs(total - 100) > 0.01) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor split: the shares add up to ", total, " %, not to 100 %"));
  }
  return absl::OkStatus();
}

// Cuts n layers in proportion to the shares. Each boundary is rounded, so that every layer has
// exactly one owner.
std::vector<LayerRange> Proportional(const std::vector<SplitShare>& shares,
                                     const std::vector<std::string>& names, int n) {
  double total = 0;
  for (const SplitShare& s : shares) total += s.amount;
  std::vector<LayerRange> ranges;
  double sum = 0;
  int begin = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i].amount;
    const int end = i + 1 == shares.size() ? n : static_cast<int>(sum / total * n + 0.5);
    ranges.push_back({{begin, end}, names[i]});
    begin = end;
  }
  return ranges;
}

int LayersWithin(double bytes, const std::vector<uint64_t>& layer_bytes, int begin) {
  int count = 0;
  for (size_t i = static_cast<size_t>(begin); i < layer_bytes.size(); ++i) {
    bytes -= static_cast<double>(layer_bytes[i]);
    if (bytes < 0) break;
    ++count;
  }
  return count;
}

std::string SizeText(uint64_t bytes) {
  if (bytes >= 1 << 20) return detect::FormatBytes(bytes);
  return absl::StrCat((bytes + 1023) / 1024, " KiB");
}

// Returns "1.0 MiB on cpu is 0 layers (layer 0 takes 1.2 MiB)".
std::string BytesShareText(const SplitShare& share, int begin, int layers,
                           const std::vector<uint64_t>& layer_bytes) {
  std::string text = absl::StrCat(SizeText(static_cast<uint64_t>(share.amount)), " on ",
                                  share.device, " is ", layers, layers == 1 ? " layer" : " layers");
  const auto next = static_cast<size_t>(begin) + static_cast<size_t>(layers);
  if (next < layer_bytes.size()) {
    absl::StrAppend(&text, layers == 0 ? " (layer " : " (and layer ", next, " takes ",
                    SizeText(layer_bytes[next]), ")");
  }
  return text;
}

// `bytes`: one text of BytesShareText for each share in bytes.
absl::Status WrongSum(double placed, const std::vector<std::string>& bytes,
                      const std::vector<uint64_t>& layer_bytes) {
  const size_t n = layer_bytes.size();
  std::string text =
      absl::StrCat("tensor split: it places ", placed, " layers, but the model has ", n);
  if (bytes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(text, ": the numbers must add up to ", n));
  }
  uint64_t all = 0;
  for (const uint64_t layer : layer_bytes) all += layer;
  return absl::InvalidArgumentError(
      absl::StrCat(text, ": ", absl::StrJoin(bytes, ", "), "; all layers take ", SizeText(all),
                   " of weights, ends included, and what the devices hold "
                   "must add up to ",
                   n, " layers"));
}

absl::StatusOr<std::vector<LayerRange>> ResolveNamed(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes) {
  const int n = static_cast<int>(layer_bytes.size());
  std::vector<LayerRange> ranges;
  std::vector<std::string> bytes;
  double begin = 0;
  for (const SplitShare& s : shares) {
    double layers = s.amount;
    if (s.unit == Unit::kBytes) {
      const int from = static_cast<int>(std::min<double>(begin, n));
      const int within = LayersWithin(s.amount, layer_bytes, from);
      bytes.push_back(BytesShareText(s, from, within, layer_bytes));
      layers = within;
    }
    const double end = begin + layers;
    if (end <= n) {
      ranges.push_back({{static_cast<int>(begin), static_cast<int>(end)}, s.device});
    }
    begin = end;
  }
  if (begin != n) return WrongSum(begin, bytes, layer_bytes);
  return ranges;
}

}  // namespace

absl::StatusOr<std::vector<SplitShare>> ParseSplit(const std::string& text) {
  std::vector<SplitShare> shares;
  for (absl::string_view view : absl::StrSplit(text, ',')) {
    const std::string part(absl::StripAsciiWhitespace(view));
    if (part.empty()) return Wrong(text, "has an empty part");
    auto share = ParseShare(part);
    if (!share.ok()) return share.status();
    if (!shares.empty() &&
        (share->unit == Unit::kProportion) != (shares.front().unit == Unit::kProportion)) {
      return Wrong(text, "mixes DEVICE:AMOUNT with bare proportions");
    }
    shares.push_back(*std::move(share));
  }
  if (absl::Status s = CheckTogether(shares); !s.ok()) return s;
  return shares;
}

absl::StatusOr<std::vector<SplitShare>> ParseDeviceMemory(const std::string& text) {
  auto shares = ParseSplit(text);
  const auto is_limit = [](const SplitShare& share) {
    return !share.device.empty() && share.unit == SplitShare::Unit::kBytes;
  };
  if (shares.ok() && std::all_of(shares->begin(), shares->end(), is_limit)) return shares;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not of the form dgpu:2G,igpu:512M (a unit, K, M, G or T, is "
                   "part of it)"));
}

absl::StatusOr<std::vector<LayerRange>> ResolveSplit(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes,
                                                     const std::vector<std::string>& gpus) {
  const int n = static_cast<int>(layer_bytes.size());
  if (shares.front().unit == Unit::kPercent) {
    std::vector<std::string> names;
    for (const SplitShare& s : shares) names.push_back(s.device);
    return Proportional(shares, names, n);
  }
  if (shares.front().unit != Unit::kProportion) return ResolveNamed(shares, layer_bytes);
  if (shares.size() > gpus.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor split: ", shares.size(),
                                                   " proportions for ", gpus.size(),
                                                   " GPUs; name tiers instead, such as cpu:", n));
  }
  return Proportional(shares, gpus, n);
}

}  // namespace trine
