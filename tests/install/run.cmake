# cmake -DBUILD=… -DSOURCE=… -DWORK=… -P run.cmake: installs the build to a fresh prefix, then
# builds and runs the consumer project against it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "failed (${status}): ${ARGN}")
  endif()
endfunction()

# What a program of the prefix prints has to match `expected`.
function(expect_output expected program)
  execute_process(COMMAND ${WORK}/prefix/bin/${program} ${ARGN} OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(status OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${program} ${ARGN} ends with ${status} and prints:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
expect_output("^oasr [0-9]" oasr version)
expect_output("Usage: oasr convert " oasr-convert --help)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer_cpp)
run(${WORK}/build/consumer_c)
file(REMOVE_RECURSE ${WORK})
