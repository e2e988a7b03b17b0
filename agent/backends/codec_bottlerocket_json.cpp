#include "agent/backends/bottlerocket_backend.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

Error unreadable(const std::string& what) {
  return Error(Errc::decode, what);
}

// Returns null if the value is null or absent, or if `object` is not an object.
const Json* find(const Json* object, const char* key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(key);
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

// Returns an empty string if the value is absent or not a string.
std::string text_at(const Json* object, const char* key) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

// Converts the version to one line, because it is shown in labels and messages.
std::string version_at(const Json* object) {
  return one_line(text_at(object, "version"));
}

std::optional<BottlerocketStatus::State> state_of(const std::string& name) {
  using State = BottlerocketStatus::State;
  if (name == "Idle") return State::idle;
  if (name == "Available") return State::available;
  if (name == "Staged") return State::staged;
  if (name == "Ready") return State::ready;
  return std::nullopt;
}

}  // namespace

Result<BottlerocketStatus> decode_bottlerocket_status(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return unreadable("the update status is not a JSON object: " + one_line(body, 60));
  const std::string state_name = text_at(&json, "update_state");
  const auto state = state_of(state_name);
  if (!state)
    return unreadable(fmt::format("the update status has the unknown update_state \"{}\"", one_line(state_name)));

  BottlerocketStatus status{.state = *state};
  const Json* chosen = find(&json, "chosen_update");
  status.chosen = version_at(chosen);
  if (chosen != nullptr && status.chosen.empty())
    return unreadable("the chosen_update of the update status has no version");
  const Json* staging = find(&json, "staging_partition");
  status.staged = version_at(find(staging, "image"));
  if (staging != nullptr && status.staged.empty())
    return unreadable(
        "the staging_partition of the update status has no image.version, so it is unknown which version is staged");
  const Json* boots_next = find(staging, "next_to_boot");
  status.staged_boots_next = boots_next != nullptr && boots_next->is_boolean() && boots_next->get<bool>();
  if (const Json* last = find(&json, "most_recent_command")) {
    status.last = {text_at(last, "cmd_type"), text_at(last, "cmd_status"), text_at(last, "timestamp"),
                   one_line(text_at(last, "stderr"))};
    if (status.last->type.empty() || status.last->status.empty() || status.last->timestamp.empty())
      return unreadable("the most_recent_command of the update status lacks cmd_type, cmd_status or timestamp");
  }
  return status;
}

Result<std::string> decode_bottlerocket_version(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  std::string version = one_line(text_at(&json, "version_id"));
  if (version.empty()) return unreadable("the answer has no version_id: " + one_line(body, 60));
  return version;
}

}  // namespace haulout::agent
