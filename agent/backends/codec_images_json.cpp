#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/backends/image_tools.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

// Returns null if the value is null or absent, or if `object` is not an object.
const Json* find(const Json* object, const char* key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(key);
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

// Returns an empty string if the value is absent or not a string. Converts it to one line, because it is shown in
// messages.
std::string text_at(const Json* object, const char* key) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_string() ? one_line(found->get_ref<const std::string&>()) : std::string();
}

bool is_true(const Json* object, const char* key) {
  const Json* found = find(object, key);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

Error unreadable(std::string_view program, std::string_view what) {
  return Error(Errc::decode, fmt::format("{}: {}", program, what));
}

// Parses the output of a program. Fails with Errc::decode unless the whole output is one JSON object.
Result<Json> parsed(std::string_view program, const ProgramEnd& end) {
  Json json = Json::parse(end.output, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return unreadable(program, "the answer is not a JSON object: " + one_line(end.output, 60));
  return json;
}

// Characters of a digest that are shown: enough to tell images apart, as git and podman do.
constexpr std::size_t shown_digest = std::string_view("sha256:").size() + 12;

// An image of bootc. The version alone does not identify it, because two builds may have the same version.
struct BootcImage {
  std::string digest{};
  std::string name{};
};

BootcImage image_of(const Json* image) {
  BootcImage out{.digest = text_at(image, "imageDigest")};
  const std::string version = text_at(image, "version");
  const std::string digest = out.digest.substr(0, shown_digest);
  out.name = version.empty() ? digest : fmt::format("{} ({})", version, digest);
  return out;
}

constexpr std::string_view bootc_status = "bootc status";

}  // namespace

Result<Images> read_bootc_images(const ToolAnswers& answers, const OsRelease&) {
  auto json = parsed(bootc_status, answers.back());
  if (!json) return std::move(json).error();
  const Json* status = find(&*json, "status");
  const BootcImage booted = image_of(find(find(status, "booted"), "image"));
  if (booted.digest.empty())
    return unreadable(bootc_status, "no booted image, so bootc does not manage the system that runs");
  const Json* staged = find(status, "staged");
  const Json* rollback = find(status, "rollback");
  Images images{.booted = booted.name};
  // A staged image that was only downloaded is discarded by a reboot.
  if (staged != nullptr && !is_true(staged, "downloadOnly")) {
    const BootcImage next = image_of(find(staged, "image"));
    images.next = next.digest.empty() ? "an image without a digest" : next.name;
    images.next_is_shared = !next.digest.empty();
  } else if (is_true(status, "rollbackQueued") && rollback != nullptr) {
    images.next = image_of(find(rollback, "image")).name;
  }
  return images;
}

Result<Updates> read_bootc_offer(const ToolAnswers& answers) {
  auto json = parsed(bootc_status, answers.back());
  if (!json) return std::move(json).error();
  const Json* status = find(&*json, "status");
  const Json* booted = find(status, "booted");
  const Json* staged = find(status, "staged");
  const std::string running = image_of(find(booted, "image")).digest;
  if (running.empty()) return unreadable(bootc_status, "no booted image");
  // bootc stores what its last check has found in the deployment that it would replace: the staged one if there is one,
  // otherwise the booted one.
  const Json* cached = find(staged, "cachedUpdate");
  if (cached == nullptr) cached = find(booted, "cachedUpdate");
  const BootcImage offered = image_of(cached);
  if (offered.digest.empty() || offered.digest == running) return Updates{.need = Need::no};
  const bool in_place =
      staged != nullptr && !is_true(staged, "downloadOnly") && image_of(find(staged, "image")).digest == offered.digest;
  if (in_place) return Updates{.need = Need::no};
  return Updates{.need = Need::yes, .count = 1, .target = offered.name};
}

Result<Images> read_snapshots(const ToolAnswers& answers, const OsRelease&) {
  constexpr std::string_view program = "snapper list";
  auto json = parsed(program, answers.front());
  if (!json) return std::move(json).error();
  Images images;
  std::string next;
  for (const auto& config : json->items()) {
    if (!config.value().is_array())
      return unreadable(
          program,
          "the value of a snapper configuration is not a list of snapshots, so it is unknown which snapshot runs");
    for (const Json& snapshot : config.value()) {
      const Json* number = find(&snapshot, "number");
      if (number == nullptr || !number->is_number_unsigned()) return unreadable(program, "a snapshot has no number");
      const std::string name = fmt::format("snapshot {}", number->get<std::uint64_t>());
      if (is_true(&snapshot, "active")) images.booted = name;
      if (is_true(&snapshot, "default")) next = name;
    }
  }
  if (images.booted.empty() || next.empty())
    return unreadable(program,
                      "no snapshot is active, or none is the default one; a system of transactional-update has both");
  if (next != images.booted) images.next = next;
  return images;
}

namespace {

constexpr std::string_view rauc_status = "rauc status";

struct RaucSlot {
  std::string name{};
  std::string version{};  // of the bundle that was installed into it; empty if unknown
  bool booted = false;
};

// Reads an element of "slots": an object whose only key is the name of the slot.
Result<RaucSlot> slot_of(const Json& element) {
  if (!element.is_object() || element.size() != 1 || !element.front().is_object())
    return unreadable(rauc_status,
                      "\"slots\" has a form that Haulout does not know; report that to Haulout, with the output of "
                      "rauc status --detailed --output-format=json");
  const Json& slot = element.front();
  RaucSlot out{.name = one_line(element.begin().key())};
  out.version = text_at(find(find(&slot, "slot_status"), "bundle"), "version");
  out.booted = text_at(&slot, "state") == "booted";
  return out;
}

}  // namespace

Result<Images> read_rauc_images(const ToolAnswers& answers, const OsRelease&) {
  auto json = parsed(rauc_status, answers.front());
  if (!json) return std::move(json).error();
  const Json* slots = find(&*json, "slots");
  const std::string primary = text_at(&*json, "boot_primary");
  if (slots == nullptr || !slots->is_array()) return unreadable(rauc_status, "no slots");
  std::optional<RaucSlot> booted, next;
  for (const Json& element : *slots) {
    auto slot = slot_of(element);
    if (!slot) return std::move(slot).error();
    if (slot->booted) booted = *slot;
    if (slot->name == primary) next = *std::move(slot);
  }
  if (!booted)
    return unreadable(
        rauc_status,
        "RAUC reports no slot as booted; check the kernel parameter rauc.slot= and bootname= in system.conf");
  if (!next)
    return unreadable(rauc_status,
                      primary.empty()
                          ? std::string("boot_primary is missing, so it is unknown which slot the next boot uses")
                          : fmt::format("boot_primary is \"{}\", which is none of the slots, so it is unknown "
                                        "which slot the next boot uses",
                                        one_line(primary)));
  const auto called = [](const RaucSlot& slot) { return slot.version.empty() ? slot.name : slot.version; };
  Images images{.booted = called(*booted)};
  if (next->name == booted->name) return images;
  images.next = called(*next);
  images.next_is_shared = !next->version.empty();
  return images;
}

Result<Updates> read_rauc_bundle(const ToolAnswers& answers) {
  auto json = parsed("rauc info", answers.front());
  if (!json) return std::move(json).error();
  Updates updates{.need = Need::yes, .count = 1, .target = text_at(&*json, "version")};
  if (updates.target.empty())
    return unreadable(
        "rauc info",
        "the bundle has no version, so the agent cannot tell whether it is installed; set version= in its manifest");
  if (std::string what = text_at(&*json, "description"); !what.empty()) updates.first.push_back(std::move(what));
  return updates;
}

Result<Images> read_sysupdate_images(const ToolAnswers& answers, const OsRelease& release) {
  constexpr std::string_view program = "systemd-sysupdate list";
  auto json = parsed(program, answers.back());
  if (!json) return std::move(json).error();
  if (release.image_version.empty())
    return unreadable("os-release", "it has no IMAGE_VERSION, so the agent cannot tell which image runs");
  Images images{.booted = release.image_version};
  const std::string newest = text_at(&*json, "current");
  if (newest.empty())
    return unreadable(program, fmt::format("it finds no installed version, although {} runs; check its transfer files "
                                           "(sysupdate.d)",
                                           images.booted));
  const bool pending = answers.front().status == 0;
  if (pending && newest != images.booted) {
    images.next = newest;
    return images;
  }
  if (!pending && newest == images.booted) return images;
  return unreadable("systemd-sysupdate pending",
                    fmt::format("version {} is the newest one that is installed, and {} runs, but the tool {} that a "
                                "reboot is pending",
                                newest, images.booted, pending ? "says" : "does not say"));
}

Result<Updates> read_sysupdate_offer(const ToolAnswers& answers) {
  auto json = parsed("systemd-sysupdate check-new", answers.front());
  if (!json) return std::move(json).error();
  if (!json->contains("available")) return unreadable("systemd-sysupdate check-new", "the answer has no \"available\"");
  Updates updates{.need = Need::no, .target = text_at(&*json, "available")};
  if (updates.target.empty()) return updates;
  updates.need = Need::yes;
  updates.count = 1;
  return updates;
}

}  // namespace haulout::agent
