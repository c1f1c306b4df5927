// Gives memory of ended requests back to the system. A large body is read into many small pieces,
// in the heaps of several threads, and the C library keeps them once they are freed: a server that
// had needed a gigabyte for a second would have it for ever. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

namespace trine::server {

class HeapTrimmer {
 public:
  using Clock = std::chrono::steady_clock;

  // Changes how the program's heaps grow and shrink: a thread's heap gives the free end of its
  // memory back by itself. malloc_trim does so for the main heap only, and by default the C library
  // keeps up to 64 MiB at the end of each.
  HeapTrimmer();

  // Tells that a request with `bytes` bytes of body has come.
  void OnBody(size_t bytes) { bytes_ += bytes; }

  // Gives free memory back if large bodies have come since the last time, and if the server is idle
  // or a few seconds have passed. Returns whether it did. To be called again and again, by one
  // thread.
  bool Tick(bool is_idle, Clock::time_point now);

 private:
  std::atomic<size_t> bytes_ = 0;  // of bodies since the last trim
  bool was_busy_ = false;          // at the last trim: bodies may have been in use still
  Clock::time_point last_{};
};

}  // namespace trine::server
