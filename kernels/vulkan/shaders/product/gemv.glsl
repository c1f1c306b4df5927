// The common part of products with few columns. A workgroup is divided into slots of LANES
// invocations; a slot computes ROWS rows of the result at a time, COLUMNS columns each.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 2) const uint LANES = 8;
layout(constant_id = 3) const uint ROWS = 1;
layout(constant_id = 4) const uint COLUMNS = 1;
layout(constant_id = 5) const uint BLOCKS = 1;  // blocks that a lane reads between two barriers

const uint SLOTS = WORKGROUP / LANES;
const uint RESULTS = ROWS * COLUMNS;  // results that a slot computes at a time

uint FirstRow() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return (group * SLOTS + gl_LocalInvocationID.x / LANES) * ROWS;
}

// Returns whether the whole workgroup is beyond the last row, and so has nothing to do.
bool GroupIsBeyond() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return group * SLOTS * ROWS >= n;
}

uint FirstColumn() { return gl_WorkGroupID.z * COLUMNS; }

// Finds the weights of this column. Returns false if nothing is left to do for the column.
bool FindPlace(uint row, out Place place) {
#ifdef MOE
  const uint column = FirstColumn();
  const int expert = ids[ids_offset + column / slots * ids_stride + column % slots];
  if (expert < int(first_expert) || expert >= int(end_expert)) {
    // An id that is no expert gives zeros. Another run handles an expert with weights elsewhere.
    const bool none = expert < 0 || expert >= int(experts);
    if (none && first_expert == 0) {
      const uint lane = gl_LocalInvocationID.x % LANES;
      for (uint r = lane; r < ROWS && row + r < n; r += LANES) y[ColumnOfY(column) + row + r] = 0.0;
    }
    return false;
  }
  place = PlaceOfExpert(uint(expert));
#else
  place = PlaceOfAll();
#endif
  return true;
}
