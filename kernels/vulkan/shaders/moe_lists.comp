// For a moe_matmul with many columns: lists the columns of each expert as tiles of at most TILE
// columns. Runs as one workgroup. Writes at lists_offset: the number of tiles and three words of
// padding; for each tile (expert, where its columns are listed, how many, padding); then the
// columns by expert. Ids that are no expert are treated as one more expert, after the others. The
// columns of an expert are in no particular order, and no result depends on the order.
#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 256;
layout(constant_id = 1) const uint EXPERTS = 8;
layout(constant_id = 2) const uint TILE = 32;
layout(set = 0, binding = 0) restrict readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 1) restrict writeonly buffer Lists { uint lists[]; };
layout(push_constant) uniform Push {
  uint slots, tokens;
  uint ids_offset, ids_stride;
  uint lists_offset, max_tiles;
};

shared uint counts[EXPERTS + 1];
shared uint next[EXPERTS + 1];  // where the next column of an expert goes

uint ExpertOf(uint column) {
  const int id = ids[ids_offset + column / slots * ids_stride + column % slots];
  return id < 0 || id >= int(EXPERTS) ? EXPERTS : uint(id);
}

void main() {
  const uint self = gl_LocalInvocationID.x, columns = slots * tokens;
  const uint columns_at = lists_offset + 4 + 4 * max_tiles;
  for (uint e = self; e <= EXPERTS; e += WORKGROUP) counts[e] = 0;
  barrier();
  for (uint c = self; c < columns; c += WORKGROUP) atomicAdd(counts[ExpertOf(c)], 1);
  barrier();
  for (uint e = self; e <= EXPERTS; e += WORKGROUP) {
    uint first = 0, tile = 0;
    for (uint i = 0; i < e; ++i) {
      first += counts[i];
      tile += (counts[i] + TILE - 1) / TILE;
    }
    next[e] = columns_at + first;
    for (uint done = 0; done < counts[e]; done += TILE) {
      const uint at = lists_offset + 4 + 4 * tile;
      lists[at] = e;
      lists[at + 1] = columns_at + first + done;
      lists[at + 2] = min(TILE, counts[e] - done);
      ++tile;
    }
    if (e == EXPERTS) lists[lists_offset] = tile;
  }
  barrier();
  for (uint c = self; c < columns; c += WORKGROUP) {
    const uint at = atomicAdd(next[ExpertOf(c)], 1);
    lists[at] = c;
  }
}
