// Quantised activations in the order in which AMX's tiles multiply them (record_product.cc). A
// record is one block of 16 rows, which are a product's columns. The records of 16 rows lie one
// after the other, sorted by class (block index mod 8), because the terms of a class are summed
// together, over all of k. After the records lie the sums of the same blocks, which only formats
// with minimums read.
//
// Records and sums take the memory of the chunks that they replace (activations.h).

#pragma once

#include <cstdint>

#include "kernels/cpu/levels/activations.h"

namespace trine::cpu_kernels {

struct alignas(64) ActivationRecord {
  int8_t q[kInterleavedRows][quant::kGroupValues];
  float d[kInterleavedRows];
};
struct alignas(64) ActivationSums {
  float sum[kInterleavedRows];  // the sum of a block's q, by row
  float half_sum[2][kInterleavedRows];
};
static_assert(sizeof(ActivationRecord) == 576);
static_assert(quant::kSuperGroups * (sizeof(ActivationRecord) + sizeof(ActivationSums)) ==
              kInterleavedRows * sizeof(ActivationChunk));

// The classes in the order in which their records lie. In this order their sums can be joined as
// they are computed: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Position i has class
// kClassOrder[i], and class i is at position kClassOrder[i].
static constexpr int kClassOrder[quant::kSuperGroups] = {0, 4, 2, 6, 1, 5, 3, 7};

// Returns the number of records of rows of k values; at least eight, so that each class has one.
static constexpr int64_t RecordCount(int64_t k) {
  const int64_t blocks = k / quant::kGroupValues;
  return blocks < quant::kSuperGroups ? quant::kSuperGroups : blocks;
}

// The first record of each class, among `count` records.
struct RecordOrder {
  int64_t first[quant::kSuperGroups];
};
static constexpr RecordOrder OrderOfRecords(int64_t count) {
  RecordOrder order = {};
  int64_t first = 0;
  for (const int j : kClassOrder) {
    order.first[j] = first;
    first += BlocksOfClass(count, j);
  }
  return order;
}

// The records and sums of 16 rows of k values.
template <typename Record, typename Sums>
struct GroupOfRecords {
  Record* records;
  Sums* sums;
};
static inline GroupOfRecords<ActivationRecord, ActivationSums> RecordsOfGroup(
    ActivationChunk* chunks, int64_t group, int64_t k) {
  auto* records =
      reinterpret_cast<ActivationRecord*>(chunks + group * kInterleavedRows * ActivationChunks(k));
  return {records, reinterpret_cast<ActivationSums*>(records + RecordCount(k))};
}
static inline GroupOfRecords<const ActivationRecord, const ActivationSums> RecordsOfGroup(
    const ActivationChunk* chunks, int64_t group, int64_t k) {
  const auto [records, sums] = RecordsOfGroup(const_cast<ActivationChunk*>(chunks), group, k);
  return {records, sums};
}

}  // namespace trine::cpu_kernels
