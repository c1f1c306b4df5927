// Says where a view is within its binding: an offset and the strides of dimensions 1 to 3, all in
// elements. The innermost dimension is contiguous.
struct Place {
  uint offset, stride1, stride2, stride3;
};

// The index of a row of a view in dimensions 1 to 3.
struct RowIndex {
  uint i1, i2, i3;
};

RowIndex IndexOfRow(uint row, uint n1, uint n2) {
  const uint outer = row / n1;
  return RowIndex(row - outer * n1, outer % n2, outer / n2);
}

uint RowAt(Place place, RowIndex row) {
  return place.offset + row.i1 * place.stride1 + row.i2 * place.stride2 + row.i3 * place.stride3;
}
