// The frame of a product with few columns. A workgroup is cut into slots of LANES invocations; a
// slot makes ROWS rows of the result at a time, COLUMNS columns each.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 32;
layout(constant_id = 2) const uint LANES = 8;
layout(constant_id = 3) const uint ROWS = 1;
layout(constant_id = 4) const uint COLUMNS = 1;
layout(constant_id = 5) const uint BLOCKS = 1;  // blocks of a lane between two barriers

const uint SLOTS = WORKGROUP / LANES;
const uint RESULTS = ROWS * COLUMNS;  // of a slot

uint FirstRow() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return (group * SLOTS + gl_LocalInvocationID.x / LANES) * ROWS;
}

// The first row of the whole workgroup: beyond the last one there is nothing to do, and no barrier
// to come to.
bool GroupIsBeyond() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return group * SLOTS * ROWS >= n;
}

uint FirstColumn() { return gl_WorkGroupID.z * COLUMNS; }

// False: there is nothing (more) to do for this column, all is written.
bool FindPlace(uint row, out Place place) {
#ifdef MOE
  const uint column = FirstColumn();
  const int expert = ids[ids_offset + column / slots * ids_stride + column % slots];
  if (expert < int(first_expert) || expert >= int(end_expert)) {
    // An id that is no expert gives zeros; one whose weights are elsewhere is not ours.
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
