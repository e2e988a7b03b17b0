#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

Task<bool> FileHost::boot_complete(TimePoint) {
  co_return true;
}

}  // namespace haulout::agent
