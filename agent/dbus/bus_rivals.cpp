#include "agent/dbus/bus_rivals.hpp"

#include <fmt/format.h>

#include "agent/dbus/bus.hpp"
#include "agent/dbus/bus_call.hpp"

namespace haulout::agent {
namespace {

struct Rival {
  const char* unit;
  const char* bus_name;  // empty if the unit has no name on the bus
  const char* does;
  const char* way_out;
};

constexpr Rival rivals[] = {
    {"locksmithd.service", "", "reboots after each update of Flatcar", "systemctl mask --now locksmithd.service"},
    {"rebootmgr.service", "org.opensuse.RebootMgr",
     "reboots after each transactional update (unless its strategy is off)",
     "rebootmgrctl set-strategy off, or systemctl mask --now rebootmgr.service"},
    {"zincati.service", "org.coreos.zincati",
     "finalizes updates of Fedora CoreOS and reboots for them (unless updates.enabled is false)",
     "systemctl mask --now zincati.service; for updates set AutomaticUpdatePolicy=stage in rpm-ostreed.conf and enable "
     "rpm-ostreed-automatic.timer"},
    {"systemd-sysupdate-reboot.timer", "", "reboots after each update by systemd-sysupdate",
     "systemctl mask --now systemd-sysupdate-reboot.timer"},
    {"bootc-fetch-apply-updates.timer", "", "applies updates of the image and reboots for them",
     "systemctl mask --now bootc-fetch-apply-updates.timer"},
};

std::string sentence(const Rival& rival) {
  return fmt::format("{} is active: it {} without waiting for a slot; stop it: {}", rival.unit, rival.does,
                     rival.way_out);
}

// A unit in the answer of ListUnitsByNames: name, description, load state, active state, sub state, following, path,
// job id, job type, job path.
using Unit = sdbus::Struct<std::string, std::string, std::string, std::string, std::string, std::string,
                           sdbus::ObjectPath, std::uint32_t, std::string, sdbus::ObjectPath>;

bool is_up(const Unit& unit) {
  const std::string& state = std::get<3>(unit);
  return state == "active" || state == "activating" || state == "reloading";
}

Task<std::vector<std::string>> by_names_on_the_bus(Bus& bus, TimePoint deadline) {
  std::vector<std::string> out;
  for (const Rival& rival : rivals) {
    const std::string name = rival.bus_name;
    if (name.empty()) continue;
    auto there = co_await bus_call<bool>(bus, bus_driver("NameHasOwner"), deadline, name);
    if (!there) co_return std::move(there).error();
    if (std::get<0>(*there)) out.push_back(sentence(rival));
  }
  co_return out;
}

}  // namespace

Task<std::vector<std::string>> bus_rivals(Bus& bus, TimePoint deadline) {
  std::vector<std::string> names;
  for (const Rival& rival : rivals) names.emplace_back(rival.unit);
  auto units = co_await bus_call<std::vector<Unit>>(bus, systemd1("ListUnitsByNames"), deadline, names);
  if (!units && is_absent(units.error())) co_return co_await by_names_on_the_bus(bus, deadline);
  if (!units) co_return std::move(units).error();
  std::vector<std::string> out;
  for (const Rival& rival : rivals)
    for (const Unit& unit : std::get<0>(*units))
      if (std::get<0>(unit) == rival.unit && is_up(unit)) out.push_back(sentence(rival));
  co_return out;
}

}  // namespace haulout::agent
