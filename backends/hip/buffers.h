// Buffers: the table's entries for memory and copies.
#ifndef TRINE_BACKENDS_HIP_BUFFERS_H_
#define TRINE_BACKENDS_HIP_BUFFERS_H_

#include "trine/backend.h"

namespace trine::hip {

trine_status BufferAlloc(trine_device* device, const trine_buffer_desc* desc, trine_buffer** out,
                         trine_error* err);
// Memory of the host's is read by plans through stages, at each run (docs/hip.md).
trine_status BufferImport(trine_device* device, const trine_import_desc* desc, trine_buffer** out,
                          trine_error* err);
// What is imported begins at and has multiples of this.
inline constexpr uint32_t kImportAlignment = 64;
void BufferFree(trine_buffer* buffer);
trine_status BufferWrite(trine_buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                         trine_error* err);
trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err);
void* BufferHostPtr(trine_buffer* buffer);
trine_status BufferCopy(trine_device* device, const trine_copy_args* args, trine_error* err);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_BUFFERS_H_
