# The shaders of the matrix products. Types, rows and columns are specialisation constants; a
# variant that needs another capability or other bindings is a separate shader.
trine_shader(trine_vulkan_shaders quantize_activations SOURCE shaders/product/quantize_activations.comp)
trine_shader(trine_vulkan_shaders glu_quantize SOURCE shaders/product/quantize_activations.comp DEFINES GLU)
trine_shader(trine_vulkan_shaders moe_lists SOURCE shaders/moe_lists.comp)
foreach(form gemv gemm)
  foreach(moe "" MOE)
    set(name "${form}")
    if(moe)
      set(name "moe_${form}")
    endif()
    trine_shader(trine_vulkan_shaders ${name}_float SOURCE shaders/product/${form}_float.comp DEFINES ${moe})
    trine_shader(trine_vulkan_shaders ${name}_quantized SOURCE shaders/product/${form}_quantized.comp
                 DEFINES ${moe})
    trine_shader(trine_vulkan_shaders ${name}_quantized_dot SOURCE shaders/product/${form}_quantized.comp
                 DEFINES ${moe} INT_DOT)
  endforeach()
endforeach()
