#include "agent/backends/image_tools.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static bool is_one_line(const std::string& text) {
  return text.find_first_of("\n\r") == text.npos;
}

static void check(const Result<agent::Images>& images) {
  if (!images) return must(!images.error().message().empty(), "an error says why");
  must(!images->booted.empty(), "a system runs");
  must(is_one_line(images->booted) && is_one_line(images->next), "a version is one line");
}

static void check(const Result<agent::Updates>& updates) {
  if (!updates) return must(!updates.error().message().empty(), "an error says why");
  must(updates->need != agent::Need::unknown, "what is unknown is an error");
  must((updates->need == agent::Need::yes) == (updates->count > 0), "what waits is a need");
  must(updates->first.size() <= agent::named_updates, "a message names only the first updates");
  must(is_one_line(updates->target), "a version is one line");
}

static void one(std::string_view input) {
  const agent::ProgramEnd end{.success = true, .status = 0, .output = std::string(input)};
  const agent::OsRelease release = agent::parse_os_release("IMAGE_VERSION=1");
  check(agent::read_bootc_images({end}, release));
  check(agent::read_ostree_images({end}, release));
  check(agent::read_snapshots({end}, release));
  check(agent::read_rauc_images({end}, release));
  check(agent::read_sysupdate_images({end, end}, release));
  check(agent::read_rpm_ostree_check({end}));
  check(agent::read_bootc_offer({end, end}));
  check(agent::read_zypper_plan({end}));
  check(agent::read_rauc_bundle({end}));
  check(agent::read_sysupdate_offer({end}));
  check(agent::read_ostree_offer({end, end}));
  // The answer of `ostree show` has another form than that of `ostree admin status`.
  const std::size_t blank = input.find("\n\n");
  const std::string_view rest = blank == input.npos ? std::string_view() : input.substr(blank + 2);
  check(agent::read_ostree_offer({end, {.success = true, .status = 0, .output = std::string(rest)}}));
  if (const auto commands = agent::look_at_ostree_branch({end})) {
    must(!commands->empty(), "there is a branch to look at");
    for (const agent::ToolCommand& command : *commands)
      for (const std::string& word : command.argv) must(is_one_line(word), "an argument is one line");
  } else {
    must(!commands.error().message().empty(), "an error says why");
  }
}

static const Target target("image_tools", one);

}  // namespace haulout::fuzz
