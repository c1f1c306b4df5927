// What work costs on one device: a few numbers per kind of op, measured (measure_device.h) or
// guessed (guessed_costs.h). docs/placement.md, "The cost model", says what each is for.
#ifndef TRINE_DISPATCH_DEVICE_COSTS_H_
#define TRINE_DISPATCH_DEVICE_COSTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace trine {

// A cost that depends on a size, such as the tokens that share a pass.
class CostCurve {
 public:
  struct Point {
    double at = 1;
    double cost = 0;
  };

  CostCurve() = default;
  // Above 0 and finite, in the order of sizes; else the curve is empty.
  explicit CostCurve(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // On straight lines between the points of a double logarithmic plot; below the first of them as
  // there, beyond the last in proportion.
  double At(double size) const;
  // The same, but beyond the last as there.
  double Within(double size) const { return empty() ? 1 : At(std::min(size, points_.back().at)); }

 private:
  std::vector<Point> points_;
};

// An op without weights: something for the op itself and something for each value in and out.
struct OpCost {
  double op_ns = 0;
  double value_ns = 0;
};

// Moving bytes between the host and the device.
struct MoveCost {
  double call_ns = 0;
  double byte_ns = 0;

  double Of(double bytes) const { return call_ns + bytes * byte_ns; }
};

struct DeviceCosts {
  double run_ns = 0;     // each run of a plan, whatever is in it
  double matmul_ns = 0;  // each product, whatever its size
  // Per weight of the matrix, by the weight's type. A type that is missing is one that the device
  // was not seen to multiply with.
  std::map<uint32_t, CostCurve> matmul;
  double attention_ns = 0;      // each op
  CostCurve attention;          // per value in the cache and head that looks at it, by tokens
  double attention_kv_ns = 0;   // per value in the cache, whoever looks at it
  OpCost norm;                  // rms_norm, layer_norm
  OpCost rope;                  // rope
  OpCost glu;                   // glu, activation, softcap
  OpCost plain;                 // everything else: it only moves or adds
  MoveCost in;                  // from the host
  MoveCost out;                 // to the host
  double bytes_per_second = 0;  // of weights, at one token: what it draws from its domain
  // What whole layers took over what the sum of their ops says, by tokens: backends join ops, and
  // what one leaves in a cache the next finds there. Empty: 1.
  CostCurve correction;
  // How many times longer a product takes with weights as the file has them, by tokens. Empty: 1.
  CostCurve unpacked;
  // Each byte of weights that stay in the host's memory, on their way to a device that has its own.
  // 0: it is not known.
  double stream_byte_ns = 0;
  // How much of the cost of few tokens' products is left where a token reads no more than so many
  // bytes, which then stay in caches. Empty: nothing is known of that.
  CostCurve reuse;

  double StreamByteNs() const { return stream_byte_ns > 0 ? stream_byte_ns : in.byte_ns; }
};

struct KnownCosts {
  DeviceCosts costs;
  bool measured = false;  // else it is guessed, all of it
};

}  // namespace trine

#endif  // TRINE_DISPATCH_DEVICE_COSTS_H_
