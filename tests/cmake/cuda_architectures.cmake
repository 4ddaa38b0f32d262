# cmake -DSOURCE=… -P cuda_architectures.cmake: which values of OASR_CUDA_ARCHITECTURES the build takes, and what it
# says of others. With -DGIVEN=LIST it is one value's check.
include(${SOURCE}/cmake/OasrCudaArchitectures.cmake)
if(DEFINED GIVEN)
  oasr_check_cuda_architectures(${GIVEN})
  return()
endif()

# `given` is refused with a message that has all of the other arguments; without any it is taken.
function(expect given)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${SOURCE} "-DGIVEN=${given}" -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks lines
  if(NOT ARGN AND status)
    message(FATAL_ERROR "'${given}' is refused: ${output}")
  endif()
  if(ARGN AND NOT status)
    message(FATAL_ERROR "'${given}' is taken")
  endif()
  foreach(text IN LISTS ARGN)
    string(FIND "${output}" "${text}" at)
    if(at LESS 0)
      message(FATAL_ERROR "what is said of '${given}' lacks '${text}': ${output}")
    endif()
  endforeach()
endfunction()

foreach(good 80 86 90 90a "80;90a" "80;86;89;90a;100a;120a")
  expect("${good}")
endforeach()
set(example "-DOASR_CUDA_ARCHITECTURES=\"80;90a\"")
foreach(bad native all all-major sm_90 9.0 90-real 100f a "80,90a" "80 90a" -1)
  expect("${bad}" "has '${bad}'" "${example}")
endforeach()
expect("80;native" "has 'native'" "${example}")
expect("" "is empty" "${example}")
expect("75" "has 75" "kernels begin with 80")
expect("9a" "has 9a" "kernels begin with 80")
