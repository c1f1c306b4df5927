#include "kernels/hip/gemm/gemm_choice.h"

#include <algorithm>
#include <cmath>

namespace trine::hip {
namespace {

int64_t Tiles(int64_t count, uint32_t size) { return (count + size - 1) / size; }

// Returns the device's unit, or kDot4 if there are no kernels for it (another vendor's unit).
MatrixUnit UnitOf(const DeviceShape& shape) {
  const bool there = PackedGemm(quant::Type::kQ8_0, shape.unit, false) != nullptr;
  return there ? shape.unit : MatrixUnit::kDot4;
}

// ---- Kernels whose groups of lanes have a class each (gemm_tile.h) ---------------------------

// Returns whether to use large tiles. They do more work for each load, but there must be enough
// tiles for the device, and enough columns to fill them.
bool Large(const Product& product, const DeviceShape& shape) {
  if (!HasLargeTiles(UnitOf(shape), product.w.type, product.w.packed)) return false;
  int64_t columns = product.columns(), tiles = Tiles(columns, kLargeTile.columns);
  if (product.ids.present()) {
    const int64_t experts = std::max<int64_t>(1, product.w.dims[2]);
    columns /= experts;  // of each expert, on average
    tiles = experts * Tiles(columns, kLargeTile.columns);
  }
  return columns > kLargeTile.columns / 2 &&
         4 * tiles * Tiles(product.w.dims[1], kLargeTile.rows) >=
             3 * int64_t{shape.multiprocessors};
}

TiledGemm InOrder(const Product& product, const DeviceShape& shape) {
  const quant::Type type = product.w.type;
  const MatrixUnit unit = UnitOf(shape);
  const bool large = Large(product, shape);
  TiledGemm chosen;
  chosen.tile = large ? kLargeTile : kSmallTile;
  if (HasWholeWaves(unit)) chosen.tile.threads *= 2;
  chosen.resident = large ? 1 : 2;
  if (product.w.packed) {
    chosen.kernel = PackedGemm(type, unit, large);
  } else {
    chosen.kernel = SmallBlockGemm(type, unit, large);
    if (chosen.kernel == nullptr) chosen.kernel = SuperBlockGemm(type, unit, large);
  }
  return chosen;
}

// ---- Kernels for packed weights (gemm_by_class.h, gemm_by_warp.h) ----------------------------

// Returns the columns for which tiles are chosen. Some experts have more than the average.
int64_t TypicalColumns(const Product& product) {
  if (!product.ids.present()) return product.columns();
  const double average = static_cast<double>(product.columns()) /
                         static_cast<double>(std::max<int64_t>(1, product.w.dims[2]));
  return static_cast<int64_t>(std::ceil(average + 2 * std::sqrt(average)));
}

// Predicts the time of a product, in results that one multiprocessor computes one after the other.
double Cost(const Product& product, const DeviceShape& shape, const TiledGemm& kernel) {
  // To load and decode a row, or a column, takes as long as some results.
  constexpr double kOfLine = 8;
  const TileShape& tile = kernel.tile;
  const int64_t columns = TypicalColumns(product), across = Tiles(columns, tile.columns);
  const int64_t experts = product.ids.present() ? std::max<int64_t>(1, product.w.dims[2]) : 1;
  const int64_t tiles = experts * across * Tiles(product.w.dims[1], tile.rows);
  // Groups of 8 columns that no tile has cost nothing.
  const double filled = static_cast<double>(Tiles(columns, 8) * 8) / static_cast<double>(across);
  const double rows = tile.rows;
  const int64_t each = Tiles(tiles, shape.multiprocessors);
  // A multiprocessor with fewer threads than it has room for is not that much faster.
  const double busy = std::max(static_cast<double>(each), 0.6 * kernel.resident);
  return busy * (rows * filled + kOfLine * (rows + filled));
}

// Returns the best kernel for packed weights alone. Returns none if no such kernel takes the
// product, or if `other` is better.
TiledGemm ForPacked(const Product& product, const DeviceShape& shape, const TiledGemm& other) {
  // The other kernel computes whole tiles, does more for each result, and waits for loads.
  constexpr double kOtherTimes = 2.2;
  // Each result of a tile with a warp for each class is computed by one warp of eight.
  constexpr double kByWarpTimes = 1.2;
  if (shape.unit != MatrixUnit::kMma || !product.w.packed || product.q.by_class == nullptr) {
    return {};
  }
  TiledGemm best;
  double least = kOtherTimes * Cost(product, shape, other);
  const auto weigh = [&](const TiledGemms& kernels, double times) {
    for (const TiledGemm& kernel : kernels) {
      if (kernel.kernel == nullptr || kernel.shared_bytes > shape.asked_shared_bytes) continue;
      const double cost = times * Cost(product, shape, kernel);
      if (cost >= least) continue;
      least = cost;
      best = kernel;
    }
  };
  weigh(ByClassGemm(product.w.type), 1.0);
  weigh(ByWarpGemm(product.w.type), kByWarpTimes);
  return best;
}

}  // namespace

TiledGemm ChooseGemm(const Product& product, const DeviceShape& shape) {
  if (!quant::IsQuantized(product.w.type)) {
    return {FloatGemm(product.w.type, product.w.packed), kFloatTile};
  }
  const TiledGemm in_order = InOrder(product, shape);
  const TiledGemm packed = ForPacked(product, shape, in_order);
  return packed.kernel != nullptr ? packed : in_order;
}

int64_t ColumnTiles(const Product& product, const TileShape& tile) {
  const int64_t columns = product.columns();
  if (!product.ids.present()) return Tiles(columns, tile.columns);
  // Every expert, and the ids that are no expert, may have a tile that is not full.
  return std::min(columns, columns / tile.columns + product.w.dims[2] + 1);
}

}  // namespace trine::hip
