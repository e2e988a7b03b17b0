// The options of kured, and what becomes of each in the configuration of Haulout's agents: one table. It has the
// options of kured 1.23.0, commit 51220cc. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace haulout::cli {

class ConfigDraft;
class KuredSettings;

inline constexpr std::string_view kured_version = "1.23.0";

enum class Outcome {
  translated,      // the configuration has it
  not_needed,      // Haulout needs no option for it
  no_counterpart,  // Haulout does not do this
  decide,          // a person must decide or check something
  unknown,         // kured has no such option
};

struct Verdict {
  Outcome outcome = Outcome::translated;
  std::string why;
  // True: kured did not reboot at some times because of this option, and the configuration does not have that.
  bool protection_lost = false;
  // True: kured does not start with it, or cannot reboot anything. What was meant is not known, so it counts as lost,
  // whatever the option is.
  bool refused = false;
};

enum class KuredType {
  boolean,
  integer,
  text,
  duration,
  list,     // separated by commas, may be repeated
  repeated  // may be repeated; only a flag, not a variable
};

struct KuredOption {
  std::string_view name;
  KuredType type = KuredType::text;
  std::string_view fallback;  // kured's default
  // Says what becomes of the option, which is given with a value that kured accepts, and adds its line to the draft.
  Verdict (*judge)(const KuredSettings& settings, const KuredOption& option, ConfigDraft& draft);
  bool protects = false;  // the option keeps kured from a reboot at some times
  bool secret = false;    // its value is not shown
  bool by_name = false;   // the verdict is the same for all values
  // It has a row also if it was not given: kured's default is not quite what Haulout does by default.
  bool told_always = false;
};

const std::vector<KuredOption>& kured_options();
// Returns nullptr if kured has no option with this name.
const KuredOption* find_kured_option(std::string_view name);

}  // namespace haulout::cli
