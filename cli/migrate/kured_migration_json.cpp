#include <nlohmann/json.hpp>

#include "cli/drain/report_json.hpp"
#include "cli/migrate/kured_migration.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* result_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::translated: return "translated";
    case Outcome::not_needed: return "notNeeded";
    case Outcome::no_counterpart: return "noCounterpart";
    case Outcome::decide: return "decide";
    case Outcome::unknown: return "unknown";
  }
  return "";
}

}  // namespace

std::string migration_json(const Migration& migration) {
  Json options = Json::array();
  for (const MigratedOption& option : migration.options)
    options.push_back({{"option", option.name.empty() ? Json(nullptr) : Json(option.name)},
                       {"given", option.spelled},
                       {"result", result_of(option.outcome)},
                       {"message", option.why}});
  const Json json = {{"apiVersion", api_version},
                     {"kind", "KuredMigration"},
                     {"source", migration.from},
                     {"kuredVersion", std::string(kured_version)},
                     {"complete", migration.is_complete()},
                     {"heldBack", migration.held_back},
                     {"config", migration.config},
                     {"options", std::move(options)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace haulout::cli
