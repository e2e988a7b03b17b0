# Toolchain file: builds for arm64 with clang on a machine of another architecture. The libraries are those of Debian's packages
# for arm64, which packaging/cross/make_root.py unpacks into build/arm64.
set(HAULOUT_ARM64 ${CMAKE_CURRENT_LIST_DIR}/../build/arm64)
cmake_path(NORMAL_PATH HAULOUT_ARM64)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
add_link_options(-fuse-ld=lld)  # GNU ld knows one architecture only
set(CMAKE_SYSROOT ${HAULOUT_ARM64}/root)
# Otherwise clang finds the headers of GCC by way of the link root/lib, and ninja takes root/lib/gcc/…/../../../../include for
# root/include. There is no such directory, so ninja would compile everything again, each time.
set(CMAKE_CXX_COMPILER_EXTERNAL_TOOLCHAIN ${CMAKE_SYSROOT}/usr)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Programs are those of this machine, everything else is that of arm64.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# Installing runs the program, which writes its completions.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
