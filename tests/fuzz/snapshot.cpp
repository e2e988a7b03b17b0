#include "cli/options/settings.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "rehearse/rehearsal.hpp"
#include "sim/loader.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// Returns true if no object demands more than 20 pods. More pods would only make the target slow.
static bool small(const std::vector<sim::Json>& objects) {
  constexpr std::int64_t most = 20;
  return std::all_of(objects.begin(), objects.end(),
                     [](const sim::Json& object) { return sim::number(object, "/spec/replicas") <= most; });
}

static void one(std::string_view input) {
  const auto objects = sim::read_objects(input);
  const auto found = sim::read_objects(input, {.on_foreign = [](sim::Foreign) {}, .may_be_nameless = true});
  must(found || !objects, "what can be read can also be read in a directory");
  if (!objects) return must(!objects.error().message().empty(), "an error says what it is");
  if (!small(*objects)) return;
  rehearse::RehearsalInput rehearsal;
  rehearsal.snapshot = {.documents = {{std::string(input)}}, .stored = true};
  rehearsal.nodes = {"n1"};
  rehearsal.drain = drain::kubectl_defaults();
  rehearsal.drain.policy.daemon_set = drain::Treatment::skip;
  rehearsal.assumptions.give_up = std::chrono::minutes(10);
  const auto played = rehearse::rehearse(rehearsal);
  if (!played) return must(!played.error().message().empty(), "an error says what it is");
  must(!cli::rehearsal_json(*played, rehearsal.assumptions).empty(), "a rehearsal has a report");
}

static const Target target("snapshot", one);

}  // namespace haulout::fuzz
