// The form a request holds its answer to.
#ifndef TRINE_TOOLS_SERVER_OPENAI_FORMAT_FIELDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_FORMAT_FIELDS_H_

#include "tools/server/openai/field.h"
#include "tools/server/openai/generation_request.h"

namespace trine::server {

// response_format, and llama.cpp's grammar and json_schema: at most one of them.
void ReadFormat(const Field& root, GenerationRequest* request);

// One format: text, json_object or json_schema. The schema stands in `json_schema`, or, as
// /v1/responses has it, beside the type.
void ReadFormatObject(const Field& format, bool flat, ConstraintText* constraint);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_FORMAT_FIELDS_H_
