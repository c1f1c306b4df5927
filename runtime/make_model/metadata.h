// What a model's file says of it, but its vocabulary.
#ifndef TRINE_RUNTIME_MAKE_MODEL_METADATA_H_
#define TRINE_RUNTIME_MAKE_MODEL_METADATA_H_

#include "runtime/gguf/builder.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

// The keys that converters write for the architecture.
void SetMetadata(const ModelShape& shape, gguf::Builder* builder);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_METADATA_H_
