// The common part of all matrix products: their parameters, where the operands of a column are, and
// how a result is written. With MOE, every column has its own weights, chosen by an id.
//
// Offsets and strides count the units that an operand is read in: 16-byte words for packed weights
// and for quantised activations, bytes for other weights, floats or ints for all others.
layout(push_constant) uniform Push {
  uint k, n, columns;  // values in a row of weights, rows, columns of the result
  uint weight_offset, weight_stride;
  uint x_offset, x_stride;  // MOE: x_stride is from token to token
  uint bias_offset, has_bias;
  uint y_offset, y_stride;  // MOE: y_stride is from token to token
#ifdef MOE
  uint slots;  // columns of a token: column = token * slots + slot
  uint x_slot_stride, y_slot_stride;
  uint ids_offset, ids_stride;             // LISTS: ids_offset is the offset of the lists
  uint experts, first_expert, end_expert;  // experts [first, end) have their weights in the binding
  uint expert_stride, bias_stride;
#endif
};

#ifdef MOE
#ifdef LISTS
// written by moe_lists.comp
layout(set = 0, binding = 2) restrict readonly buffer Lists { uint lists[]; };
#else
layout(set = 0, binding = 2) restrict readonly buffer Ids { int ids[]; };
#endif
layout(set = 0, binding = 3) restrict readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4) restrict writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 2) restrict readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) restrict writeonly buffer Y { float y[]; };
#endif

// Where the weights and the bias begin that a column is multiplied with.
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
