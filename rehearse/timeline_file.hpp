// Where --timeline goes; without it, an empty path, nothing is done and nothing is wrong.
#pragma once

#include <string>

#include "rehearse/timeline.hpp"
#include "retry/task.hpp"

namespace haulout::rehearse {

// Errc::invalid, naming the file and the cause. Asked before anything is done, so that no drain ends without a picture.
Result<> can_write_timeline(const std::string& path);
Result<> write_timeline(const std::string& path, const Timeline& timeline, const std::string& title);
Result<> write_picture(const std::string& path, const std::string& svg);

}  // namespace haulout::rehearse
