/* libtrine's C API. C11 and C++; opaque handles, structs versioned by struct_size, no abort, no
 * exception, nothing printed. Statuses are numbers of absl::StatusCode, 0 being success. Calls may
 * come from any thread. */
#ifndef TRINE_TRINE_H_
#define TRINE_TRINE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TRINE_API __declspec(dllimport)
#else
#define TRINE_API __attribute__((visibility("default")))
#endif

/* "0.1.0" */
TRINE_API const char* trine_version(void);
/* Of the plugin ABI this library speaks: major << 16 | minor. */
TRINE_API uint32_t trine_backend_abi_version(void);
/* Of the arithmetic contract: results are equal, bit for bit, within one version. */
TRINE_API uint32_t trine_numerics_version(void);

typedef struct trine_detect_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Plugin files or folders to look at first, colon-separated, or NULL. */
  const char* plugins;
  /* A folder with proc/ and sys/ of the machine to describe, or NULL for this one. With it no
   * plugin is looked for. */
  const char* root;
} trine_detect_options;

/* Describes the machine, its tiers, devices, memory pools and plugins as JSON (docs/detect.md),
 * which trine_string_free takes back. Plugins are probed in a child process. Options may be NULL.
 * Detection itself never fails; only a bad argument (3) or want of memory (8) does. */
TRINE_API int32_t trine_detect(const trine_detect_options* options, char** json);

TRINE_API void trine_string_free(char* text);

#ifdef __cplusplus
}
#endif
#endif /* TRINE_TRINE_H_ */
