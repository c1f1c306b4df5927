// Declares the parameters of the attention shaders, and computes what they mean for one token.
// Offsets and strides are in words, or in halves for f16 and bf16 caches that are not whole words.
layout(push_constant) uniform Push {
  uint q_offset, q_head, q_token;
  uint k_offset, k_position, k_head, k_block;
  uint v_offset, v_position, v_head, v_block;
  uint table_offset, table_sequence;
  uint offsets_offset, lengths_offset, sinks_offset;
  uint y_offset, y_head, y_token;
  float scale, softcap;
  uint window, flags;
  uint width, value_width;   // the number of values of a key and of a value
  uint group, padded_group;  // heads of a kv head; the rows that are reserved for them
  uint tokens, sequences;
  uint block_positions, chunks;  // chunks: how many a row has in scratch memory
  uint first_token;              // token 0's number within the sequences
};
const uint kCausal = 1u, kSinks = 2u;
const uint kChunk = 256u;

// Returns the sequence of a token, or -1 if it has none. A sequence's tokens are its last
// positions.
int SequenceOfToken(uint token) {
  const int at = int(first_token + token);
  for (uint s = 0u; s < sequences; ++s) {
    if (at >= q_offsets[offsets_offset + s] && at < q_offsets[offsets_offset + s + 1u]) {
      return int(s);
    }
  }
  return -1;
}

// Returns the positions [x, y) that a token of a sequence sees.
ivec2 VisibleTo(uint token, int sequence) {
  const int length = kv_lengths[lengths_offset + uint(sequence)];
  const int position =
      length - q_offsets[offsets_offset + uint(sequence) + 1u] + int(first_token + token);
  ivec2 visible = ivec2(0, length);
  if ((flags & kCausal) != 0u) visible.y = min(visible.y, position + 1);
  if (window > 0u) visible.x = max(0, position - int(window) + 1);
  return visible;
}

// The maximum and the sum of the chunks joined so far.
struct Joined {
  float m, l;
};

// The weights of the chunks joined so far and of the next chunk.
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
