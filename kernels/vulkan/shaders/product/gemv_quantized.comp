// Multiplies quantised weights with 1 to 8 columns of quantised activations.
//
// In a slot of eight lanes, each lane has the blocks of one class and adds up their terms as they
// come. A slot of more lanes has more blocks in flight: terms go through shared memory to eight
// lanes for each result, which add them up in order.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"
#include "product/weight_types.glsl"
#include "product/packed_group.glsl"
#include "product/block_term.glsl"
#include "product/quantized_activations.glsl"
#include "product/product.glsl"
#include "product/gemv.glsl"

const bool DIRECT = LANES == 8;
const uint PASS = LANES * BLOCKS;          // blocks that a slot reads between two barriers
const uint ADDERS = LANES / 8;             // results that a slot adds up at the same time
const uint SUMS = DIRECT ? RESULTS : (RESULTS + ADDERS - 1) / ADDERS;
shared float terms[2][DIRECT ? 1 : SLOTS * RESULTS * PASS];
shared float sums[SLOTS * RESULTS * 8];

void main() {
  const uint slot = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
  const uint blocks = k / 32, row = FirstRow(), column = FirstColumn();
  Place place;
  if (GroupIsBeyond() || !FindPlace(row, place)) return;

  uint row_at[ROWS], column_at[COLUMNS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    row_at[r] = place.weights + min(row + r, n - 1) * weight_stride;
  }
  [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
    column_at[c] = ColumnOfX(min(column + c, columns - 1));
  }

  precise float sum[SUMS];
  [[unroll]] for (uint i = 0; i < SUMS; ++i) sum[i] = 0.0;

  uint side = 0;
  for (uint first = 0; first < blocks; first += PASS) {
    [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
      // Beyond the row's end the last block is read again and its term is 0. This changes no sum
      // and needs no branch, so that all loads of a round can be in flight together.
      const uint block = first + i * LANES + lane, at = min(block, blocks - 1);
      Group w[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = LoadGroup(row_at[r], blocks, at);
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const Activation a = LoadActivation(column_at[c], blocks, at);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          const uint result = r * COLUMNS + c;
          float term = BlockTerm(w[r], a);
          if (block >= blocks) term = 0.0;
          if (DIRECT) {
            sum[result] = sum[result] + term;
          } else {
            terms[side][(slot * RESULTS + result) * PASS + i * LANES + lane] = term;
          }
        }
      }
    }
    if (DIRECT) continue;
    barrier();
    [[unroll]] for (uint i = 0; i < SUMS; ++i) {
      const uint result = i * ADDERS + lane / 8;
      if (result < RESULTS) {
        const uint from = (slot * RESULTS + result) * PASS;
        for (uint t = lane % 8; t < PASS; t += 8) sum[i] = sum[i] + terms[side][from + t];
      }
    }
    side ^= 1;  // the terms of this round are still being read
  }

  [[unroll]] for (uint i = 0; i < SUMS; ++i) {
    const uint result = DIRECT ? i : i * ADDERS + lane / 8;
    if (result < RESULTS) sums[(slot * RESULTS + result) * 8 + lane % 8] = sum[i];
  }
  barrier();
  for (uint i = lane; i < RESULTS; i += LANES) {
    const uint r = row + i / COLUMNS, c = column + i % COLUMNS;
    if (r >= n || c >= columns) continue;
    const uint at = (slot * RESULTS + i) * 8;
    precise float even = (sums[at] + sums[at + 4]) + (sums[at + 2] + sums[at + 6]);
    precise float odd = (sums[at + 1] + sums[at + 5]) + (sums[at + 3] + sums[at + 7]);
    precise float dot = even + odd;
    y[ColumnOfY(c) + r] = Finish(dot, place.bias + r);
  }
}
