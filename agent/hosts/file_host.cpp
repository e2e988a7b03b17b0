#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

Task<std::string> FileHost::blocked_by(TimePoint) {
  co_return std::string();
}

Task<bool> FileHost::boot_complete(TimePoint) {
  co_return true;
}

}  // namespace haulout::agent
