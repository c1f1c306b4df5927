// What all matrix products share: their parameters, where a column's operands lie, how a result
// ends. MOE: every column has weights of its own, chosen by an id.
//
// Offsets and strides count what the operand is read in: weights 16-byte words where they are
// packed, else bytes; quantised activations 16-byte words; all else floats or ints.
layout(push_constant) uniform Push {
  uint k, n, columns;  // values in a row of weights, rows, columns of the result
  uint weight_offset, weight_stride;
  uint x_offset, x_stride;  // MOE: x_stride is from token to token
  uint bias_offset, has_bias;
  uint y_offset, y_stride;  // likewise
#ifdef MOE
  uint slots;  // columns of a token: column = token * slots + slot
  uint x_slot_stride, y_slot_stride;
  uint ids_offset, ids_stride;  // LISTS: the offset is theirs
  uint experts, first_expert, end_expert;  // these have their weights in the binding
  uint expert_stride, bias_stride;
#endif
};

#ifdef MOE
#ifdef LISTS
layout(set = 0, binding = 2) restrict readonly buffer Lists { uint lists[]; };  // of moe_lists.comp
#else
layout(set = 0, binding = 2) restrict readonly buffer Ids { int ids[]; };
#endif
layout(set = 0, binding = 3) restrict readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4) restrict writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 2) restrict readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) restrict writeonly buffer Y { float y[]; };
#endif

// Where the rows begin that a column is multiplied with, and its own parts of x, bias and y.
struct Place {
  uint weights, bias;
};

uint ColumnOfX(uint column) {
#ifdef MOE
  return x_offset + column / slots * x_stride + column % slots * x_slot_stride;
#else
  return x_offset + column * x_stride;
#endif
}

uint ColumnOfY(uint column) {
#ifdef MOE
  return y_offset + column / slots * y_stride + column % slots * y_slot_stride;
#else
  return y_offset + column * y_stride;
#endif
}

#ifdef MOE
Place PlaceOfExpert(uint expert) {
  return Place(weight_offset + (expert - first_expert) * expert_stride,
               bias_offset + expert * bias_stride);
}
#else
Place PlaceOfAll() { return Place(weight_offset, bias_offset); }
#endif

float Finish(float dot, uint bias_at) {
  const float result = Canon(dot);
  if (has_bias == 0) return result;
  precise float sum = result + bias[bias_at];
  return Canon(sum);
}
