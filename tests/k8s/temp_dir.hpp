// A temporary directory that is deleted with the object, and files in it by their short names. Aborts if the directory
// cannot be created. Owns the directory.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace haulout::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "haulout-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  // Returns the full path.
  std::string write(const std::string& name, const std::string& content) const {
    const auto full = path_ / name;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary | std::ios::trunc) << content;
    return full.string();
  }
  std::string write_script(const std::string& name, const std::string& body) const {
    const std::string full = write(name, "#!/bin/sh\n" + body);
    ::chmod(full.c_str(), 0755);
    return full;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace haulout::testing
