#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

Task<std::string> FileHost::blocked_by(TimePoint) {
  co_return std::string();
}

Task<MachineStart> FileHost::started(TimePoint) {
  CO_TRY(const std::uint64_t ticks, read_first_process(root_));
  co_return MachineStart{"/proc/1/stat", ticks};
}

Task<bool> FileHost::boot_complete(TimePoint) {
  co_return true;
}

}  // namespace haulout::agent
