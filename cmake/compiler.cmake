# Refuses GCC 12. It destroys temporaries of a co_await statement twice and lays out some coroutine frames wrongly. The
# program would build without a warning and fail at run time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR
    "Haulout cannot be built with GCC ${CMAKE_CXX_COMPILER_VERSION}: it miscompiles ordinary C++20 coroutines "
    "(double destruction of temporaries, wrong frame layout; GCC PR 106188 and others), without any warning. "
    "Use clang 16 or newer (Debian 12: apt-get install clang-19, then cmake -DCMAKE_CXX_COMPILER=clang++-19) "
    "or GCC 13 or newer. `./dev build` does that for you.")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR
    "Haulout needs clang 16 or newer (found ${CMAKE_CXX_COMPILER_VERSION}); on Debian 12: apt-get install clang-19, "
    "then cmake -DCMAKE_CXX_COMPILER=clang++-19.")
endif()
