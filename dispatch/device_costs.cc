#include "dispatch/device_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trine {

CostCurve::CostCurve(std::vector<Point> points) : points_(std::move(points)) {
  const auto good = [](const Point& p) {
    return std::isfinite(p.at) && std::isfinite(p.cost) && p.at > 0 && p.cost > 0;
  };
  const auto before = [](const Point& a, const Point& b) { return a.at >= b.at; };
  if (!std::all_of(points_.begin(), points_.end(), good) ||
      std::adjacent_find(points_.begin(), points_.end(), before) != points_.end()) {
    points_.clear();
  }
}

double CostCurve::At(double size) const {
  if (points_.empty()) return 0;
  if (size <= points_.front().at) return points_.front().cost;
  const Point& last = points_.back();
  if (size >= last.at) return last.cost * size / last.at;
  const auto above =
      std::upper_bound(points_.begin(), points_.end(), size,
                       [](double value, const Point& point) { return value < point.at; });
  const Point& a = *(above - 1);
  const Point& b = *above;
  const double part = std::log(size / a.at) / std::log(b.at / a.at);
  return a.cost * std::pow(b.cost / a.cost, part);
}

}  // namespace trine
