# Writes build_commit.hpp: the commit from which the program is built, and the time of that commit. Run as a script by
# each build (cli/CMakeLists.txt), with SOURCE and OUT. The time is that of SOURCE_DATE_EPOCH if it is set, and otherwise
# that of the commit, so that the same commit makes the same program on every day. Without git both are empty.
cmake_minimum_required(VERSION 3.25)

function(ask_git out)
  execute_process(COMMAND git -C ${SOURCE} ${ARGN} OUTPUT_VARIABLE answer ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed)
  if(failed)
    set(answer "")
  endif()
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()

ask_git(top rev-parse --show-toplevel)
file(REAL_PATH "${SOURCE}" source)
set(commit "")
set(time "")
if(top STREQUAL source)  # not the repository of somebody who has unpacked the source in it
  ask_git(commit rev-parse HEAD)
  ask_git(changed status --porcelain --untracked-files=no)
  if(changed)
    string(APPEND commit "-dirty")
  endif()
  ask_git(time log -1 --format=%ct)
endif()
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH} AND time)
  set(ENV{SOURCE_DATE_EPOCH} "${time}")
endif()
set(date "")
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  string(TIMESTAMP date "%Y-%m-%dT%H:%M:%SZ" UTC)  # of SOURCE_DATE_EPOCH
endif()
# Writes only what has changed, so that nothing is compiled in vain.
file(CONFIGURE OUTPUT ${OUT} CONTENT "// Made by cmake/build_commit.cmake.
#pragma once
#define HAULOUT_COMMIT \"${commit}\"
#define HAULOUT_BUILD_DATE \"${date}\"
")
