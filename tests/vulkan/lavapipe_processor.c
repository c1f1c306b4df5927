// Preloaded where tests use lavapipe on a virtual machine whose processor has SVE by its name but
// not by what the system lets it do. LLVM 15, which lavapipe compiles shaders with, goes by the
// name in /proc/cpuinfo, and its code dies of an illegal instruction. This shows such a processor
// under the name of one that has all but SVE: Neoverse N1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static const char kFile[] = "/proc/cpuinfo";

typedef int (*OpenFn)(const char*, int, ...);
typedef FILE* (*FopenFn)(const char*, const char*);

// Looks a function up behind this one. A function's pointer is no object's: hence the copy.
static OpenFn NextOpen(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  OpenFn next;
  memcpy(&next, &found, sizeof(next));
  return next;
}

// A descriptor of the file with another name in it, or -1.
static int OpenRenamed(void) {
  void* found = dlsym(RTLD_NEXT, "fopen");
  FopenFn next;
  memcpy(&next, &found, sizeof(next));
  FILE* in = next(kFile, "r");
  if (in == NULL) return -1;
  const int renamed = memfd_create("cpuinfo", MFD_CLOEXEC);
  char line[4096];
  int good = renamed >= 0;
  while (good && fgets(line, sizeof(line), in) != NULL) {
    char* part = strncmp(line, "CPU part", 8) == 0 ? strstr(line, "0xd") : NULL;
    if (part != NULL) memcpy(part, "0xd0c", 5);
    good = write(renamed, line, strlen(line)) == (ssize_t)strlen(line);
  }
  fclose(in);
  good = good && lseek(renamed, 0, SEEK_SET) == 0;
  if (!good && renamed >= 0) close(renamed);
  return good ? renamed : -1;
}

static int Open(const char* name, const char* path, int flags, mode_t mode) {
  const int renamed = strcmp(path, kFile) == 0 ? OpenRenamed() : -1;
  return renamed >= 0 ? renamed : NextOpen(name)(path, flags, mode);
}

EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);  // whatever it is where there is none
  va_end(rest);
  return Open("open", path, flags, mode);
}

EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return Open("open64", path, flags, mode);
}
