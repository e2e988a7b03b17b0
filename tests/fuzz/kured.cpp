#include <nlohmann/json.hpp>

#include "agent/config/read_config.hpp"
#include "cli/migrate/kured_lock.hpp"
#include "cli/migrate/kured_manifest.hpp"
#include "cli/migrate/kured_migration.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void check_migration(const cli::KuredCall& call) {
  const cli::KuredSettings settings(call);
  const auto migration = cli::migrate_kured(call);
  must(migration.has_value(), "the agent accepts every configuration that is written");
  for (const cli::KuredOption& option : cli::kured_options()) {
    const bool row = std::ranges::any_of(migration->options, [&](const auto& one) { return one.name == option.name; });
    must(row == (option.told_always || settings.given(option.name) != nullptr),
         "each option that was given has a row, and of the others only those that are always told");
  }
  const auto config = agent::read_config({}, {}, agent::ConfigFile{"config.yaml", migration->config});
  must(!migration->held_back || std::get<agent::AgentConfig>(config).max_unavailable == "0",
       "a protection that is lost holds the fleet back");
  must(!cli::migration_lines(*migration).empty(), "a migration has a report");
  must(nlohmann::json::accept(cli::migration_json(*migration)), "a migration can be read by programs");
}

static void one(std::string_view input) {
  const auto call = cli::read_kured_manifest(input, "kured");
  if (call)
    check_migration(*call);
  else
    must(!call.error().message().empty(), "an error says what it is");
  if (const auto place = cli::place_of_lock(input))
    must(!place->ns.empty() && !place->name.empty(), "the DaemonSet with the lock has a name");
  for (const auto& step : {cli::step_to_hold(input, input, WallTime{}), cli::step_to_release(input, input)}) {
    if (!step) continue;
    const bool writes = step->what == cli::LockStep::What::write;
    must(writes != step->patch.empty() && !step->message.empty(), "only a step that writes has a patch");
    if (writes)
      must(nlohmann::json::parse(step->patch).at("metadata").at("resourceVersion").is_string(),
           "each write is guarded by the resourceVersion");
  }
}

static const Target target("kured", one);

}  // namespace haulout::fuzz
