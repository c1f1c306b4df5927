// The common part of products with many columns. A workgroup computes a tile of the result. Its
// invocations are divided among the classes of the contract's sums. An invocation adds up one
// partial sum of each of its results; at the end the partial sums are joined through shared memory.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 2) const uint ROWS = 4;     // rows that an invocation computes
layout(constant_id = 3) const uint COLUMNS = 8;  // columns that an invocation computes
const uint RESULTS = ROWS * COLUMNS;

// The columns of a tile: `count` columns, beginning with `first`, all with the same weights.
struct Columns {
  uint first, count;
  Place place;
  bool zeros;  // no expert: the results are zeros
};

// Finds the columns of a tile. Returns false if there is no such tile, or its expert has no weights
// in the binding.
bool FindColumns(uint tile, uint tile_columns, out Columns found) {
#ifdef MOE
  // moe_lists.comp writes: the number of tiles, the tiles (expert, first, count), the columns.
  if (tile >= lists[ids_offset]) return false;
  const uint at = ids_offset + 4 + 4 * tile;
  const uint expert = lists[at];
  found = Columns(lists[at + 1], lists[at + 2], Place(0, 0), expert >= experts);
  if (found.zeros) return first_expert == 0;
  if (expert < first_expert || expert >= end_expert) return false;
  found.place = PlaceOfExpert(expert);
  return true;
#else
  found = Columns(tile * tile_columns, 0, PlaceOfAll(), false);
  if (found.first >= columns) return false;
  found.count = min(tile_columns, columns - found.first);
  return true;
#endif
}

// Returns column i of a tile as a column of x and y.
uint ColumnOf(Columns tile, uint i) {
#ifdef MOE
  return lists[tile.first + i];
#else
  return tile.first + i;
#endif
}
