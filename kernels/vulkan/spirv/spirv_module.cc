#include "kernels/vulkan/spirv/spirv_module.h"

#include <algorithm>
#include <utility>

namespace trine::vulkan {
namespace {

constexpr uint32_t kMagic = 0x07230203;

// Numbers of the SPIR-V specification.
enum Op : uint32_t {
  kExtInst = 12,
  kExecutionMode = 16,
  kCapability = 17,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeArray = 28,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kVariable = 59,
  kDecorate = 71,
  kMemberDecorate = 72,
  kFConvert = 115,
  kQuantizeToF16 = 116,
  kFAdd = 129,
  kFSub = 131,
  kFMul = 133,
  kFDiv = 136,
  kFRem = 140,
  kFMod = 141,
  kVectorTimesScalar = 142,
  kDot = 148,
  kGroupFAdd = 265,
  kGroupNonUniformFAdd = 350,
  kGroupNonUniformFMul = 352,
  kAtomicFAdd = 6035,
};
enum StorageClass : uint32_t { kUniform = 2, kPushConstant = 9, kStorageBuffer = 12 };
enum Decoration : uint32_t {
  kArrayStride = 6,
  kNonWritable = 24,
  kNonReadable = 25,
  kBinding = 33,
  kDescriptorSet = 34,
  kOffset = 35,
  kNoContraction = 42,
};
constexpr uint32_t kRoundingModeRte = 4462;

// Returns whether the GLSL.std.450 instruction works on integers or only chooses one of its floats.
bool ExactExtInst(uint32_t instruction) {
  constexpr uint32_t kExact[] = {4, 5, 7, 37, 38, 39, 40, 41, 42, 44, 45, 73, 74, 75, 79, 80};
  return std::find(std::begin(kExact), std::end(kExact), instruction) != std::end(kExact);
}

std::string ForbiddenName(uint32_t opcode) {
  constexpr std::pair<uint32_t, const char*> kNames[] = {
      {kFConvert, "OpFConvert"},
      {kQuantizeToF16, "OpQuantizeToF16"},
      {kFDiv, "OpFDiv"},
      {kFRem, "OpFRem"},
      {kFMod, "OpFMod"},
      {kGroupFAdd, "OpGroupFAdd"},
      {kGroupNonUniformFAdd, "OpGroupNonUniformFAdd"},
      {kGroupNonUniformFMul, "OpGroupNonUniformFMul"},
      {kAtomicFAdd, "OpAtomicFAddEXT"}};
  for (const auto& [forbidden, name] : kNames) {
    if (opcode == forbidden) return name;
  }
  if (opcode >= kVectorTimesScalar && opcode <= kDot) return "a product of vectors or matrices";
  return "";
}

}  // namespace

SpirvModule::SpirvModule(std::vector<uint32_t> words) : words_(std::move(words)) {
  Split();
  if (error_.empty()) ReadInterface();
}

void SpirvModule::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

void SpirvModule::Split() {
  if (words_.size() < 5 || words_[0] != kMagic) return Fail("not a SPIR-V module");
  for (size_t at = 5; at < words_.size();) {
    const uint32_t count = words_[at] >> 16;
    if (count == 0 || at + count > words_.size()) return Fail("an instruction is cut short");
    instructions_.push_back(
        {words_[at] & 0xffff,
         std::vector<uint32_t>(words_.begin() + at + 1, words_.begin() + at + count)});
    at += count;
  }
}

const SpirvModule::Instruction* SpirvModule::Definition(uint32_t id) const {
  for (const Instruction& i : instructions_) {
    if (i.opcode >= kTypeInt && i.opcode <= kTypePointer && i.operands.at(0) == id) return &i;
    if (i.opcode == kConstant && i.operands.at(1) == id) return &i;
  }
  return nullptr;
}

bool SpirvModule::Decorated(uint32_t id, uint32_t decoration, uint32_t* value) const {
  for (const Instruction& i : instructions_) {
    if (i.opcode != kDecorate || i.operands.at(0) != id || i.operands.at(1) != decoration) continue;
    if (value != nullptr) *value = i.operands.at(2);
    return true;
  }
  return false;
}

bool SpirvModule::AllMembersDecorated(uint32_t type, uint32_t decoration) const {
  const Instruction* definition = Definition(type);
  if (definition == nullptr || definition->opcode != kTypeStruct) return false;
  const size_t members = definition->operands.size() - 1;
  size_t decorated = 0;
  for (const Instruction& i : instructions_) {
    decorated +=
        i.opcode == kMemberDecorate && i.operands.at(0) == type && i.operands.at(2) == decoration;
  }
  return members != 0 && decorated == members;
}

uint32_t SpirvModule::Pointee(uint32_t pointer_type) const {
  const Instruction* pointer = Definition(pointer_type);
  return pointer != nullptr && pointer->opcode == kTypePointer ? pointer->operands.at(2) : 0;
}

uint32_t SpirvModule::SizeOfStruct(uint32_t type) {
  uint32_t bytes = 0;
  const Instruction* definition = Definition(type);
  for (const Instruction& i : instructions_) {
    if (i.opcode != kMemberDecorate || i.operands.at(0) != type || i.operands.at(2) != kOffset) {
      continue;
    }
    bytes = std::max(bytes, i.operands.at(3) + SizeOf(definition->operands.at(1 + i.operands[1])));
  }
  return bytes;
}

uint32_t SpirvModule::SizeOf(uint32_t type) {
  const Instruction* definition = Definition(type);
  if (definition != nullptr) {
    const std::vector<uint32_t>& operands = definition->operands;
    switch (definition->opcode) {
      case kTypeInt:
      case kTypeFloat:
        return operands.at(1) / 8;
      case kTypeVector:
        return SizeOf(operands.at(1)) * operands.at(2);
      case kTypeStruct:
        return SizeOfStruct(type);
      case kTypeArray: {
        uint32_t stride = 0;
        const Instruction* length = Definition(operands.at(2));
        if (length != nullptr && length->opcode == kConstant &&
            Decorated(type, kArrayStride, &stride)) {
          return stride * length->operands.at(2);
        }
        break;
      }
      default:
        break;
    }
  }
  Fail("the push constants hold a type whose size is not known here");
  return 0;
}

void SpirvModule::ReadBuffer(uint32_t variable, uint32_t block) {
  uint32_t set = 0, binding = 0;
  if (!Decorated(variable, kDescriptorSet, &set) || !Decorated(variable, kBinding, &binding) ||
      set != 0 || binding >= kMaxShaderBindings) {
    return Fail("a buffer is not in set 0, bindings 0 to " +
                std::to_string(kMaxShaderBindings - 1));
  }
  if (!Decorated(variable, kNonReadable) && !AllMembersDecorated(block, kNonReadable)) {
    interface_.reads |= 1u << binding;
  }
  if (!Decorated(variable, kNonWritable) && !AllMembersDecorated(block, kNonWritable)) {
    interface_.writes |= 1u << binding;
  }
  interface_.binding_count = std::max(interface_.binding_count, binding + 1);
}

void SpirvModule::ReadInterface() {
  for (const Instruction& i : instructions_) {
    if (i.opcode == kCapability) interface_.capabilities.push_back(i.operands.at(0));
    if (i.opcode != kVariable) continue;
    const uint32_t storage_class = i.operands.at(2), block = Pointee(i.operands.at(0));
    if (storage_class == kStorageBuffer) ReadBuffer(i.operands.at(1), block);
    if (storage_class == kUniform) Fail("a uniform buffer: use a storage buffer or push constants");
    if (storage_class == kPushConstant) interface_.push_bytes = SizeOf(block);
  }
  if (interface_.push_bytes > kMaxPushBytes) {
    Fail("its push constants take " + std::to_string(interface_.push_bytes) + " bytes; " +
         std::to_string(kMaxPushBytes) + " are there on every device");
  }
  const uint32_t all = (uint32_t{1} << interface_.binding_count) - 1;
  if ((interface_.reads | interface_.writes) != all) Fail("its bindings have a gap");
}

bool SpirvModule::IsFloat(uint32_t type, uint32_t bits) const {
  const Instruction* definition = Definition(type);
  if (definition != nullptr && definition->opcode == kTypeVector) {
    definition = Definition(definition->operands.at(1));
  }
  return definition != nullptr && definition->opcode == kTypeFloat &&
         definition->operands.at(1) == bits;
}

std::string SpirvModule::InexactUse(const Instruction& instruction) const {
  const uint32_t opcode = instruction.opcode;
  if (opcode == kFAdd || opcode == kFSub || opcode == kFMul) {
    const char* name = opcode == kFAdd ? "OpFAdd" : opcode == kFSub ? "OpFSub" : "OpFMul";
    const std::string what = name + (" %" + std::to_string(instruction.operands.at(1)));
    if (!IsFloat(instruction.operands.at(0), 32)) return what + " is not of 32 bits";
    if (!Decorated(instruction.operands.at(1), kNoContraction)) {
      return what + " has no NoContraction: a driver may fuse it (declare its result precise)";
    }
    return "";
  }
  if (opcode == kExtInst && !ExactExtInst(instruction.operands.at(3))) {
    return "GLSL.std.450 instruction " + std::to_string(instruction.operands.at(3)) +
           " is rounded as the driver likes";
  }
  const std::string forbidden = ForbiddenName(opcode);
  return forbidden.empty() ? "" : forbidden + " differs between devices";
}

std::vector<std::string> SpirvModule::InexactUses() const {
  std::vector<std::string> uses;
  bool arithmetic = false, nearest_even = false;
  for (const Instruction& i : instructions_) {
    arithmetic |= i.opcode == kFAdd || i.opcode == kFSub || i.opcode == kFMul;
    nearest_even |= i.opcode == kExecutionMode && i.operands.at(1) == kRoundingModeRte &&
                    i.operands.at(2) == 32;
    std::string use = InexactUse(i);
    if (!use.empty()) uses.push_back(std::move(use));
  }
  if (arithmetic && !nearest_even) {
    uses.push_back("it does not ask for rounding to nearest even (include exact.glsl)");
  }
  return uses;
}

uint64_t HashWords(const std::vector<uint32_t>& words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((word >> shift) & 0xff)) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace trine::vulkan
