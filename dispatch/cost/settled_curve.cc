#include "dispatch/cost/settled_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "dispatch/cost/rounds.h"

namespace trine {
namespace {

constexpr double kLeastCost = 1e-9;
// A fall by less is noise. Growth beyond proportion by less is the border between two kernels.
constexpr double kNoise = 1.1;
constexpr double kBorder = 1.5;
// Points that are further apart contradict each other, however often they were measured.
constexpr double kFarFall = 2;
constexpr double kFarLeap = 4;
// A measurement with a larger spread says too little.
constexpr double kUnevenSpread = 0.5;
// No type of weights is read so many times faster than all others.
constexpr double kFarFromPeers = 4;

struct CurvePoint {
  double at = 1;
  std::vector<double> values;  // of the last measurement
  double cost = 0;             // the median of `values`
  double first_cost = 0;       // of the first measurement
  int times = 0;               // that it was measured
};

// Returns whether the costs of two sizes, a < b, agree within these factors.
bool Agree(const CurvePoint& a, const CurvePoint& b, double fall, double leap) {
  return b.cost * fall >= a.cost && b.cost <= a.cost * (b.at / a.at) * leap;
}

// Returns the points whose rounds were uneven, and those that contradict a neighbour. Which of two
// neighbours is wrong is not known.
std::vector<size_t> Doubtful(const std::vector<CurvePoint>& points) {
  std::vector<bool> doubtful;
  for (const CurvePoint& p : points) {
    doubtful.push_back(Summarise(p.values).spread > kUnevenSpread);
  }
  for (size_t i = 1; i < points.size(); ++i) {
    if (!Agree(points[i - 1], points[i], kNoise, kBorder)) doubtful[i - 1] = doubtful[i] = true;
  }
  std::vector<size_t> found;
  for (size_t i = 0; i < points.size(); ++i) {
    if (doubtful[i]) found.push_back(i);
  }
  return found;
}

// Returns the largest set of points that agree with each other; of several, the one with the
// highest costs, because a time that is too short does more harm to a plan than one too long.
std::vector<bool> LargestAgreement(const std::vector<CurvePoint>& points) {
  const size_t n = points.size();
  uint32_t best = 0;
  std::pair<int, double> best_rank(0, 0);
  for (uint32_t set = 1; set < (uint32_t{1} << n); ++set) {
    std::pair<int, double> rank(0, 0);
    bool agree = true;
    for (size_t b = 0; b < n && agree; ++b) {
      if ((set >> b & 1) == 0) continue;
      ++rank.first;
      rank.second += std::log(points[b].cost);
      for (size_t a = 0; a < b && agree; ++a) {
        agree = (set >> a & 1) == 0 || Agree(points[a], points[b], kFarFall, kFarLeap);
      }
    }
    if (!agree || (best != 0 && rank <= best_rank)) continue;
    best = set;
    best_rank = rank;
  }
  std::vector<bool> kept(n);
  for (size_t i = 0; i < n; ++i) kept[i] = (best >> i & 1) != 0;
  return kept;
}

// Replaces costs that fall by their geometric mean, until none falls (isotonic regression).
std::vector<double> WithoutFalls(const std::vector<double>& costs) {
  struct Pool {
    double log_sum;
    size_t count;
    double Mean() const { return log_sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const double cost : costs) {
    pools.push_back({std::log(cost), 1});
    while (pools.size() > 1 && pools.back().Mean() < pools[pools.size() - 2].Mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().log_sum += last.log_sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> level;
  for (const Pool& pool : pools) {
    // A point by itself keeps its cost to the last bit.
    const double cost = pool.count == 1 ? costs[level.size()] : std::exp(pool.Mean());
    level.insert(level.end(), pool.count, cost);
  }
  return level;
}

std::string TokensText(double tokens) {
  return absl::StrCat(tokens, tokens == 1 ? " token" : " tokens");
}

std::string TimesText(int times) { return absl::StrCat("in ", times, " measurements"); }

class CurveSettler {
 public:
  CurveSettler(const std::vector<double>& sizes,
               const std::function<absl::StatusOr<double>(size_t)>& measure, const CurveCare& care)
      : sizes_(sizes), measure_(measure), care_(care) {}

  absl::StatusOr<SettledCurve> Run() {
    if (absl::Status s = FirstTime(); !s.ok()) return s;
    for (int i = 0; i < care_.again; ++i) {
      const std::vector<size_t> doubtful = Doubtful(points_);
      if (doubtful.empty()) break;
      if (absl::Status s = Measure(doubtful, care_.rounds); !s.ok()) return s;
    }
    return Settle();
  }

 private:
  // Goes through the sizes until a point is long enough, then measures the other rounds.
  absl::Status FirstTime() {
    std::vector<size_t> all;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (i >= care_.least && points_.back().cost >= care_.enough) break;
      points_.emplace_back().at = sizes_[i];
      all.push_back(i);
      if (absl::Status s = Measure({i}, 1); !s.ok()) return s;
    }
    std::vector<double> first;
    for (const CurvePoint& p : points_) first.push_back(p.values[0]);
    if (absl::Status s = Measure(all, care_.rounds - 1); !s.ok()) return s;
    for (size_t i = 0; i < points_.size(); ++i) {
      CurvePoint& p = points_[i];
      p.values.push_back(first[i]);
      p.cost = p.first_cost = Summarise(p.values).median;
      p.times = 1;
    }
    return absl::OkStatus();
  }

  // Measures points anew, and forgets what was measured before.
  absl::Status Measure(const std::vector<size_t>& which, int rounds) {
    std::vector<MeasureOnce> things;
    for (const size_t i : which) {
      things.push_back([this, i] { return measure_(i); });
    }
    const auto measured = MeasureInRounds(rounds, things);
    if (!measured.ok()) return measured.status();
    for (size_t t = 0; t < which.size(); ++t) {
      CurvePoint& p = points_[which[t]];
      p.values.clear();
      for (const std::vector<double>& times : *measured) {
        const double cost = times[t];
        p.values.push_back(std::isfinite(cost) ? std::max(cost, kLeastCost) : kLeastCost);
      }
      p.cost = Summarise(p.values).median;
      ++p.times;
    }
    return absl::OkStatus();
  }

  SettledCurve Settle() const {
    const std::vector<bool> kept = LargestAgreement(points_);
    std::vector<double> costs;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (kept[i]) costs.push_back(points_[i].cost);
    }
    const std::vector<double> level = WithoutFalls(costs);
    SettledCurve settled;
    std::vector<CostCurve::Point> points;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!kept[i]) continue;
      points.push_back({points_[i].at, level[points.size()]});
      settled.spreads.push_back(Summarise(points_[i].values).spread);
    }
    settled.curve = CostCurve(std::move(points));
    for (size_t i = 0; i < points_.size(); ++i) {
      std::string doubt = DoubtText(points_[i], kept[i], settled.curve.At(points_[i].at));
      if (!doubt.empty()) settled.doubts.push_back(std::move(doubt));
    }
    return settled;
  }

  // Says what became of a point; "": nothing worth mention. `cost` is the curve's.
  static std::string DoubtText(const CurvePoint& p, bool kept, double cost) {
    const std::string what = absl::StrCat(TokensText(p.at), ": ");
    if (!kept) {
      return absl::StrFormat("%s%.3g ns %s, which contradicts the other points: %.3g ns is kept",
                             what, p.cost, TimesText(p.times), cost);
    }
    if (std::max(cost / p.cost, p.cost / cost) > kNoise) {
      return absl::StrFormat("%s%.3g ns %s, but more tokens never take less time: %.3g ns is kept",
                             what, p.cost, TimesText(p.times), cost);
    }
    if (std::max(p.first_cost / p.cost, p.cost / p.first_cost) > kBorder) {
      return absl::StrFormat("%s%.3g ns at first: measured again, %.3g ns is kept", what,
                             p.first_cost, cost);
    }
    return "";
  }

  const std::vector<double>& sizes_;
  const std::function<absl::StatusOr<double>(size_t)>& measure_;
  const CurveCare& care_;
  std::vector<CurvePoint> points_;
};

}  // namespace

absl::StatusOr<SettledCurve> SettleCurve(
    const std::vector<double>& sizes, const std::function<absl::StatusOr<double>(size_t)>& measure,
    const CurveCare& care) {
  return CurveSettler(sizes, measure, care).Run();
}

bool IsTooFastForItsPeers(const ReadCost& type, const std::vector<ReadCost>& others) {
  if (others.size() < 2) return false;
  return std::all_of(others.begin(), others.end(), [&](const ReadCost& other) {
    const bool weights = type.cost_ns * kFarFromPeers < other.cost_ns;
    return weights && type.cost_ns / type.bytes * kFarFromPeers < other.cost_ns / other.bytes;
  });
}

}  // namespace trine
