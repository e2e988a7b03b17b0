#include "tests/fleet/fake_updates.hpp"

#include <algorithm>
#include <utility>

#include "base/scope_exit.hpp"

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

void FakeUpdates::add(std::vector<std::string> more) {
  plan_.waiting.insert(plan_.waiting.end(), more.begin(), more.end());
  news_.notify();
}

void FakeUpdates::repaired_by_hand() {
  half_installed_ = false;
  plan_.waiting.clear();
  news_.notify();
}

void FakeUpdates::cut_short() {
  if (running_) interrupt();
  plan_.old_services.clear();
  plan_.down.clear();
}

void FakeUpdates::interrupt() {
  world_.trace("the installation is interrupted");
  running_ = false;
  failed_ = true;
  half_installed_ = plan_.image.empty();  // a half-written image does not affect the system that runs
  news_.notify();
}

void FakeUpdates::end() {
  running_ = false;
  failed_ = plan_.failing > 0;
  half_installed_ = failed_ && plan_.image.empty();
  if (failed_) {
    --plan_.failing;
    return world_.trace("the installation fails");
  }
  const bool anything = !std::exchange(plan_.waiting, {}).empty();
  world_.trace("the updates are installed");
  if (anything && plan_.need_reboot) world_.needs_reboot();
}

asio::awaitable<agent::Updates> FakeUpdates::look(TimePoint) {
  if (plan_.unknown) co_return agent::Updates{.problem = "the lists of packages cannot be read"};
  agent::Updates updates{.need = agent::Need::no, .count = plan_.waiting.size(), .first = plan_.waiting};
  if (half_installed_ || updates.count > 0) updates.need = agent::Need::yes;
  if (updates.need == agent::Need::yes) updates.target = plan_.image;
  if (updates.first.size() > agent::named_updates) updates.first.resize(agent::named_updates);
  co_return updates;
}

asio::awaitable<void> FakeUpdates::changed() {
  co_await news_.wait_until(world_.clock, TimePoint::max());
}

Task<> FakeUpdates::download(TimePoint deadline) {
  co_await world_.clock.sleep_until(std::min(deadline, world_.clock.now() + 5s));
  if (plan_.fails_download) co_return Error(Errc::unavailable, "the archive does not answer");
  ++downloads_;
  co_return Result<>();
}

Task<std::string> FakeUpdates::blocked_by(TimePoint) {
  if (running_) co_return std::string("an earlier agent has begun an installation, and it runs");
  co_return plan_.blocked_by;
}

Task<> FakeUpdates::install(TimePoint deadline) {
  // As with apt-get, nothing is installed if no update waits, for example because an earlier agent has installed them.
  if (!running_ && !half_installed_ && plan_.waiting.empty()) co_return Result<>();
  if (!running_) {
    world_.began();
    world_.trace("an installation begins");
    running_ = true;
    ++installations_;
    world_.after(plan_.takes, [this, number = installations_] {
      if (running_ && installations_ == number) end();
    });
  }
  {
    bool left = true;
    const ScopeExit leave([this, &left] {
      if (left && running_ && !plan_.outlives_agent) interrupt();
    });
    while (running_ && world_.clock.now() < deadline)
      co_await world_.clock.sleep_until(std::min(deadline, world_.clock.now() + 1s));
    left = false;
  }
  if (running_) {
    interrupt();
    co_return Error(Errc::timeout, "apt-get took too long");
  }
  if (failed_) co_return Error(Errc::unavailable, "dpkg: no space left on device");
  co_return Result<>();
}

Task<std::vector<std::string>> FakeUpdates::old_services(TimePoint) {
  if (plan_.services_unknown) co_return Error(Errc::unavailable, "needrestart: exit status 2");
  co_return plan_.old_services;
}

Task<> FakeUpdates::restart_services(TimePoint) {
  ++restarts_;
  on_restart();
  world_.trace("services are restarted");
  if (plan_.fails_restart) co_return Error(Errc::timeout, "needrestart took too long");
  plan_.old_services = plan_.stay_old;
  plan_.down.insert(plan_.down.end(), plan_.fail_to_start.begin(), plan_.fail_to_start.end());
  if (plan_.restarts_agent) {
    world_.kill_agent();
    co_await world_.clock.sleep_until(TimePoint::max());
  }
  co_return Result<>();
}

Task<std::vector<std::string>> FakeUpdates::failed_services(std::vector<std::string> services, TimePoint) {
  std::erase_if(services, [this](const std::string& name) {
    return std::find(plan_.down.begin(), plan_.down.end(), name) == plan_.down.end();
  });
  co_return services;
}

Task<bool> FakeUpdates::need_reboot_for(std::vector<std::string>, TimePoint) {
  if (plan_.reboot_for_services && !plan_.demand_unseen) world_.needs_reboot();
  co_return plan_.reboot_for_services;
}

}  // namespace haulout::fleet
