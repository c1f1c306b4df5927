// Helpers of the C API's files: convert statuses and structs for the caller, and catch exceptions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugins/registry.h"
#include "runtime/base/invalid.h"
#include "runtime/c_api/handles.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/generate.h"
#include "runtime/tokenizer/utf8.h"
#include "trine/trine.h"

namespace trine::c_api {

// Returns whether a version of the struct can have the size that the caller has set. A size that
// cuts a member is not plausible.
template <class T>
bool PlausibleSize(const T& given) {
  return given.struct_size >= sizeof(uint32_t) && given.struct_size % alignof(T) == 0;
}

// Copies a struct to the caller. Writes nothing beyond the caller's struct_size.
template <class T>
void WriteStruct(T value, T* out) {
  if (out == nullptr || out->struct_size < sizeof(uint32_t)) return;
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min<size_t>(out->struct_size, sizeof(T)));
}

template <size_t N>
void CopyText(const std::string& text, char (&out)[N]) {
  std::snprintf(out, N, "%s", text.c_str());
}

// Writes the status to *why, unless `why` is null, and returns its number.
inline int32_t Report(const absl::Status& status, trine_failure* why) {
  trine_failure failure{};
  failure.status = static_cast<int32_t>(status.code());
  CopyText(Printable(std::string(status.message())), failure.message);
  WriteStruct(failure, why);
  return failure.status;
}

// Does what Report does, without allocating: memory may have run out.
inline int32_t ReportPlainly(absl::StatusCode code, const char* message, trine_failure* why) {
  trine_failure failure{};
  failure.status = static_cast<int32_t>(code);
  std::snprintf(failure.message, sizeof(failure.message), "%s", message);
  WriteStruct(failure, why);
  return failure.status;
}

inline absl::Status BadStruct(const char* name) {
  return absl::InvalidArgumentError(std::string(name) +
                                    ": struct_size is not set, or is not a valid size");
}
// Copies the caller's struct into one of this library's size. Members that the caller does not know
// keep their values in `out`. Members that this library does not know must be 0, because it can't
// honour them.
template <class T>
absl::Status ReadStruct(const char* name, const T* given, T* out) {
  if (given == nullptr) return absl::OkStatus();
  if (!PlausibleSize(*given)) return BadStruct(name);
  std::memcpy(out, given, std::min<size_t>(given->struct_size, sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  const auto is_set = [](unsigned char byte) { return byte != 0; };
  if (given->struct_size > sizeof(T) &&
      std::any_of(bytes + sizeof(T), bytes + given->struct_size, is_set)) {
    return absl::InvalidArgumentError(std::string(name) +
                                      " has members set that this version does not know");
  }
  if constexpr (requires { out->reserved; }) {
    if (out->reserved != 0) {
      return absl::InvalidArgumentError(std::string(name) + ": reserved must be 0");
    }
  }
  return absl::OkStatus();
}

inline std::string TextOr(const char* text, const char* fallback) {
  return text != nullptr && *text != '\0' ? text : fallback;
}

// Reads one of a few words and sets its value.
template <class Value>
absl::Status ReadWord(const char* member, const char* text,
                      std::initializer_list<std::pair<const char*, Value>> words, Value* value) {
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (std::strcmp(text, word) == 0) {
      *value = meaning;
      return absl::OkStatus();
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", word);
  }
  return Invalid(member, " is '", text, "': it is one of ", known);
}

// Reads the members about plugins, which options of engines and of trine_detect have.
template <class Options>
absl::Status ReadPluginMembers(const Options& given, RegistryOptions* registry) {
  for (absl::string_view path : absl::StrSplit(TextOr(given.plugins, ""), ':', absl::SkipEmpty())) {
    registry->search.explicit_paths.emplace_back(path);
  }
  auto options = ParsePluginOptions(TextOr(given.plugin_options, ""));
  if (!options.ok()) return options.status();
  registry->plugin_options = *std::move(options);
  return ReadWord(
      "numerics", given.numerics,
      {{"exact", uint32_t{TRINE_NUMERICS_EXACT}}, {"fast", uint32_t{TRINE_NUMERICS_FAST}}},
      &registry->numerics);
}

inline absl::Status NullArgument(const char* name) {
  return absl::InvalidArgumentError(std::string(name) + " is NULL");
}

inline constexpr uint32_t kTokenizeFlags = TRINE_TOKENIZE_NO_SPECIAL | TRINE_TOKENIZE_PARSE_SPECIAL;
inline EncodeOptions EncodingOf(uint32_t flags) {
  return {.add_special = (flags & TRINE_TOKENIZE_NO_SPECIAL) == 0,
          .parse_special = (flags & TRINE_TOKENIZE_PARSE_SPECIAL) != 0};
}

// Refuses flags with undefined bits: a caller that sets such a bit expects an effect.
inline absl::Status CheckFlags(uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("flags has bits this version does not know");
}

// Runs the body of a call, which returns absl::Status, and reports the status. Turns an exception
// into a status, because none may reach the caller.
template <class Body>
int32_t Guarded(trine_failure* why, Body body) {
  try {
    return Report(body(), why);
  } catch (const std::bad_alloc&) {
    return ReportPlainly(absl::StatusCode::kResourceExhausted, "out of memory", why);
  } catch (const std::exception& e) {
    return ReportPlainly(absl::StatusCode::kInternal, e.what(), why);
  } catch (...) {
    return ReportPlainly(absl::StatusCode::kInternal, "something unknown was thrown", why);
  }
}

// Does what Guarded does, with the engine of a handle. Reports why the handle can't be used.
template <class Body>
int32_t OnEngine(const trine_engine* handle, trine_failure* why, Body body) {
  return Guarded(why, [&]() -> absl::Status {
    const auto object = Find(handle);
    return object.ok() ? body(*(*object)->engine) : object.status();
  });
}

// Does what Guarded does, with the session of a handle, which no other call can use meanwhile.
template <class Body>
int32_t OnSession(const trine_session* handle, trine_failure* why, Body body) {
  return Guarded(why, [&]() -> absl::Status {
    const auto entered = EnteredSession::Enter(handle);
    return entered.ok() ? body(entered->session()) : entered.status();
  });
}

// Copies `n` items into the caller's array, as many as fit, and sets `count` to n. Returns
// OUT_OF_RANGE if not all fit.
template <class T>
absl::Status CopyOut(const T* items, size_t n, T* out, size_t capacity, size_t* count) {
  if (count == nullptr) return NullArgument("count");
  *count = n;
  if (out == nullptr && capacity != 0) return NullArgument("the array");
  if (capacity != 0) std::copy_n(items, std::min(n, capacity), out);
  if (n <= capacity) return absl::OkStatus();
  return absl::OutOfRangeError("there are " + std::to_string(n) + " entries, the array holds " +
                               std::to_string(capacity));
}

}  // namespace trine::c_api
