# oasr_check_cuda(VALUE): whether OASR_CUDA may have it. CMake's other words for true and false are refused.
function(oasr_check_cuda value)
  if(NOT value MATCHES "^(ON|OFF|AUTO)$")
    message(FATAL_ERROR "OASR_CUDA is '${value}'. Write -DOASR_CUDA=ON, OFF or AUTO (docs/building.md)")
  endif()
endfunction()

# oasr_check_cuda_architectures(NAME…): whether they are what OASR_CUDA_ARCHITECTURES may name. src/device/cuda/cards.cc
# reads the same list, so no other of CMake's spellings is taken (native, all, 90-real, 100f).
function(oasr_check_cuda_architectures)
  set(accepted "Write compute capabilities without their point, 80 or higher, several with semicolons: \
-DOASR_CUDA_ARCHITECTURES=\"80;90a\" has kernels for cards of 8.0 to 8.9, and for 9.0 (H100, H200) those that only it can run. \
nvidia-smi --query-gpu=compute_cap --format=csv shows that of a card")
  if(NOT ARGN)
    message(FATAL_ERROR "OASR_CUDA_ARCHITECTURES is empty. ${accepted}")
  endif()
  foreach(architecture IN LISTS ARGN)
    if(NOT architecture MATCHES "^([0-9]+)a?$")
      message(FATAL_ERROR "OASR_CUDA_ARCHITECTURES has '${architecture}', which is no number with or without an a. ${accepted}")
    endif()
    if(CMAKE_MATCH_1 LESS 80)
      message(FATAL_ERROR "OASR_CUDA_ARCHITECTURES has ${architecture}, and kernels begin with 80 (src/device/kernel_gaps.h). ${accepted}")
    endif()
  endforeach()
endfunction()
