// CMake needs a source file in the target that builds a precompiled header.
