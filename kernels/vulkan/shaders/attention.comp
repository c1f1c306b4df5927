// Computes attention for ROWS rows of q over a paged cache. The rows are heads of one kv head, of
// one token or more.
//
// Without SPLIT, a workgroup goes through all chunks of its rows and joins them in y. With SPLIT,
// it computes one chunk, whose number is the group's z, and writes maximum, sum and values to
// scratch memory, for attention_join.
//
// The orders of sums are the contract's (docs/numerics.md). A score is a sum of 32 classes, held as
// eight vec4: the first steps of the tree, over classes 16, 8 and 4 apart, add whole vectors.
// Values have four classes of positions, and each quarter of the workgroup adds up one class. If a
// row does not see a position that other rows see, it adds a probability of +0, which changes no
// sum.
// others see adds a probability of +0, which changes no sum.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#include "math.glsl"

layout(local_size_x_id = 0) in;  // a multiple of 32
layout(constant_id = 1) const uint key_form = 0;
layout(constant_id = 2) const uint value_form = 0;
layout(constant_id = 3) const uint query_capacity = 16;  // the most vec4s of a row of q
// If a value has few vectors, PARTS invocations share the rows of a vector, so that none is idle.
layout(constant_id = 4) const uint PARTS = 1;
#ifndef SPLIT
layout(constant_id = 5) const bool quantizes = false;  // also writes y quantised
#endif
layout(set = 0, binding = 0) readonly buffer Queries { float queries[]; };
layout(set = 0, binding = 1) readonly buffer K4 { uint key_words[]; };
layout(set = 0, binding = 1) readonly buffer K2 { uint16_t key_halves[]; };
layout(set = 0, binding = 2) readonly buffer V4 { uint value_words[]; };
layout(set = 0, binding = 2) readonly buffer V2 { uint16_t value_halves[]; };
layout(set = 0, binding = 3) readonly buffer BlockTable { uint block_table[]; };
layout(set = 0, binding = 4) readonly buffer QOffsets { int q_offsets[]; };
layout(set = 0, binding = 5) readonly buffer KvLengths { int kv_lengths[]; };
#ifdef SPLIT
layout(set = 0, binding = 6) writeonly buffer Scratch { float scratch[]; };
#else
layout(set = 0, binding = 6) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 7) buffer Y { float y[]; };
layout(set = 0, binding = 8) writeonly buffer Quantized { uint q[]; };
#endif

#include "attention_push.glsl"
#ifndef SPLIT
#include "quantize_block.glsl"
#endif
#include "cache_rows.glsl"
DEFINE_CACHE_READER(LoadKey, key_words, key_halves, key_form, width)
DEFINE_CACHE_READER(LoadValue, value_words, value_halves, value_form, value_width)

const uint kGroup = gl_WorkGroupSize.x;
const uint kColumns = kGroup / 4u;       // invocations for each class of positions
const uint kVectors = kColumns / PARTS;  // vectors of a value at a time
const uint kOwnRows = ROWS / PARTS;
const uint kTile = 4u * kGroup / kVectors;  // positions that are exchanged at a time
const uint kQuads = ROWS / 4;

shared vec4 query[ROWS * query_capacity];
shared vec4 probability[kChunk * kQuads];  // holds the scores first
shared vec4 exchange[4u * kGroup];
shared float lanes[kGroup];
shared uint key_row[kChunk], value_row[kChunk];
// For each row: its sequence (-1: the result is zeros, -2: there is no such row), the positions
// that it sees, the part of them in the chunk, and the state of the join.
shared int row_sequence[ROWS];
shared ivec2 row_visible[ROWS];
shared ivec2 row_chunk[ROWS];
shared float row_m[ROWS], row_l[ROWS];  // maximum and sum of the chunk
shared Joined row_joined[ROWS];
shared bool row_empty[ROWS];
shared JoinWeights row_weights[ROWS];

uint lane, kv_head, first_row;  // rows are numbered over tokens times padded_group
uint query_vectors;             // vectors of a row of q: 8 for each 32 values or less

uint TokenOf(uint r) { return (first_row + r) / padded_group; }
uint HeadOf(uint r) { return kv_head * group + (first_row + r) % padded_group; }

void FindRows() {
  if (lane < ROWS) {
    const uint token = TokenOf(lane);
    int sequence = -2;
    ivec2 visible = ivec2(0);
    if (token < tokens && (first_row + lane) % padded_group < group) {
      sequence = SequenceOfToken(token);
      if (sequence >= 0) visible = VisibleTo(token, sequence);
      if (visible.x >= visible.y) sequence = -1;
    }
    row_sequence[lane] = sequence;
    row_visible[lane] = visible;
    row_empty[lane] = true;
  }
  barrier();
}

void LoadQuery() {
  for (uint j = lane; j < ROWS * query_vectors; j += kGroup) {
    const uint r = j / query_vectors, i = 4u * (j % query_vectors);
    vec4 values = vec4(0.0);
    if (row_sequence[r] >= 0) {
      const uint at = q_offset + HeadOf(r) * q_head + TokenOf(r) * q_token + i;
      for (uint k = 0u; k < 4u; ++k) {
        if (i + k < width) values[k] = queries[at + k];
      }
    }
    query[j] = values;
  }
}

// Below, positions count from the beginning of the chunk.
void FindPositions(uint sequence, uint chunk, uint begin, uint end) {
  for (uint t = begin + lane; t < end; t += kGroup) {
    const uint position = chunk * kChunk + t;
    const uint block = block_table[table_offset + sequence * table_sequence +
                                   position / block_positions];
    const uint inside = position % block_positions;
    key_row[t] = k_offset + inside * k_position + kv_head * k_head + block * k_block;
    value_row[t] = v_offset + inside * v_position + kv_head * v_head + block * v_block;
  }
  barrier();
}

float ScoreOf(float dot, float inverse_cap) {
  precise float scaled = dot * scale;
  const float score = Canon(scaled);
  return softcap != 0.0 ? Softcap(score, softcap, inverse_cap) : score;
}

// Products with rows 4 * quad to 4 * quad + 3 of q.
struct Products {
  vec4 row[4];
};

// For parts c, c + 2, c + 4 and c + 6 at once, adds up the classes 4 * part to 4 * part + 3 of a
// key's products over all blocks of 32 values, and joins the four parts by halves.
Products SumClasses(uint key, uint quad, uint c) {
  precise vec4 sums[4][4];
  for (uint r = 0u; r < 4u; ++r) {
    for (uint part = 0u; part < 4u; ++part) sums[part][r] = vec4(0.0);
  }
  for (uint i = c; i < query_vectors; i += 8u) {
    vec4 keys[4];
    for (uint part = 0u; part < 4u; ++part) keys[part] = LoadKey(key, i + 2u * part);
    for (uint r = 0u; r < 4u; ++r) {
      const uint at = (4u * quad + r) * query_vectors + i;
      for (uint part = 0u; part < 4u; ++part) {
        sums[part][r] = sums[part][r] + query[at + 2u * part] * keys[part];
      }
    }
  }
  Products result;
  for (uint r = 0u; r < 4u; ++r) {
    precise vec4 joined = (sums[0][r] + sums[2][r]) + (sums[1][r] + sums[3][r]);
    result.row[r] = joined;
  }
  return result;
}

// Computes the scores, one position for each invocation at a time.
void Scores(uint begin, uint end) {
  const float inverse_cap = softcap != 0.0 ? Recip(softcap) : 0.0;
  for (uint t = begin + lane; t < end; t += kGroup) {
    for (uint quad = 0u; quad < kQuads; ++quad) {
      const Products even = SumClasses(key_row[t], quad, 0u);
      const Products odd = SumClasses(key_row[t], quad, 1u);
      vec4 scores;
      for (uint r = 0u; r < 4u; ++r) {
        precise vec4 total = even.row[r] + odd.row[r];
        precise float dot = (total.x + total.z) + (total.y + total.w);
        scores[r] = dot;
      }
      for (uint r = 0u; r < 4u; ++r) scores[r] = ScoreOf(scores[r], inverse_cap);
      probability[t * kQuads + quad] = scores;
    }
  }
  barrier();
}

// Returns the largest score of a row. 32 invocations share the work; this is number `c` of them.
float RowMaximum(uint r, uint c, uint end, ivec2 seen) {
  float m = -1125899906842624.0;
  for (uint t = c; t < end; t += 32u) {
    if (int(t) >= seen.x && int(t) < seen.y) m = max(m, probability[t * kQuads + r / 4u][r % 4u]);
  }
  lanes[lane] = m;
  barrier();
  for (uint k = 0u; k < 32u; ++k) m = max(m, lanes[lane - c + k]);
  barrier();
  return m;
}

// Turns scores into probabilities; writes maximum and sum to row_m and row_l.
void Softmax(uint begin, uint end) {
  const uint c = lane % 32u;
  for (uint base = 0u; base < ROWS; base += kGroup / 32u) {
    const uint r = min(base + lane / 32u, ROWS - 1u);
    const bool mine = base + lane / 32u < ROWS;
    const ivec2 seen = mine ? row_chunk[r] : ivec2(0);
    const float m = RowMaximum(r, c, end, seen);
    precise float sum = 0.0;
    for (uint t = c; t < end; t += 32u) {
      float p = 0.0;
      if (int(t) >= seen.x && int(t) < seen.y) {
        precise float below = probability[t * kQuads + r / 4u][r % 4u] - m;
        p = Exp(below);
        sum = sum + p;
      }
      if (mine && t >= begin) probability[t * kQuads + r / 4u][r % 4u] = p;
    }
    lanes[lane] = sum;
    barrier();
    for (uint half_width = 16u; half_width > 0u; half_width /= 2u) {
      if (c < half_width) {
        precise float joined = lanes[lane] + lanes[lane + half_width];
        lanes[lane] = joined;
      }
      barrier();
    }
    if (mine && c == 0u) {
      row_m[r] = m;
      row_l[r] = lanes[lane];
    }
    barrier();
  }
}

#ifdef SPLIT
uint ScratchOf(uint r, uint chunk) {
  const uint heads = gl_NumWorkGroups.y * group;
  return ((TokenOf(r) * heads + HeadOf(r)) * chunks + chunk) * (value_width + 2u);
}

void JoinRows(uint chunk) {
  if (lane < ROWS && row_chunk[lane].x < row_chunk[lane].y) {
    const uint at = ScratchOf(lane, chunk) + value_width;
    scratch[at] = row_m[lane];
    scratch[at + 1u] = row_l[lane];
  }
}

void PutValues(uint r, uint chunk, uint i, vec4 values) {
  const uint at = ScratchOf(r, chunk) + i;
  for (uint k = 0u; k < 4u; ++k) {
    if (i + k < value_width) scratch[at + k] = values[k];
  }
}
#else
shared bool row_first[ROWS];

void JoinRows(uint chunk) {
  if (lane < ROWS && row_chunk[lane].x < row_chunk[lane].y) {
    row_first[lane] = row_empty[lane];
    if (row_empty[lane]) {
      row_joined[lane] = Joined(row_m[lane], row_l[lane]);
      row_empty[lane] = false;
    } else {
      Joined state = row_joined[lane];
      row_weights[lane] = JoinChunk(row_m[lane], row_l[lane], state);
      row_joined[lane] = state;
    }
  }
  barrier();
}

// y holds the values joined so far. The same invocation always reads and writes a given value.
void PutValues(uint r, uint chunk, uint i, vec4 values) {
  const uint at = y_offset + HeadOf(r) * y_head + TokenOf(r) * y_token + i;
  for (uint k = 0u; k < 4u; ++k) {
    if (i + k >= value_width) break;
    y[at + k] = row_first[r] ? values[k] : JoinValue(y[at + k], values[k], row_weights[r]);
  }
}

vec4 FinishValues(uint r, uint i) {
  const uint at = y_offset + HeadOf(r) * y_head + TokenOf(r) * y_token + i;
  vec4 result = vec4(0.0);
  for (uint k = 0u; k < 4u; ++k) {
    if (i + k >= value_width) break;
    if (!row_empty[r]) {
      precise float value = y[at + k];
      if ((flags & kSinks) != 0u) {
        value = value * row_weights[r].before;
        value = Canon(value);
      }
      value = value * row_l[r];
      result[k] = Canon(value);
    }
    y[at + k] = result[k];
  }
  return result;
}

// Joins the sink last, as a chunk whose value is zero, then divides by the sum.
void FinishRows() {
  if (lane < ROWS && !row_empty[lane]) {
    Joined state = row_joined[lane];
    if ((flags & kSinks) != 0u) {
      row_weights[lane] = JoinChunk(sinks[sinks_offset + HeadOf(lane)], 1.0, state);
    }
    row_l[lane] = Recip(state.l);
  }
  barrier();
  const uint heads = gl_NumWorkGroups.y * group;
  for (uint r = lane / kColumns; r < ROWS; r += 4u) {
    // All invocations must take the same number of rounds, because there are barriers in them.
    for (uint base = 0u; 4u * base < value_width; base += kColumns) {
      const uint i = 4u * (base + lane % kColumns);
      const bool ours = row_sequence[r] != -2 && i < value_width;
      vec4 values = vec4(0.0);
      if (ours) values = FinishValues(r, i);
      if (quantizes) {
        const uint blocks = heads * value_width / 32u, block = (HeadOf(r) * value_width + i) / 32u;
        QuantizeBlock(values, TokenOf(r) * QuantizedWords(blocks), blocks, block, ours);
      }
    }
  }
}
#endif

vec4 sums[kOwnRows];

// Adds up the values, kTile positions of kVectors vectors at a time, through shared memory: all
// invocations fetch and decode, each value once, then each adds up one class of positions (t mod 4)
// for one vector of its rows. Positions outside of [begin, end) have a probability of +0.
void SumValues(uint begin, uint end, uint base) {
  const uint position_class = lane / kColumns, part = lane % kColumns / kVectors;
  const uint last = (value_width - 1u) / 4u;
  [[unroll]] for (uint r = 0u; r < kOwnRows; ++r) sums[r] = vec4(0.0);
  for (uint tile = begin & ~3u; tile < end; tile += kTile) {
    for (uint j = 0u; j < 4u; ++j) {
      const uint e = j * kGroup + lane, t = clamp(tile + e / kVectors, begin, end - 1u);
      exchange[e] = LoadValue(value_row[t], min(base + e % kVectors, last));
    }
    barrier();
    for (uint i = position_class; i < kTile && tile + i < end; i += 4u) {
      const uint t = tile + i;
      const vec4 values = exchange[i * kVectors + lane % kVectors];
      [[unroll]] for (uint r = 0u; r < kOwnRows; ++r) {
        const uint row = part * kOwnRows + r;
        const float p = t < begin ? 0.0 : probability[t * kQuads + row / 4u][row % 4u];
        precise vec4 sum = sums[r] + vec4(p) * values;
        sums[r] = sum;
      }
    }
    barrier();
  }
}

void Values(uint chunk, uint begin, uint end) {
  const uint position_class = lane / kColumns, part = lane % kColumns / kVectors;
  for (uint base = 0u; 4u * base < value_width; base += kVectors) {
    SumValues(begin, end, base);
    for (uint quad = 0u; quad < kQuads; ++quad) {
      [[unroll]] for (uint r = 0u; r < kOwnRows; ++r) {
        const uint row = part * kOwnRows + r;
        const uint to = (row % 4u * 4u + position_class) * kVectors + lane % kVectors;
        if (row / 4u == quad) exchange[to] = sums[r];
      }
      barrier();
      // Each value is handled by the invocation that handles it in FinishRows.
      const uint r = 4u * quad + position_class, i = lane % kColumns;
      if (row_chunk[r].x < row_chunk[r].y && i < kVectors && 4u * (base + i) < value_width) {
        const uint at = position_class * 4u * kVectors + i;
        precise vec4 joined = (exchange[at] + exchange[at + 2u * kVectors]) +
                              (exchange[at + kVectors] + exchange[at + 3u * kVectors]);
        PutValues(r, chunk, 4u * (base + i), joined);
      }
      barrier();
    }
  }
}

// Rows [first, last) are of one sequence; together they see positions [visible.x, visible.y).
void AttendChunk(uint first, uint last, ivec2 visible, uint chunk) {
  const int start = int(chunk * kChunk);
  if (lane < ROWS) {
    const bool inside = lane >= first && lane < last;
    row_chunk[lane] = inside ? clamp(row_visible[lane] - start, 0, int(kChunk)) : ivec2(0);
  }
  const uvec2 range = uvec2(clamp(visible - start, 0, int(kChunk)));
  FindPositions(uint(row_sequence[first]), chunk, range.x, range.y);
  Scores(range.x, range.y);
  Softmax(range.x, range.y);
  JoinRows(chunk);
  Values(chunk, range.x, range.y);
}

void AttendTile() {
  FindRows();
  LoadQuery();
  for (uint first = 0u, last = 0u; first < ROWS; first = last) {
    last = first + 1u;
    while (last < ROWS && row_sequence[last] == row_sequence[first]) ++last;
    if (row_sequence[first] < 0) continue;
    ivec2 visible = row_visible[first];
    for (uint r = first + 1u; r < last; ++r) {
      visible = ivec2(min(visible.x, row_visible[r].x), max(visible.y, row_visible[r].y));
    }
#ifdef SPLIT
    const uint chunk = gl_WorkGroupID.z;
    if (visible.x < int((chunk + 1u) * kChunk) && visible.y > int(chunk * kChunk)) {
      AttendChunk(first, last, visible, chunk);
    }
#else
    for (uint chunk = uint(visible.x) / kChunk; int(chunk * kChunk) < visible.y; ++chunk) {
      AttendChunk(first, last, visible, chunk);
    }
#endif
  }
#ifndef SPLIT
  FinishRows();
#endif
  barrier();
}

void main() {
  lane = gl_LocalInvocationID.x;
  kv_head = gl_WorkGroupID.y;
  query_vectors = (width + 31u) / 32u * 8u;
  const uint tiles = (tokens * padded_group + ROWS - 1u) / ROWS;
  for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += gl_NumWorkGroups.x) {
    first_row = tile * ROWS;
    AttendTile();
  }
}
