// The costs of work on one device: a few numbers for each kind of op, measured (measure_device.h)
// or guessed (GuessCosts). docs/placement.md, "The cost model", says what each number is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trine/backend.h"

namespace trine {

// A cost that depends on a size, such as the tokens that share a pass.
class CostCurve {
 public:
  struct Point {
    double at = 1;
    double cost = 0;
  };

  CostCurve() = default;
  // Makes an empty curve unless all points are finite and above 0, in the order of their sizes.
  explicit CostCurve(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // Returns the cost at a size. Interpolates along straight lines in a double logarithmic plot.
  // Below the first point the cost is constant; beyond the last it grows in proportion to the size.
  // Returns 0 if the curve is empty.
  double At(double size) const;
  // Returns the cost at a size, as At does, but beyond the last point the cost is constant. Returns
  // 1 if the curve is empty.
  double Within(double size) const { return empty() ? 1 : At(std::min(size, points_.back().at)); }

 private:
  std::vector<Point> points_;
};

// The cost of an op without weights: a part for the op itself and a part for each value in and out.
struct OpCost {
  double op_ns = 0;
  double value_ns = 0;
};

// The cost of moving bytes between the host and the device.
struct MoveCost {
  double call_ns = 0;
  double byte_ns = 0;

  double Of(double bytes) const { return call_ns + bytes * byte_ns; }
};

// A cost of 0, and an empty curve that does not stand for 1, have not been measured.
struct DeviceCosts {
  double run_ns = 0;     // for each run of a plan, whatever is in it
  double matmul_ns = 0;  // for each product, whatever its size
  // The cost per weight of the matrix, by the type of the weights and the number of tokens. A type
  // is missing if no product with it was measured.
  std::map<uint32_t, CostCurve> matmul;
  double attention_ns = 0;      // for each op
  CostCurve attention;          // per value in the cache and query head, by the number of tokens
  double attention_kv_ns = 0;   // per value in the cache, for all heads together
  OpCost norm;                  // rms_norm, layer_norm
  OpCost rope;                  // rope
  OpCost glu;                   // glu, activation, softcap
  OpCost plain;                 // all other ops: they only move or add
  MoveCost in;                  // from the host
  MoveCost out;                 // to the host
  double bytes_per_second = 0;  // weights read at one token: the load on the bandwidth domain
  // The time of whole layers divided by the sum of their ops' times, by the number of tokens. It is
  // not 1, because backends join ops, and an op finds in a cache what the op before it left there.
  // Empty: 1.
  CostCurve correction;
  // How many times longer a product takes with weights in the file's layout, by the number of
  // tokens. Empty: 1.
  CostCurve unpacked;
  // The cost per byte of bringing weights from the host's memory to a device that has its own. 0:
  // not known.
  double stream_byte_ns = 0;
  // The part of the cost of products of few tokens that is left if all bytes that a token reads
  // stay in caches, by the number of these bytes. Empty: not known.
  CostCurve reuse;

  double StreamByteNs() const { return stream_byte_ns > 0 ? stream_byte_ns : in.byte_ns; }
};

// How far measured costs can be trusted.
struct CostTrust {
  // What other work was seen on the machine meanwhile, such as "other processes used 1.4 of 2
  // processors"; "": none.
  std::string busy;
  // By the type of weights: how far repeated measurements of each point of the curve were apart
  // (RepeatedCost::spread).
  std::map<uint32_t, std::vector<double>> spread;
};

// The measured costs of a device, and how far to trust them.
struct MeasuredCosts {
  DeviceCosts costs;
  CostTrust trust;
};

struct KnownCosts {
  DeviceCosts costs;
  bool measured = false;             // false: all of it is guessed
  std::vector<std::string> guessed;  // if `measured`: the costs that are guesses (MissingCosts)
  std::string busy;                  // CostTrust::busy
};

// Names the costs of ops, runs and moves that were not measured, such as "attention". Types of
// weights are not among them.
std::vector<std::string> MissingCosts(const DeviceCosts& costs);

// Returns a copy of `measured` in which the costs that MissingCosts names are taken from `guessed`.
DeviceCosts WithMissingCosts(DeviceCosts measured, const DeviceCosts& guessed);

// Guesses the costs of a device that was not measured, from its kind alone. They are right within a
// small factor, which is enough to put devices in the right order. `threads`: the number that work
// for a CPU.
DeviceCosts GuessCosts(const trine_device_info& info, uint32_t threads);

}  // namespace trine
