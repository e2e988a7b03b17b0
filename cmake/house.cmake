# Compiler options, libraries and the function that all targets of the build share.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HAULOUT_WERROR "Treat warnings as errors" OFF)
set(HAULOUT_SANITIZE "" CACHE STRING "Sanitizers, for example address;undefined")
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
find_package(sdbus-c++ 1.2 CONFIG REQUIRED)  # Debian has only a shared library
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

add_library(house_build INTERFACE)
target_include_directories(house_build INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(house_build INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION  # one object file holds Asio and Beast (http/asio.cpp)
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
  target_link_options(house_build INTERFACE
    -Wl,--as-needed)  # drops ICU, which Boost.Log links for Boost.Regex; nothing here uses it
endif()
target_link_libraries(house_build INTERFACE house_warnings house_fmt Boost::headers Threads::Threads)

# The precompiled header of the libraries. Every other target reuses it or has its own.
add_library(house_pch OBJECT ${CMAKE_CURRENT_LIST_DIR}/pch.cpp)
target_link_libraries(house_pch PUBLIC house_build)
target_precompile_headers(house_pch PRIVATE ${CMAKE_CURRENT_LIST_DIR}/pch.hpp)

# haulout_library(<folder> SOURCES … USES <folders and packages> PRIVATE_USES <packages>): adds one static library per folder.
function(haulout_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(haulout_${name} STATIC ${arg_SOURCES})
  target_link_libraries(haulout_${name} PUBLIC house_build ${arg_USES} PRIVATE ${arg_PRIVATE_USES})
  target_precompile_headers(haulout_${name} REUSE_FROM house_pch)
endfunction()
