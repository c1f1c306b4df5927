// Linked into every program of a build with ThreadSanitizer. Code that is not built with it
// synchronises unseen: drivers, layers, and the reference counts of a status in Abseil's library.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libVkLayer_khronos_validation\n"
         "race:libvulkan_lvp\n"
         "race:libvulkan.so\n"
         "race:absl::*Status::Unref\n";
}
