// In every program of a build with ThreadSanitizer. What is not built with it itself synchronises
// unseen: drivers, layers, and the counts of references that Abseil's library keeps of a status.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libVkLayer_khronos_validation\n"
         "race:libvulkan_lvp\n"
         "race:libvulkan.so\n"
         "race:absl::*Status::Unref\n";
}
