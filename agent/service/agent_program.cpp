#include "agent/service/agent_program.hpp"

#include "agent/config/read_config.hpp"
#include "agent/exit_code.hpp"
#include "agent/service/agent_setup.hpp"
#include "agent/signals.hpp"
#include "agent/text.hpp"

namespace haulout::agent {

boost::asio::awaitable<int> run_agent(Process& process, Settings settings) {
  auto loaded = load_config(settings.agent_options, process.environment.variables);
  if (const auto* problems = std::get_if<std::string>(&loaded)) {
    process.err.write("error: " + *problems + "\n");
    process.err.flush(-1);
    co_return exit_usage;
  }
  co_return 0;
}

}  // namespace haulout::agent
