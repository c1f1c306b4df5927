// Quantised activations in the order that tiles are multiplied in (record_product.h). A record is
// one block of 16 rows, which are a product's columns. Those of 16 rows lie one after the other,
// sorted by class (block index mod 8): the terms of a class are summed in a row, over all of k.
// Behind them lie the sums of the same blocks, which only formats with minimums read.
//
// They take the room of the chunks they stand for (activations.h).

#ifndef TRINE_KERNELS_CPU_ACTIVATION_RECORDS_H_
#define TRINE_KERNELS_CPU_ACTIVATION_RECORDS_H_

#include <cstdint>

#include "kernels/cpu/activations.h"

namespace trine::cpu_kernels {

struct alignas(64) ActivationRecord {
  int8_t q[kInterleavedRows][quant::kGroupValues];
  float d[kInterleavedRows];
};
struct alignas(64) ActivationSums {
  float sum[kInterleavedRows];  // of a block's q
  float half_sum[2][kInterleavedRows];
};
static_assert(sizeof(ActivationRecord) == 576);
static_assert(quant::kSuperGroups * (sizeof(ActivationRecord) + sizeof(ActivationSums)) ==
              kInterleavedRows * sizeof(ActivationChunk));

// The classes in the order their records lie in, by which their sums can be joined as they come
// out: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). The class at position i is at position
// kClassOrder[i].
static constexpr int kClassOrder[quant::kSuperGroups] = {0, 4, 2, 6, 1, 5, 3, 7};

// Records of rows of k values. Of short rows the last ones are zeros, so that no class is without.
static constexpr int64_t RecordCount(int64_t k) {
  const int64_t blocks = k / quant::kGroupValues;
  return blocks < quant::kSuperGroups ? quant::kSuperGroups : blocks;
}

// Where the records of each class begin, of `count` records.
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

// The records of 16 rows of k values.
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

#endif  // TRINE_KERNELS_CPU_ACTIVATION_RECORDS_H_
