// What the attention shaders are told, and what follows from it for one token. Places are in words,
// of f16 and bf16 caches that have no whole words in halves.
layout(push_constant) uniform Push {
  uint q_offset, q_head, q_token;
  uint k_offset, k_position, k_head, k_block;
  uint v_offset, v_position, v_head, v_block;
  uint table_offset, table_sequence;
  uint offsets_offset, lengths_offset, sinks_offset;
  uint y_offset, y_head, y_token;
  float scale, softcap;
  uint window, flags;
  uint width, value_width;       // of a key and of a value
  uint group, padded_group;      // heads of a kv head, and how many are counted for it
  uint tokens, sequences;
  uint block_positions, chunks;  // chunks: of scratch memory, for each row
  uint first_token;              // tokens are counted from here, but for the sequences
};
const uint kCausal = 1u, kSinks = 2u;
const uint kChunk = 256u;

// Tokens of one sequence are its last positions. -1: the token is in none.
int SequenceOfToken(uint token) {
  const int at = int(first_token + token);
  for (uint s = 0u; s < sequences; ++s) {
    if (at >= q_offsets[offsets_offset + s] && at < q_offsets[offsets_offset + s + 1u]) {
      return int(s);
    }
  }
  return -1;
}

// The positions [x, y) that a token of a sequence sees.
ivec2 VisibleTo(uint token, int sequence) {
  const int length = kv_lengths[lengths_offset + uint(sequence)];
  const int position =
      length - q_offsets[offsets_offset + uint(sequence) + 1u] + int(first_token + token);
  ivec2 visible = ivec2(0, length);
  if ((flags & kCausal) != 0u) visible.y = min(visible.y, position + 1);
  if (window > 0u) visible.x = max(0, position - int(window) + 1);
  return visible;
}

// The chunks joined so far: their maximum and sum.
struct Joined {
  float m, l;
};

// How what was there and what comes are weighted.
struct JoinWeights {
  float before, next;
};

JoinWeights JoinChunk(float chunk_m, float chunk_l, inout Joined state) {
  const float m = max(state.m, chunk_m);
  precise float old_below = state.m - m;
  precise float new_below = chunk_m - m;
  const JoinWeights weights = JoinWeights(Exp(old_below), Exp(new_below));
  precise float old_l = state.l * weights.before;
  precise float new_l = chunk_l * weights.next;
  precise float l = Canon(old_l) + Canon(new_l);
  state = Joined(m, l);
  return weights;
}

float JoinValue(float old_value, float new_value, JoinWeights weights) {
  precise float a = old_value * weights.before;
  precise float b = new_value * weights.next;
  precise float joined = Canon(a) + Canon(b);
  return joined;
}
