// What the build asks of a compiled shader: which buffers it reads and writes, and whether its
// arithmetic is the contract's (docs/numerics.md). A small reader of SPIR-V, used by
// trine-embed-shader and its tests; nothing of it is in the plugin.
#ifndef TRINE_KERNELS_VULKAN_SPIRV_MODULE_H_
#define TRINE_KERNELS_VULKAN_SPIRV_MODULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/vulkan/shader.h"

namespace trine::vulkan {

struct SpirvInterface {
  uint32_t binding_count = 0;
  uint32_t reads = 0;   // bit b: binding b is not writeonly
  uint32_t writes = 0;  // bit b: binding b is not readonly
  uint32_t push_bytes = 0;
  std::vector<uint32_t> capabilities;
};

class SpirvModule {
 public:
  // Takes apart what spirv-val has accepted; "" or what is wrong in `error`.
  explicit SpirvModule(std::vector<uint32_t> words);

  const std::string& error() const { return error_; }
  const std::vector<uint32_t>& words() const { return words_; }
  const SpirvInterface& interface() const { return interface_; }

  // One sentence for each instruction that could give other bits on another device: an add, sub or
  // mul of floats without NoContraction or not of 32 bits, any float arithmetic beyond those, float
  // reductions across invocations, conversions to and from half floats; and a shader with float
  // arithmetic that does not ask for rounding to nearest even. Empty: the shader is exact.
  std::vector<std::string> InexactUses() const;

 private:
  struct Instruction {
    uint32_t opcode;
    std::vector<uint32_t> operands;
  };

  void Split();
  void ReadInterface();
  void ReadBuffer(uint32_t variable, uint32_t block);
  bool Decorated(uint32_t id, uint32_t decoration, uint32_t* value = nullptr) const;
  bool AllMembersDecorated(uint32_t type, uint32_t decoration) const;
  const Instruction* Definition(uint32_t id) const;  // of a type or constant
  uint32_t Pointee(uint32_t pointer_type) const;
  uint32_t SizeOf(uint32_t type);
  uint32_t SizeOfStruct(uint32_t type);
  bool IsFloat(uint32_t type, uint32_t bits) const;  // scalar or vector
  std::string InexactUse(const Instruction& instruction) const;
  void Fail(const std::string& what);

  std::vector<uint32_t> words_;
  std::vector<Instruction> instructions_;
  SpirvInterface interface_;
  std::string error_;
};

// FNV-1a over the words.
uint64_t HashWords(const std::vector<uint32_t>& words);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_SPIRV_MODULE_H_
