# Compiler options, libraries and the function that all targets of the build share.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HAULOUT_WERROR "Treat warnings as errors" OFF)
set(HAULOUT_SANITIZE "" CACHE STRING "Sanitizers, for example address;undefined")
option(HAULOUT_PROFILE_GENERATE "Make programs that write a profile when they end, for cmake/hot.profdata" OFF)
option(HAULOUT_STATIC "Link every library statically that has a static form and can stand it (the release binary)" OFF)

if(HAULOUT_STATIC)
  set(Boost_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(Threads REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS json log url)
find_package(OpenSSL 3 REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(sdbus-c++ CONFIG REQUIRED)  # Debian has only a shared library
# Not by find_package: the package of 2.x refuses a request for 1.2, and the other way round.
if("${sdbus-c++_VERSION}" VERSION_LESS 1.2 OR "${sdbus-c++_VERSION}" VERSION_GREATER_EQUAL 3)
  message(FATAL_ERROR "Haulout needs sdbus-c++ 1.2 (Debian 12) up to 2.x (Debian 13); found ${sdbus-c++_VERSION}.")
endif()
find_package(prometheus-cpp CONFIG REQUIRED)  # only its core is used; Debian has only a shared library
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBSYSTEMD REQUIRED IMPORTED_TARGET libsystemd)  # sdbus-c++ links it in any case

# Debian has fmt only as a shared library, and fmt::fmt-header-only would compile it into every object, for three seconds each.
if(HAULOUT_STATIC)
  add_library(house_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
  target_compile_features(house_fmt PRIVATE cxx_std_20)
  target_include_directories(house_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  add_library(house_fmt INTERFACE)
  target_link_libraries(house_fmt INTERFACE fmt::fmt)
endif()

# The CMake package of yaml-cpp names only its shared library. The static library is in the same directory.
add_library(house_yaml INTERFACE)
if(HAULOUT_STATIC)
  find_library(HAULOUT_YAML_LIBRARY NAMES libyaml-cpp.a REQUIRED)
  target_link_libraries(house_yaml INTERFACE ${HAULOUT_YAML_LIBRARY})
else()
  target_link_libraries(house_yaml INTERFACE yaml-cpp)
endif()

find_program(HAULOUT_CCACHE ccache)
if(HAULOUT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HAULOUT_CCACHE})
endif()

add_library(house_warnings INTERFACE)
target_compile_options(house_warnings INTERFACE
  -Wall -Wextra -Wpedantic     # the usual warnings
  -Wconversion -Wsign-conversion  # a silent conversion to a smaller type makes limits overflow
  -Wshadow                     # a shadowed name after a co_await is a bug that is easy to overlook
  -Wold-style-cast             # grep finds only C++ casts
  -Wnon-virtual-dtor           # ports are deleted through a pointer to their base
  -Wsuggest-override           # if a port changes, its implementations must not compile
  -Wunused-result              # a discarded Result hides a failure
  $<$<BOOL:${HAULOUT_WERROR}>:-Werror>)

# Optimises what rehearsals and drains run most by a profile of them, which ./dev profile writes. A function that has changed
# since then is compiled as without a profile. The copy of the profile has another name after each change, because ninja does
# not know that objects depend on it.
function(house_profile)
  target_compile_options(house_build INTERFACE
    "SHELL:-mllvm -static-func-full-module-prefix=false")  # names of local functions without the place of the tree
  if(HAULOUT_PROFILE_GENERATE)
    target_compile_options(house_build INTERFACE -fprofile-generate)
    target_link_options(house_build INTERFACE -fprofile-generate)
    return()
  endif()
  set(profile ${CMAKE_SOURCE_DIR}/cmake/hot.profdata)
  file(SHA256 ${profile} sum)
  string(SUBSTRING ${sum} 0 12 sum)
  set(copy ${CMAKE_BINARY_DIR}/hot-${sum}.profdata)
  configure_file(${profile} ${copy} COPYONLY)
  # The defaults for calls that the profile calls hot, and for others: 3000 and 225. With these the program was a third
  # larger.
  set(warm $<NOT:$<BOOL:$<TARGET_PROPERTY:HAULOUT_COLD>>>)
  target_compile_options(house_build INTERFACE
    $<${warm}:-fprofile-use=${copy}> "$<${warm}:SHELL:-mllvm -no-pgo-warn-mismatch>"
    "$<${warm}:SHELL:-mllvm -hot-callsite-threshold=600>" "$<${warm}:SHELL:-mllvm -inlinehint-threshold=50>")
endfunction()

add_library(house_build INTERFACE)
target_include_directories(house_build INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(house_build INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION  # compiled once: retry/asio.cpp, http/beast.cpp
  BOOST_ASIO_NO_DEPRECATED)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(house_build INTERFACE
    "SHELL:-Xclang -fno-pch-timestamp"   # lets ccache reuse objects that were built with a precompiled header
    -fno-omit-frame-pointer)
  find_program(HAULOUT_LLD NAMES ld.lld-19 ld.lld)
  if(HAULOUT_LLD)
    target_link_options(house_build INTERFACE --ld-path=${HAULOUT_LLD})   # needs a third of the link time of GNU ld
  endif()
endif()
if(HAULOUT_SANITIZE)
  string(REPLACE ";" "," sanitizers "${HAULOUT_SANITIZE}")
  target_compile_options(house_build INTERFACE -fsanitize=${sanitizers} -fno-sanitize-recover=all)
  target_link_options(house_build INTERFACE -fsanitize=${sanitizers})
endif()
if(HAULOUT_STATIC)
  # Names of source files, which errors contain, begin at the top of the tree. So the program does not depend on where it was built.
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Default: 225. What is hot, by the profile below, has a limit of its own. No drain and no rehearsal runs what is COLD
    # in haulout_library.
    target_compile_options(house_build INTERFACE
      "SHELL:-mllvm -inline-threshold=$<IF:$<BOOL:$<TARGET_PROPERTY:HAULOUT_COLD>>,25,50>")
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
    house_profile()
  endif()
  target_link_options(house_build INTERFACE
    -Wl,--as-needed   # drops ICU, which Boost.Log links for Boost.Regex; nothing here uses it
    -Wl,-z,relro,-z,now)  # makes the table of library functions read-only before the program starts
  if(HAULOUT_LLD)
    target_link_options(house_build INTERFACE
      -Wl,--icf=safe                 # merges functions with the same code whose addresses nothing compares: 3 % of the program
      -Wl,-z,pack-relative-relocs)   # 4 % of the program; needs glibc 2.36 (Debian 12) where it runs
  endif()
endif()
target_link_libraries(house_build INTERFACE house_warnings house_fmt Boost::headers Threads::Threads)

# In a debug build, one object file beside each precompiled header has the code of the header's inline functions and
# templates. The files that use the header then do not compile that code again: a test compiles in half the time. Only
# clang can do this. lld is needed because the object file refers to libraries that not every program has: lld reports
# only the missing symbols of sections that the program uses.
set(HAULOUT_PCH_CODE OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND HAULOUT_LLD)
  set(HAULOUT_PCH_CODE ON)
  target_compile_options(house_build INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(house_build INTERFACE -Wl,--gc-sections)
endif()

# Under sanitizers, the tests with simulated clusters take most of the time. The libraries that run in them (SIMULATED in
# haulout_library) are then optimised a little, which makes these tests several times as fast. Other libraries and the tests
# are not, because compiling them would take longer than running them.
set(HAULOUT_SIMULATED_OPTIONS "")
if(HAULOUT_SANITIZE)
  set(HAULOUT_SIMULATED_OPTIONS -O1)
endif()

# house_precompiled(<name> HEADERS … USES …): adds the object library <name>, whose precompiled header other targets reuse,
# and the library <name>_code with the code of that header.
function(house_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;USES" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(${name} PUBLIC house_build ${arg_USES})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  add_library(${name}_code INTERFACE)
  if(NOT HAULOUT_PCH_CODE)
    return()
  endif()
  target_compile_options(${name} PRIVATE -fpch-codegen "SHELL:-Xclang -building-pch-with-obj")
  set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG}")
  if(HAULOUT_SANITIZE)
    list(APPEND flags -fsanitize=${sanitizers} -fno-sanitize-recover=all)
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -fno-omit-frame-pointer -ffunction-sections -fdata-sections
            ${HAULOUT_SIMULATED_OPTIONS} -Xclang -building-pch-with-obj -c ${header} -o ${object}
    DEPENDS ${header} COMMENT "Building the code of ${name}" COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${name}_object STATIC ${object})
  set_target_properties(${name}_object PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name}_code INTERFACE ${name}_object)
endfunction()

# The precompiled headers of the libraries, one for each level of optimisation. Every other target reuses one of them or has
# its own.
house_precompiled(house_pch HEADERS ${CMAKE_CURRENT_LIST_DIR}/pch.hpp)
if(HAULOUT_SIMULATED_OPTIONS)
  house_precompiled(simulated_pch HEADERS ${CMAKE_CURRENT_LIST_DIR}/pch.hpp)
  target_compile_options(simulated_pch PRIVATE ${HAULOUT_SIMULATED_OPTIONS})
endif()

# haulout_library(<folder> [SIMULATED] [COLD] SOURCES … USES <folders and packages> PRIVATE_USES <packages>): adds one static library
# per folder.
function(haulout_library name)
  cmake_parse_arguments(arg "SIMULATED;COLD" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(haulout_${name} STATIC ${arg_SOURCES})
  set_target_properties(haulout_${name} PROPERTIES HAULOUT_COLD "${arg_COLD}")
  set(pch house_pch)
  if(arg_SIMULATED AND HAULOUT_SIMULATED_OPTIONS)
    set(pch simulated_pch)
    target_compile_options(haulout_${name} PRIVATE ${HAULOUT_SIMULATED_OPTIONS})
  endif()
  target_link_libraries(haulout_${name} PUBLIC house_build ${arg_USES} ${pch}_code PRIVATE ${arg_PRIVATE_USES})
  target_precompile_headers(haulout_${name} REUSE_FROM ${pch})
endfunction()
