#include "dispatch/split_spec.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace trine {
namespace {

using Unit = SplitShare::Unit;

absl::Status Wrong(const std::string& part, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("tensor split: '", part, "' ", why));
}

// "4", "4L", "12G", "50%". False when it is none of them.
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
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > 1e15) return false;
  if (share->unit == Unit::kLayers && value != std::floor(value)) return false;
  share->amount = value * unit;
  return true;
}

absl::StatusOr<SplitShare> ParseShare(const std::string& part) {
  SplitShare share;
  const size_t colon = part.find(':');
  if (colon == std::string::npos) {
    double value = 0;
    if (!absl::SimpleAtod(part, &value) || !(value >= 0) || value > 1e9) {
      return Wrong(part, "is neither DEVICE:AMOUNT nor a number");
    }
    share.unit = Unit::kProportion;
    share.amount = value;
    return share;
  }
  share.device = part.substr(0, colon);
  if (share.device.empty()) return Wrong(part, "names no device");
  if (!ParseAmount(part.substr(colon + 1), &share)) {
    return Wrong(part, "has no amount: write layers (4 or 4L), bytes (12G) or a share (50%)");
  }
  return share;
}

// Cuts n layers in proportion to the shares: each boundary is rounded, so that every layer has
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
    ranges.push_back({names[i], begin, end});
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

absl::StatusOr<std::vector<LayerRange>> ResolveNamed(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes) {
  const int n = static_cast<int>(layer_bytes.size());
  std::vector<LayerRange> ranges;
  double begin = 0;
  for (const SplitShare& s : shares) {
    const double layers =
        s.unit == Unit::kBytes
            ? LayersWithin(s.amount, layer_bytes, static_cast<int>(std::min<double>(begin, n)))
            : s.amount;
    const double end = begin + layers;
    if (end <= n) {
      ranges.push_back({s.device, static_cast<int>(begin), static_cast<int>(end)});
    }
    begin = end;
  }
  if (begin != n) {
    return absl::InvalidArgumentError(absl::StrCat("tensor split: it places ", begin,
                                                   " layers, but the model has ", n,
                                                   ": the numbers must add up to ", n));
  }
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
  return shares;
}

absl::StatusOr<std::vector<LayerRange>> ResolveSplit(const std::vector<SplitShare>& shares,
                                                     const std::vector<uint64_t>& layer_bytes,
                                                     const std::vector<std::string>& gpus) {
  const int n = static_cast<int>(layer_bytes.size());
  double total = 0;
  int percents = 0;
  std::vector<std::string> names;
  for (const SplitShare& s : shares) {
    total += s.amount;
    percents += s.unit == Unit::kPercent ? 1 : 0;
    names.push_back(s.device);
  }
  std::vector<LayerRange> ranges;
  if (shares.front().unit == Unit::kProportion) {
    if (shares.size() > gpus.size()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor split: ", shares.size(),
                                                     " proportions for ", gpus.size(),
                                                     " GPUs; name tiers instead, such as cpu:", n));
    }
    if (total <= 0) return absl::InvalidArgumentError("tensor split: the proportions are all 0");
    ranges = Proportional(shares, gpus, n);
  } else if (percents == static_cast<int>(shares.size())) {
    if (std::abs(total - 100) > 0.01) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor split: the shares add up to ", total, " %, not to 100 %"));
    }
    ranges = Proportional(shares, names, n);
  } else if (percents != 0) {
    return absl::InvalidArgumentError(
        "tensor split: shares in % can't be mixed with layers or bytes");
  } else {
    auto named = ResolveNamed(shares, layer_bytes);
    if (!named.ok()) return named.status();
    ranges = *std::move(named);
  }
  std::vector<LayerRange> used;
  for (LayerRange& range : ranges) {
    if (range.end > range.begin) used.push_back(std::move(range));
  }
  return used;
}

}  // namespace trine
