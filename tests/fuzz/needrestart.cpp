#include "agent/backends/old_services.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto services = agent::parse_needrestart(input);
  if (!services) return must(!services.error().message().empty(), "an error says why");
  std::string again = "NEEDRESTART-VER: 3.6\n";
  for (const std::string& service : *services) {
    must(!service.empty() && service.front() != '-' && service.find_first_of(" \t\n\r;$&|<>()'\"*?") == service.npos,
         "a name is safe as an argument");
    again += "NEEDRESTART-SVC: " + service + "\n";
  }
  must(agent::parse_needrestart(again).value() == *services, "what was read is read again");
}

static const Target target("needrestart", one);

}  // namespace haulout::fuzz
