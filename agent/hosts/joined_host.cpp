#include "agent/hosts/joined_host.hpp"

#include <fmt/format.h>

namespace haulout::agent {

Result<std::string> JoinedHost::boot_id() {
  return hosts_.front()->boot_id();
}

Task<MachineStart> JoinedHost::started(TimePoint deadline) {
  co_return co_await hosts_.front()->started(deadline);
}

std::vector<std::string> JoinedHost::reboot_methods() const {
  std::vector<std::string> all;
  for (const auto& host : hosts_)
    for (std::string& method : host->reboot_methods()) all.push_back(std::move(method));
  return all;
}

Task<> JoinedHost::can_reboot(TimePoint deadline) {
  co_return co_await hosts_.front()->can_reboot(deadline);
}

Task<std::string> JoinedHost::blocked_by(TimePoint deadline) {
  for (const auto& host : hosts_) {
    CO_TRY(std::string who, co_await host->blocked_by(deadline));
    if (!who.empty()) co_return who;
  }
  co_return std::string();
}

Task<> JoinedHost::reboot(std::size_t method, TimePoint deadline) {
  std::size_t left = method;
  for (const auto& host : hosts_) {
    const std::size_t count = host->reboot_methods().size();
    if (left < count) co_return co_await host->reboot(left, deadline);
    left -= count;
  }
  co_return Error(Errc::invalid, fmt::format("reboot method {} does not exist", method));
}

Task<bool> JoinedHost::boot_complete(TimePoint deadline) {
  for (const auto& host : hosts_) {
    CO_TRY(const bool complete, co_await host->boot_complete(deadline));
    if (!complete) co_return false;
  }
  co_return true;
}

Result<> JoinedHost::show_ready(bool ready) {
  return hosts_.front()->show_ready(ready);
}

}  // namespace haulout::agent
