// The tools that write an update to an image which only the next boot runs: bootc, rpm-ostree, ostree,
// transactional-update, RAUC and systemd-sysupdate. They differ only in their programs and in what these print. This
// file has a table of them, and reads what they print. Pure.
//
// Versions: what a tool calls the system's version; for bootc also the start of the image's digest, for ostree that of
// the commit's checksum, for transactional-update the number of the snapshot. All are one line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/hosts/host_programs.hpp"
#include "agent/hosts/system_files.hpp"
#include "agent/ports/updater.hpp"

namespace haulout::agent {

struct Images {
  std::string booted{};  // the running version
  // The version that the next boot runs; empty if no other image is in place. It may be the running version, in an
  // image that was written again or that differs in its options.
  std::string next{};
  bool next_is_shared = true;  // `next` means the same on each machine; the name of a slot does not
  bool operator==(const Images&) const = default;
};

// How the programs of one question ended, in the order in which they ran.
using ToolAnswers = std::vector<ProgramEnd>;

// A program of a tool. An exit status that is not in `answers` means that the program has given no answer.
struct ToolCommand {
  std::vector<std::string> argv{};  // the first one is an absolute path on the host
  std::vector<int> answers{0};
};

struct ImageTool {
  std::string name{};  // the value of --backend
  // Asks which images there are, without a change and without a network. Empty for rpm-ostree, which has a back end of
  // its own.
  std::vector<ToolCommand> status{};
  Result<Images> (*read_images)(const ToolAnswers&, const OsRelease&) = nullptr;
  // Asks what the tool would install, without a change of an image. `Updates::target` is the version of the whole
  // system, if the tool has one; then `first` has only details.
  std::vector<ToolCommand> look{};
  // If not null, returns further programs of the same question, whose arguments depend on the answers of `look`. Their
  // answers follow those of `look`.
  Result<std::vector<ToolCommand>> (*look_closer)(const ToolAnswers&) = nullptr;
  Result<Updates> (*read_offer)(const ToolAnswers&) = nullptr;
  // True if the tool offers only what differs from the running system. An offer then counts as an update even if its
  // version is the running one.
  bool offer_differs = false;
  // True if a version means the same on each machine. The number of a snapshot does not.
  bool versions_are_shared = true;
  // Writes the image for the next boot. Does not reboot.
  ToolCommand stage{};
  // Files of the host that change when an image was staged, so that the agent notices it at once.
  std::vector<std::string> hints{};
};

// Returns the tool of this back end, or nothing if the back end has none. `bundle` is --update-bundle, for RAUC;
// `release` decides how transactional-update updates the system.
std::optional<ImageTool> image_tool(std::string_view backend, const OsRelease& release, const std::string& bundle);

// Returns how transactional-update updates this system: "dup" for rolling distributions, "up" for others.
std::string suse_verb(const OsRelease& release);

// Each function below reads the answers of the programs that its comment names, in that order. It fails with
// Errc::decode if an answer does not have the documented form.

// `rpm-ostree upgrade --check`: exit status 77 means that there is no update.
Result<Updates> read_rpm_ostree_check(const ToolAnswers& answers);
// `bootc status --format=json`.
Result<Images> read_bootc_images(const ToolAnswers& answers, const OsRelease&);
// `bootc upgrade --check`, then `bootc status --format=json`.
Result<Updates> read_bootc_offer(const ToolAnswers& answers);
// `ostree admin status`. Fails with Errc::unavailable if the staged deployment is locked, because a reboot would not
// boot it.
Result<Images> read_ostree_images(const ToolAnswers& answers, const OsRelease&);
// Returns the programs that fetch the commit at the end of the booted deployment's branch, without its files, and show
// it. `ostree pull` fails if that commit is older than the booted one, as `ostree admin upgrade` does.
Result<std::vector<ToolCommand>> look_at_ostree_branch(const ToolAnswers& answers);
// `ostree admin status`, then the programs of look_at_ostree_branch().
Result<Updates> read_ostree_offer(const ToolAnswers& answers);
// `snapper --jsonout list`: the booted snapshot, and the default one of the next boot.
Result<Images> read_snapshots(const ToolAnswers& answers, const OsRelease&);
// `zypper --xmlout dup --dry-run`, or `up`.
Result<Updates> read_zypper_plan(const ToolAnswers& answers);
// `rauc status --detailed --output-format=json`.
Result<Images> read_rauc_images(const ToolAnswers& answers, const OsRelease&);
// `rauc info --output-format=json BUNDLE`.
Result<Updates> read_rauc_bundle(const ToolAnswers& answers);
// `systemd-sysupdate pending`, then `systemd-sysupdate --offline --json=short list`, and IMAGE_VERSION of os-release.
Result<Images> read_sysupdate_images(const ToolAnswers& answers, const OsRelease& release);
// `systemd-sysupdate --json=short check-new`.
Result<Updates> read_sysupdate_offer(const ToolAnswers& answers);

}  // namespace haulout::agent
