# Writes commit.h, with the commit that is built: cmake -DSOURCE=… -DOUTPUT=… [-DCOMMIT=…] -P write_commit.cmake
# COMMIT is for a copy of the sources without its repository.
if(NOT COMMIT)
  execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE COMMIT ERROR_QUIET RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(COMMIT "")
  else()
    execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND COMMIT " with changes")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[// The commit that was built; empty where it is not known.
#pragma once

namespace oasr::cli {

inline constexpr const char* kCommit = "@COMMIT@";

}  // namespace oasr::cli
]] @ONLY)
