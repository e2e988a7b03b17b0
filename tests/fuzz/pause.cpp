#include "agent/gates/pause.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

void same(const agent::Pause& again, const agent::Pause& pause) {
  must(again.reason == pause.reason, "a reason that is written is read again");
  must(again.until.has_value() == pause.until.has_value(), "a pause with an end keeps it, one without gets none");
  if (pause.until) must(*again.until == std::chrono::floor<std::chrono::seconds>(*pause.until), "at that second");
}

}  // namespace

static void one(std::string_view input) {
  const auto annotated = agent::parse_pause_annotation(input);
  must(!annotated.reason.empty(), "a pause has a reason");
  same(agent::parse_pause_annotation(agent::format_pause_annotation(annotated)), annotated);
  same(agent::parse_pause_json("pause", agent::format_pause_json(annotated)), annotated);
  const auto configured = agent::parse_pause_json("pause", input);
  must(!configured.reason.empty(), "a pause has a reason");
  same(agent::parse_pause_json("pause", agent::format_pause_json(configured)), configured);
}

static const Target target("pause", one);

}  // namespace haulout::fuzz
