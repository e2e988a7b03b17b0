#include "agent/hosts/none_host.hpp"

namespace haulout::agent {

Task<> NoneHost::can_reboot(TimePoint) {
  co_return Result<>();
}

Task<> NoneHost::reboot(std::size_t, TimePoint) {
  co_return Error(Errc::invalid, "with --reboot-method=none another program or a person reboots this machine");
}

}  // namespace haulout::agent
