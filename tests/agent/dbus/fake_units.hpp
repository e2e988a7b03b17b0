// Simulates the part of org.freedesktop.systemd1(5) that starts transient units and reports their end. It runs no
// process.
#pragma once

#include "tests/agent/dbus/fakes.hpp"

namespace haulout::testing {

class FakeUnits final : public FakeService {
 public:
  using Property = sdbus::Struct<std::string, sdbus::Variant>;
  using Job = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;

  FakeUnits(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.freedesktop.systemd1", "/org/freedesktop/systemd1") {}

  struct Unit {
    std::string active_state = "inactive";
    std::uint32_t job = 1;
    std::string result = "success";
    std::int32_t code = 0;
    std::int32_t status = 0;
    std::map<std::string, sdbus::Variant> properties{};
    std::unique_ptr<sdbus::IObject> object{};
  };
  std::map<std::string, Unit> units;
  std::optional<sdbus::Error> refusal{};

  // Adds a running unit, as if an earlier agent process had started it. Must be called after connect().
  void add_running(const std::string& name);
  // Ends a unit: its process writes `errors` to stderr and `output` to stdout, and exits. Then sends JobRemoved.
  void end_unit(const std::string& name, const std::string& result, std::int32_t code, std::int32_t status,
                const std::string& errors = "", const std::string& output = "");
  // Removes a unit, as systemd does after a restart of the bus, when no client refers to the unit. Then sends
  // JobRemoved.
  void collect(const std::string& name);

 private:
  void publish(sdbus::IObject& object) override;
  void forget() override { units.clear(); }
  sdbus::ObjectPath start(const std::string& name, const std::vector<Property>& properties);
  void publish_unit(const std::string& name);
};

}  // namespace haulout::testing
