# The shaders of the matrix products. Types, rows and columns are specialisation constants; what
# needs another capability or other bindings is a shader of its own.
trine_shader(trine_vulkan_shaders quantize_activations SOURCE quantize_activations.comp)
trine_shader(trine_vulkan_shaders glu_quantize SOURCE quantize_activations.comp DEFINES GLU)
trine_shader(trine_vulkan_shaders moe_lists SOURCE moe_lists.comp)
foreach(form gemv gemm)
  foreach(moe "" MOE)
    set(name "${form}")
    if(moe)
      set(name "moe_${form}")
    endif()
    trine_shader(trine_vulkan_shaders ${name}_float SOURCE ${form}_float.comp DEFINES ${moe})
    trine_shader(trine_vulkan_shaders ${name}_quantized SOURCE ${form}_quantized.comp
                 DEFINES ${moe})
    trine_shader(trine_vulkan_shaders ${name}_quantized_dot SOURCE ${form}_quantized.comp
                 DEFINES ${moe} INT_DOT)
  endforeach()
endforeach()
