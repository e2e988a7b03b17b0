#include "rehearse/timeline_file.hpp"

#include "base/files.hpp"

namespace haulout::rehearse {
namespace {

Result<> of_the_flag(const Result<>& written) {
  if (written) return {};
  return Error(Errc::invalid, "--timeline " + written.error().message());
}

}  // namespace

Result<> can_write_timeline(const std::string& path) {
  return path.empty() ? Result<>() : of_the_flag(can_write_whole_file(path));
}

Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title) {
  return write_picture(path, timeline_svg(timeline, title));
}

Result<> write_picture(const std::string& path, const std::string& svg) {
  return path.empty() ? Result<>() : of_the_flag(write_whole_file(path, svg));
}

}  // namespace haulout::rehearse
