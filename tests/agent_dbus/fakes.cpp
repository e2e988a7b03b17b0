#include "tests/agent_dbus/fakes.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace haulout::testing {

void FakeService::connect(const std::string& address) {
  forget();
  object_.reset();
  auto link = agent::BusLink::open(executor_, address);
  if (!link) throw std::runtime_error(link.error().message());
  link_ = *link;
  object_ = sdbus::createObject(link_->connection(), path_);
  publish(*object_);
  object_->finishRegistration();
  link_->connection().requestName(name_);
}

boost::asio::awaitable<void> FakeService::serve() {
  const auto link = link_;
  co_await link->pump(clock_);
  if (link_ != link) co_return;  // connected again in the meantime
  forget();
  object_.reset();
  link_.reset();
}

void FakeService::note(std::string call) {
  calls.push_back(std::move(call));
  event_.notify();
}

void FakeLogin1::publish(sdbus::IObject& object) {
  const std::string manager = "org.freedesktop.login1.Manager";
  object.registerMethod("CanReboot").onInterface(manager).implementedAs([this](sdbus::Result<std::string>&& result) {
    note("CanReboot");
    if (refusal) return result.returnError(*refusal);
    if (!silent) return result.returnResults(can_reboot);
    held_.push_back(std::move(result));
  });
  if (with_flags)
    object.registerMethod("RebootWithFlags").onInterface(manager).implementedAs([this](std::uint64_t flags) {
      note(fmt::format("RebootWithFlags({})", flags));
      if (refusal) throw sdbus::Error(*refusal);
    });
  object.registerMethod("Reboot").onInterface(manager).implementedAs([this](bool interactive) {
    note(fmt::format("Reboot({})", interactive));
    if (refusal) throw sdbus::Error(*refusal);
  });
  object.registerMethod("ListInhibitors").onInterface(manager).implementedAs([this] { return inhibitors; });
  if (numbers_for_words)
    object.registerProperty("BlockInhibited").onInterface(manager).withGetter([] { return std::uint32_t{7}; });
  else
    object.registerProperty("BlockInhibited").onInterface(manager).withGetter([this] { return block_inhibited; });
}

void FakeLogin1::answer_late() {
  for (const auto& result : held_) result.returnResults(can_reboot);
  held_.clear();
}

void FakeSystemd1::publish(sdbus::IObject& object) {
  const std::string manager = "org.freedesktop.systemd1.Manager";
  object.registerMethod("Reboot").onInterface(manager).implementedAs([this] { note("Reboot"); });
  object.registerProperty("SystemState").onInterface(manager).withGetter([this] { return system_state; });
}

}  // namespace haulout::testing
